// BatchRatio: the ratio of two sums over a series in its order (a mean, a rate, a fraction), with
// an interval that allows for neighbours that resemble each other. Requests that share a server's
// queue are no independent samples; the means of long batches of them nearly are.
// The series is cut into 32 to 64 batches of equal length, whatever its own length, in constant
// memory; the interval joins neighbouring batches while they still correlate (von Neumann's test at
// 5 %), down to eight, and takes Student's t of what is left.
// Source: Fishman, Management Science 24(5), 1978 (batches grown until uncorrelated); Cochran,
// Sampling Techniques, 3rd ed. 1977, section 6.3 (variance of a ratio).
// Thread safety: none.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "prony/stats/quantile.hpp"

namespace prony::stats {

/// Sums over one stretch of a series.
struct RatioBatch {
  double numerator = 0, denominator = 0;
};

/// Fewer batches than this give no interval.
inline constexpr size_t kBatchesMin = 5;

class BatchRatio {
 public:
  void add(double numerator, double denominator = 1);

  int64_t n() const { return n_; }
  /// Sum of numerators / sum of denominators; nullopt where that is no number.
  std::optional<double> estimate() const;
  /// nullopt with fewer than kBatchesMin observations. Never tighter than a point: all equal gives
  /// lower == upper.
  std::optional<Interval> interval(double confidence = 0.95) const;
  /// The batches so far, the last one perhaps shorter.
  std::vector<RatioBatch> batches() const;

 private:
  std::vector<RatioBatch> full_;  // of size_ observations each
  RatioBatch open_;
  int64_t n_ = 0, size_ = 1, in_open_ = 0;
};

/// Neighbours joined until they do not correlate any more, or eight are left.
std::vector<RatioBatch> decorrelated(std::vector<RatioBatch> batches);

/// Ratio and standard error by linearisation; nullopt for fewer than two batches or a denominator
/// of nothing.
struct RatioEstimate {
  double ratio = 0, standard_error = 0;
};
std::optional<RatioEstimate> ratio_estimate(std::span<const RatioBatch> batches);
/// ratio -+ Student's t; nullopt with fewer than kBatchesMin batches.
std::optional<Interval> ratio_interval(std::span<const RatioBatch> batches,
                                       double confidence = 0.95);

/// Interval of a proportion of `successes` in `n` trials that came in these batches (numerator:
/// successes, denominator: trials): Clopper and Pearson's, for as many independent trials as the
/// spread between batches is worth, never more than n. Requires 0 <= successes <= n, n > 0.
/// Source: Korn & Graubard, Survey Methodology 24(2), 1998.
Interval clustered_proportion(int64_t successes, int64_t n, std::span<const RatioBatch> batches,
                              double confidence = 0.95);

/// The q-quantile of a series whose neighbours depend on each other, with an interval of order
/// statistics for as many independent values as the spread of the share at or below it between
/// batches implies. nullopt where that is too few.
struct QuantileEstimate {
  double value = 0;
  Interval interval;
};
std::optional<QuantileEstimate> series_quantile(std::span<const double> series, double q,
                                                double confidence = 0.95);

}  // namespace prony::stats
