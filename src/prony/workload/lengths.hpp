// LengthLaw: how many tokens a prompt or an answer has. Values are drawn by inversion, one uniform
// number a draw (a mixture takes two), rounded to the nearest integer and then clamped to at least
// 1 token, so the k-th draw of a stream depends on k and the law alone. Thread safety: immutable;
// sample() any thread (the Rng is the caller's).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/core/rng.hpp"
#include "prony/stats/kde.hpp"

namespace prony::workload {

/// Longest length that any law or file may give; more is a mistake in a unit.
inline constexpr int32_t kTokensMax = 100'000'000;

class LengthLaw {
 public:
  enum class Kind {
    kConstant,
    kUniform,
    kNormal,
    kLognormal,
    kEmpirical,
    kZipf,
    kMixture,
    kKde,
  };

  /// Every factory: kInvalidArgument if a number is out of range.
  static Result<LengthLaw> constant(int32_t tokens);
  /// All integers low..high alike, both ends included.
  static Result<LengthLaw> uniform(int32_t low, int32_t high);
  /// Mean and standard deviation before rounding and clamping; sd >= 0.
  static Result<LengthLaw> normal(double mean, double sd);
  /// exp of a normal: `median` = exp(mu), `sigma` = standard deviation of the logarithm.
  static Result<LengthLaw> lognormal(double median, double sigma);
  /// One of `values`, all alike: the inverse of their empirical distribution. `name` says where
  /// they come from.
  static Result<LengthLaw> empirical(std::vector<int32_t> values, std::string name);
  /// A smooth density of `values` (stats/kde.hpp), bounded below by 1 token.
  static Result<LengthLaw> kde(const std::vector<int32_t>& values, const stats::KdeOptions& options,
                               std::string name);
  /// k in 1..`most` in proportion to k^-exponent; 0 <= exponent <= 10, most <= 1,000,000.
  static Result<LengthLaw> zipf(double exponent, int32_t most);
  /// Each draw is of one of `laws`, chosen by weight (1e-6 to 1e6).
  static Result<LengthLaw> mixture(std::vector<double> weights, std::vector<LengthLaw> laws);
  /// vLLM's --random-input-len L --random-range-ratio r: uniform on floor(L(1-r))..ceil(L(1+r)),
  /// low end at least 1, 0 <= r < 1. (SGLang's flag of the same name means r*L..L.)
  static Result<LengthLaw> random_range(int32_t tokens, double range_ratio);
  /// What --input-len and --output-len take: "512", "uniform:LOW,HIGH", "normal:MEAN,SD",
  /// "lognormal:MEDIAN,SIGMA", "zipf:EXPONENT,MOST", or a mixture of those:
  /// "0.7*lognormal:200,0.6+0.3*4096". Error: kInvalidArgument naming `flag`.
  static Result<LengthLaw> parse(std::string_view text, std::string_view flag);

  Kind kind() const noexcept { return kind_; }
  int32_t sample(core::Rng& rng) const;
  /// In the grammar of parse(), or "empirical:NAME", "kde:NAME".
  std::string describe() const;
  /// kKde only (checked).
  double bandwidth() const;
  const stats::Kde& density() const;

 private:
  LengthLaw(Kind kind, double a, double b) : kind_(kind), a_(a), b_(b) {}
  Kind kind_;
  static Result<LengthLaw> parse_simple(std::string_view text, std::string_view flag);
  double a_ = 0, b_ = 0;  // tokens; low, high; mean, sd; median, sigma; exponent, most
  std::shared_ptr<const std::vector<int32_t>> sorted_;
  std::shared_ptr<const std::vector<double>> cumulative_;  // Zipf; weights of a mixture
  std::shared_ptr<const std::vector<LengthLaw>> parts_;
  std::shared_ptr<const stats::Kde> kde_;
  std::string name_;
};

}  // namespace prony::workload
