// Quantiles of stored values, and distribution-free intervals for them.
// quantile_linear is what numpy and vLLM print (Hyndman & Fan type 7); quantile_nearest_rank never
// invents a value. Intervals are pairs of order statistics whose coverage is exact for independent
// samples of any distribution; DependentSample widens them for values that come in groups (the gaps
// of one stream).
// Source: Hyndman & Fan, The American Statistician 50(4), 1996; Conover, Practical Nonparametric
// Statistics, 3rd ed., section 3.2; Korn & Graubard, Survey Methodology 24(2), 1998 (effective n).
// Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace prony::stats {

/// Linear interpolation at position q * (n - 1). Requires `sorted` ascending and not empty, q in
/// [0, 1] (checked).
double quantile_linear(std::span<const double> sorted, double q);
/// The value of rank max(1, ceil(q * n)). Same requirements.
double quantile_nearest_rank(std::span<const double> sorted, double q);
/// max(1, ceil(q * n)) without the rounding error of q * n near whole numbers (0.07 * 100).
int64_t nearest_rank(double q, int64_t n);

struct Interval {
  double lower = 0, upper = 0;
  bool operator==(const Interval&) const = default;
};
/// Ranks (from 1) of the order statistics that bound the q-quantile, each tail at most
/// (1 - confidence) / 2. nullopt where n is too small for both bounds to exist.
struct RankInterval {
  int64_t lower = 0, upper = 0;
  bool operator==(const RankInterval&) const = default;
};
std::optional<RankInterval> quantile_ranks(int64_t n, double q, double confidence = 0.95);
/// As quantile_ranks, for n values worth only `effective_n` <= n independent ones: the ranks for
/// effective_n, stretched to n and rounded outwards.
std::optional<RankInterval> quantile_ranks_effective(int64_t n, double effective_n, double q,
                                                     double confidence = 0.95);
/// The values at those ranks.
std::optional<Interval> quantile_interval(std::span<const double> sorted, double q,
                                          double confidence = 0.95);

/// How many independent samples a grouped one is worth where its q-quantile is concerned:
/// n / design effect, from the spread between groups of the share of values at or below the
/// quantile. Add one group a request, then ask. Keeps sums, no memory a group.
class GroupedProportion {
 public:
  explicit GroupedProportion(double q) : q_(q) {}
  /// A group of `n` values of which `at_or_below` do not exceed the quantile. n = 0 is ignored.
  void add(int64_t n, int64_t at_or_below);
  /// nullopt with fewer than two groups: one group says nothing about the spread between groups.
  /// At most the number of values, at least 1.
  std::optional<double> effective_n() const;

 private:
  double q_;
  int64_t groups_ = 0;
  // Whole numbers, exact in a double below 2^53: of n, of x (at or below), and of their products.
  double n_ = 0, x_ = 0, nn_ = 0, xn_ = 0, xx_ = 0;
};

}  // namespace prony::stats
