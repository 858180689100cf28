// Kolmogorov-Smirnov statistics: the largest distance between an empirical distribution and a given
// one, or between two empirical ones.
// The p-value is the limit distribution with Stephens' correction for small n: good to about 1e-3
// for n >= 8. It assumes a continuous law fixed in advance (parameters fitted to the same data make
// it too large) and independent samples.
// Source: Stephens, J. Royal Statistical Society B 32(1), 1970.
// Thread safety: pure functions.
#pragma once
#include <functional>
#include <span>

namespace prony::stats {

struct KsResult {
  double distance = 0;  // sup |F1 - F2|, in [0, 1]
  double p_value = 1;   // probability of a distance at least this large if the laws are equal
};

/// Requires `sorted` ascending and not empty (checked), `cdf` non-decreasing in [0, 1].
KsResult ks_one_sample(std::span<const double> sorted, const std::function<double(double)>& cdf);
/// Requires both ascending and not empty (checked); ties within and between samples are allowed.
KsResult ks_two_sample(std::span<const double> a_sorted, std::span<const double> b_sorted);

/// P(K > x) of Kolmogorov's limit distribution.
double kolmogorov_tail(double x);

}  // namespace prony::stats
