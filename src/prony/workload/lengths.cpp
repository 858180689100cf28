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

constexpr int32_t kZipfMost = 1'000'000;
constexpr size_t kMixtureMost = 64;

// An index, by cumulative weights.
size_t pick(const std::vector<double>& cumulative, core::Rng& rng) {
  const double u = rng.uniform() * cumulative.back();
  return static_cast<size_t>(std::upper_bound(cumulative.begin(), cumulative.end() - 1, u) -
                             cumulative.begin());
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

Result<LengthLaw> LengthLaw::kde(const std::vector<int32_t>& values,
                                 const stats::KdeOptions& options, std::string name) {
  auto made = stats::Kde::create({values.begin(), values.end()}, options);
  if (!made) return invalid_argument(fmt::format("{}: {}", name, made.error().message));
  LengthLaw law(Kind::kKde, 0, 0);
  law.kde_ = std::make_shared<const stats::Kde>(std::move(made).value());
  law.name_ = std::move(name);
  return law;
}

Result<LengthLaw> LengthLaw::zipf(double exponent, int32_t most) {
  if (!(exponent >= 0 && exponent <= 10) || most < 1 || most > kZipfMost) {
    return invalid_argument(
        fmt::format("Zipf length: found exponent {} and at most {} tokens, expected 0 to 10 and 1 "
                    "to {}",
                    exponent, most, kZipfMost));
  }
  std::vector<double> cumulative;
  cumulative.reserve(static_cast<size_t>(most));
  double sum = 0;
  for (int32_t k = 1; k <= most; ++k) {
    sum += core::math::pow(k, -exponent);
    cumulative.push_back(sum);
  }
  LengthLaw law(Kind::kZipf, exponent, most);
  law.cumulative_ = std::make_shared<const std::vector<double>>(std::move(cumulative));
  return law;
}

Result<LengthLaw> LengthLaw::mixture(std::vector<double> weights, std::vector<LengthLaw> laws) {
  if (laws.empty() || weights.size() != laws.size()) {
    return invalid_argument(fmt::format("mixture: found {} weights of {} laws, expected one a law",
                                        weights.size(), laws.size()));
  }
  double sum = 0;
  for (double& weight : weights) {
    if (!(weight >= 1e-6 && weight <= 1e6)) {
      return invalid_argument(
          fmt::format("mixture: found the weight {}, expected 1e-6 to 1e6", weight));
    }
    weight = sum += weight;
  }
  LengthLaw law(Kind::kMixture, 0, 0);
  law.cumulative_ = std::make_shared<const std::vector<double>>(std::move(weights));
  law.parts_ = std::make_shared<const std::vector<LengthLaw>>(std::move(laws));
  return law;
}

double LengthLaw::bandwidth() const {
  return density().bandwidth();
}

const stats::Kde& LengthLaw::density() const {
  PRONY_CHECK(kde_ != nullptr, "a kernel density");
  return *kde_;
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
  if (text.find('*') == std::string_view::npos) return parse_simple(text, flag);
  std::vector<double> weights;
  std::vector<LengthLaw> laws;
  std::string_view rest = text;
  while (true) {
    const size_t plus = rest.find('+');
    const std::string_view part = rest.substr(0, plus);
    const size_t star = part.find('*');
    const auto weight = parse_number<double>(part.substr(0, star));
    if (star == std::string_view::npos || !weight || laws.size() == kMixtureMost) {
      return invalid_argument(
          fmt::format("{}: found {}, expected a mixture like "
                      "0.7*lognormal:200,0.6+0.3*4096",
                      flag, token::quote(text)));
    }
    auto law = parse_simple(part.substr(star + 1), flag);
    if (!law) return law;
    weights.push_back(*weight);
    laws.push_back(std::move(law).value());
    if (plus == std::string_view::npos) break;
    rest.remove_prefix(plus + 1);
  }
  auto law = mixture(std::move(weights), std::move(laws));
  if (law) return law;
  return invalid_argument(fmt::format("{}: {}", flag, law.error().message));
}

Result<LengthLaw> LengthLaw::parse_simple(std::string_view text, std::string_view flag) {
  const auto bad = [&] {
    return invalid_argument(fmt::format(
        "{}: found {}, expected N, uniform:LOW,HIGH, normal:MEAN,SD, lognormal:MEDIAN,SIGMA, "
        "zipf:EXPONENT,MOST or a mixture like 0.7*512+0.3*4096",
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
  if (kind == "zipf") {
    const auto most = parse_number<int32_t>(second);
    return most ? named(zipf(*a, *most)) : bad();
  }
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
    case Kind::kZipf:
      return 1 + static_cast<int32_t>(pick(*cumulative_, rng));
    case Kind::kMixture:
      return (*parts_)[pick(*cumulative_, rng)].sample(rng);
    case Kind::kKde:
      return whole_tokens(kde_->sample(rng));
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
    case Kind::kZipf:
      return fmt::format("zipf:{},{}", a_, static_cast<int32_t>(b_));
    case Kind::kMixture: {
      std::string text;
      double before = 0;
      for (size_t i = 0; i < parts_->size(); ++i) {
        const double weight = (*cumulative_)[i] - std::exchange(before, (*cumulative_)[i]);
        text += fmt::format("{}{:.6g}*{}", i == 0 ? "" : "+", weight, (*parts_)[i].describe());
      }
      return text;
    }
    case Kind::kKde:
      return "kde:" + name_;
    case Kind::kEmpirical:
      break;
  }
  return "empirical:" + name_;
}

}  // namespace prony::workload
