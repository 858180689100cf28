// Exact binomial tails, the base of distribution-free intervals for quantiles and of tests on
// proportions. Sums run over ratios of neighbouring terms from the mode and are divided by their
// total, so no factorial or gamma function is needed and bits are equal on every machine.
// Cost: O(sqrt(n)) terms. Relative error about 1e-13 for n up to 1e9, tails below about 1e-290 are
// 0. Thread safety: pure functions.
#pragma once
#include <cstdint>

namespace prony::stats {

/// P(X <= k) for X ~ Binomial(n, p). Requires n >= 0 and p in [0, 1] (checked). k < 0 gives 0.
double binomial_cdf(int64_t k, int64_t n, double p);

/// The least k with P(X <= k) >= probability; probability in (0, 1) (checked).
int64_t binomial_quantile(double probability, int64_t n, double p);

/// Clopper-Pearson interval of a proportion with k successes in n trials: exact, conservative.
/// Requires 0 <= k <= n, n > 0, confidence in (0, 1) (checked).
/// Source: Clopper & Pearson, Biometrika 26(4), 1934.
struct ProportionInterval {
  double lower = 0, upper = 1;
};
ProportionInterval proportion_interval(int64_t k, int64_t n, double confidence = 0.95);

}  // namespace prony::stats
