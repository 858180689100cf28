// The points of the figures: distribution functions, buckets of time, a cloud of dots. By the
// definitions of record/row_metrics.hpp, thinned so that a page of 10^5 requests stays small; what
// is thinned says from how many. Thread safety: Distribution none; the rest pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/rng.hpp"
#include "prony/record/request_row.hpp"
#include "prony/record/row_source.hpp"
#include "prony/record/summary.hpp"
#include "prony/stats/histogram.hpp"

namespace prony::report {

/// Points of an empirical distribution function: exactly p[i] of the n values are <= x_ms[i].
struct CdfPoints {
  int64_t n = 0;
  std::vector<double> x_ms;  // ascending, no two equal
  std::vector<double> p;     // ascending, the last is 1
  bool exact = true;         // false: x_ms from a histogram, late by at most 0.1 %
  bool thinned = false;      // fewer points than distinct values
};

/// Collects values and gives their distribution function.
class Distribution {
 public:
  /// Beyond `exact_values_max` values a histogram takes over: 10^5 requests of 500 tokens are half
  /// a gigabyte of gaps. The record's own limit.
  explicit Distribution(size_t exact_values_max = record::kExactValuesMax);
  void add(double value_ms);  // >= 0; a negative value counts as 0
  int64_t n() const { return n_; }
  /// At most about `points_max` (>= 16, checked) points, evenly spaced in rank, denser in the upper
  /// tail, always with the least and the largest value.
  CdfPoints points(size_t points_max);

 private:
  size_t exact_values_max_;
  int64_t n_ = 0;
  std::vector<double> values_ms_;
  std::optional<stats::Histogram> histogram_ns_;
};

/// Ranks (from 1) at which a distribution of n values is shown; ascending, with 1 and n.
std::vector<int64_t> shown_ranks(int64_t n, size_t points_max);

/// The run in buckets of equal width. Instants in seconds from `origin_ns`.
struct Timeline {
  core::Nanos origin_ns = 0;                // the first intended start
  double bucket_s = 0;                      // 1, 2 or 5 times a power of ten
  std::vector<double> output_tokens_per_s;  // by arrival of each token, failed requests included
  std::vector<double> in_flight_mean;       // time-weighted, from sending to the end
  std::vector<double> in_flight_max;
  std::vector<double> failed_per_s;  // by last stamp
};
/// nullopt if there are no rows or the run took no time. At most `buckets_max` buckets.
std::optional<Timeline> timeline(const record::RowSource& rows, size_t buckets_max);

/// TTFT against input length of completed requests.
struct Scatter {
  int64_t n = 0;  // requests with both values
  std::vector<double> input_tokens, ttft_ms;
  bool server_count = false;  // every x is the server's own count, not the length asked for
};
/// Collects all points, or `points_max` of them: the kSlowestKept slowest, so that thinning hides
/// no outlier, and a random sample of the others (the same on every machine).
inline constexpr size_t kSlowestKept = 50;
class ScatterSample {
 public:
  /// Requires points_max > kSlowestKept (checked).
  explicit ScatterSample(size_t points_max);
  void add(const record::RequestRow& completed);
  Scatter finish() const;

 private:
  struct Point {
    double asked, counted, ttft_ms;
    /// For the heap of the slowest: the fastest of them on top.
    bool operator<(const Point& other) const { return ttft_ms > other.ttft_ms; }
  };
  size_t sample_max_;
  bool counted_ = true;  // so far every prompt has the server's count
  int64_t n_ = 0, sampled_ = 0;
  std::vector<Point> slowest_, sample_;
  core::Rng rng_;
};

}  // namespace prony::report
