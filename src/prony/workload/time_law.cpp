#include "prony/workload/time_law.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/core/math.hpp"
#include "prony/token/quote.hpp"
#include "prony/workload/numbers.hpp"

namespace prony::workload {
namespace {
constexpr double kSecondsMax = 1e6;  // 11 days: more is a mistake in a unit
}  // namespace

Result<TimeLaw> TimeLaw::parse(std::string_view text, std::string_view flag) {
  const auto bad = [&]() -> Error {
    return invalid_argument(fmt::format(
        "{}: found {}, expected seconds (0 to {:g}) or a law: 2, uniform:1,5, exponential:3, "
        "lognormal:2,0.5",
        flag, token::quote(text), kSecondsMax));
  };
  const auto in_range = [](double seconds) { return seconds >= 0 && seconds <= kSecondsMax; };
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    const auto seconds = parse_number<double>(text);
    if (!seconds || !in_range(*seconds)) return bad();
    return TimeLaw(Kind::kConstant, *seconds, 0, text);
  }
  const std::string_view kind = text.substr(0, colon), rest = text.substr(colon + 1);
  const size_t comma = rest.find(',');
  const auto a = parse_number<double>(rest.substr(0, comma));
  if (!a || !in_range(*a)) return bad();
  if (kind == "exponential" && comma == std::string_view::npos) {
    return TimeLaw(Kind::kExponential, *a, 0, text);
  }
  if (comma == std::string_view::npos) return bad();
  const auto b = parse_number<double>(rest.substr(comma + 1));
  if (!b) return bad();
  if (kind == "uniform" && in_range(*b) && *a <= *b) return TimeLaw(Kind::kUniform, *a, *b, text);
  if (kind == "lognormal" && *b >= 0 && *b <= 10) return TimeLaw(Kind::kLognormal, *a, *b, text);
  return bad();
}

int64_t TimeLaw::sample_ns(core::Rng& rng) const {
  double seconds = a_;
  switch (kind_) {
    case Kind::kConstant:
      break;
    case Kind::kUniform:
      seconds = a_ + (b_ - a_) * rng.uniform();
      break;
    case Kind::kExponential:
      seconds = a_ * rng.exponential();
      break;
    case Kind::kLognormal:
      seconds = a_ * core::math::exp(b_ * rng.normal());
      break;
  }
  return static_cast<int64_t>(std::floor(std::min(seconds, kSecondsMax) * 1e9 + 0.5));
}

}  // namespace prony::workload
