#include "prony/workload/lengths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"
#include "prony/token/quote.hpp"
#include "prony/workload/numbers.hpp"

namespace prony::workload {
namespace {

bool in_range(double tokens) {
  return tokens >= 1 && tokens <= kTokensMax;
}

Error out_of_range(std::string_view what, double found) {
  return invalid_argument(
      fmt::format("{}: found {}, expected 1 to {} tokens", what, found, kTokensMax));
}

int32_t whole_tokens(double tokens) {
  if (!(tokens >= 1)) return 1;
  if (tokens >= kTokensMax) return kTokensMax;
  return static_cast<int32_t>(std::floor(tokens + 0.5));
}

}  // namespace

Result<LengthLaw> LengthLaw::constant(int32_t tokens) {
  if (!in_range(tokens)) return out_of_range("length", tokens);
  return LengthLaw(Kind::kConstant, tokens, tokens);
}

Result<LengthLaw> LengthLaw::uniform(int32_t low, int32_t high) {
  if (!in_range(low)) return out_of_range("uniform length, low end", low);
  if (!in_range(high)) return out_of_range("uniform length, high end", high);
  if (low > high) {
    return invalid_argument(
        fmt::format("uniform length: found {} to {}, expected the low end first", low, high));
  }
  return LengthLaw(Kind::kUniform, low, high);
}

Result<LengthLaw> LengthLaw::normal(double mean, double sd) {
  if (!in_range(mean)) return out_of_range("normal length, mean", mean);
  if (!(sd >= 0 && sd <= kTokensMax)) {
    return invalid_argument(fmt::format("normal length, deviation: found {}, expected >= 0", sd));
  }
  return LengthLaw(Kind::kNormal, mean, sd);
}

Result<LengthLaw> LengthLaw::lognormal(double median, double sigma) {
  if (!in_range(median)) return out_of_range("lognormal length, median", median);
  // Beyond 10 every draw is 1 or kTokensMax: somebody gave sigma in tokens.
  if (!(sigma >= 0 && sigma <= 10)) {
    return invalid_argument(
        fmt::format("lognormal length, sigma of the logarithm: found {}, expected 0 to 10", sigma));
  }
  return LengthLaw(Kind::kLognormal, median, sigma);
}

Result<LengthLaw> LengthLaw::empirical(std::vector<int32_t> values, std::string name) {
  if (values.empty()) return invalid_argument(fmt::format("{}: found no lengths", name));
  std::sort(values.begin(), values.end());
  if (!in_range(values.front())) return out_of_range(name, values.front());
  if (!in_range(values.back())) return out_of_range(name, values.back());
  LengthLaw law(Kind::kEmpirical, 0, 0);
  law.sorted_ = std::make_shared<const std::vector<int32_t>>(std::move(values));
  law.name_ = std::move(name);
  return law;
}

Result<LengthLaw> LengthLaw::random_range(int32_t tokens, double range_ratio) {
  if (!in_range(tokens)) return out_of_range("length", tokens);
  if (!(range_ratio >= 0 && range_ratio < 1)) {
    return invalid_argument(
        fmt::format("--random-range-ratio: found {}, expected 0 <= ratio < 1", range_ratio));
  }
  const double low = std::floor(tokens * (1 - range_ratio));
  const double high = std::ceil(tokens * (1 + range_ratio));
  return uniform(static_cast<int32_t>(std::max(low, 1.0)),
                 static_cast<int32_t>(std::min(high, double{kTokensMax})));
}

Result<LengthLaw> LengthLaw::parse(std::string_view text, std::string_view flag) {
  const auto bad = [&] {
    return invalid_argument(fmt::format(
        "{}: found {}, expected N, uniform:LOW,HIGH, normal:MEAN,SD or lognormal:MEDIAN,SIGMA",
        flag, token::quote(text)));
  };
  const auto named = [&](Result<LengthLaw> law) -> Result<LengthLaw> {
    if (law) return law;
    return invalid_argument(fmt::format("{}: {}", flag, law.error().message));
  };
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    const auto tokens = parse_number<int32_t>(text);
    return tokens ? named(constant(*tokens)) : bad();
  }
  const std::string_view kind = text.substr(0, colon);
  const std::string_view rest = text.substr(colon + 1);
  const size_t comma = rest.find(',');
  if (comma == std::string_view::npos) return bad();
  const std::string_view first = rest.substr(0, comma), second = rest.substr(comma + 1);
  if (kind == "uniform") {
    const auto low = parse_number<int32_t>(first), high = parse_number<int32_t>(second);
    return low && high ? named(uniform(*low, *high)) : bad();
  }
  const auto a = parse_number<double>(first), b = parse_number<double>(second);
  if (!a || !b) return bad();
  if (kind == "normal") return named(normal(*a, *b));
  if (kind == "lognormal") return named(lognormal(*a, *b));
  return bad();
}

int32_t LengthLaw::sample(core::Rng& rng) const {
  switch (kind_) {
    case Kind::kConstant:
      return static_cast<int32_t>(a_);
    case Kind::kUniform:
      return static_cast<int32_t>(a_ + std::floor(rng.uniform() * (b_ - a_ + 1)));
    case Kind::kNormal:
      return whole_tokens(a_ + b_ * rng.normal());
    case Kind::kLognormal:
      return whole_tokens(a_ * core::math::exp(b_ * rng.normal()));
    case Kind::kEmpirical:
      break;
  }
  const auto count = static_cast<double>(sorted_->size());
  return (*sorted_)[static_cast<size_t>(rng.uniform() * count)];
}

std::string LengthLaw::describe() const {
  switch (kind_) {
    case Kind::kConstant:
      return fmt::format("{}", static_cast<int32_t>(a_));
    case Kind::kUniform:
      return fmt::format("uniform:{},{}", static_cast<int32_t>(a_), static_cast<int32_t>(b_));
    case Kind::kNormal:
      return fmt::format("normal:{},{}", a_, b_);
    case Kind::kLognormal:
      return fmt::format("lognormal:{},{}", a_, b_);
    case Kind::kEmpirical:
      break;
  }
  return "empirical:" + name_;
}

}  // namespace prony::workload
