// LatencyCollector: values of one latency in, LatencyStats out. Keeps the values up to a limit and
// is exact; beyond it turns into a histogram of ns (<= 0.1 % late), so that a long run of many
// tokens needs no memory per token.
// Thread safety: none.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "prony/record/metrics.hpp"
#include "prony/stats/batch_ratio.hpp"
#include "prony/stats/histogram.hpp"
#include "prony/stats/moments.hpp"

namespace prony::record {

class LatencyCollector {
 public:
  explicit LatencyCollector(int64_t exact_values_max) : exact_values_max_(exact_values_max) {}

  void add(double ms);
  void add(const std::optional<double>& ms) {
    if (ms) add(*ms);
  }
  /// Values that hang together, the gaps of one stream: one observation of the series.
  void add(std::span<const double> values_ms);

  // The interval of the mean takes the order of the calls for the order of the requests.

  /// Calls its argument once a group of values that hang together (the gaps of one stream).
  using Groups = std::function<void(const std::function<void(std::span<const double>)>&)>;
  /// Ends the collection: values are sorted in place. With `groups`, which must yield the same
  /// values again, the intervals allow for dependence within a group; without, values are
  /// independent.
  LatencyStats finish(const Groups& groups = {});

  bool approximate() const { return histogram_.has_value(); }

 private:
  std::optional<double> quantile(double q) const;
  std::optional<stats::Interval> interval(double q, double value, const Groups& groups) const;
  std::optional<double> value_at_rank(int64_t rank) const;
  void to_histogram();
  void keep(double ms);

  int64_t exact_values_max_;
  std::vector<double> values_;
  std::optional<stats::Histogram> histogram_;  // of ns
  stats::Moments moments_;
  stats::BatchRatio series_;
};

/// Samples needed before the q-quantile is shown: n (1 - q) >= 10 from p90 on, else 1.
int64_t samples_needed(double q);

}  // namespace prony::record
