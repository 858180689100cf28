// LatencyCollector: values of one latency in, LatencyStats out. Keeps the values up to a limit and
// is exact; beyond it turns into a histogram of ns (<= 0.1 % late), so that a long run of many
// tokens needs no memory per token.
// Thread safety: none.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "prony/record/metrics.hpp"
#include "prony/stats/batch_ratio.hpp"
#include "prony/stats/histogram.hpp"
#include "prony/stats/moments.hpp"
#include "prony/stats/quantile.hpp"

namespace prony::record {

class LatencyCollector {
 public:
  /// `grouped`: values come in groups that hang together, so the intervals need add_group();
  /// otherwise the values are independent.
  explicit LatencyCollector(int64_t exact_values_max, bool grouped = false)
      : exact_values_max_(exact_values_max), grouped_(grouped) {}

  void add(double ms);
  void add(const std::optional<double>& ms) {
    if (ms) add(*ms);
  }
  /// Values that hang together, the gaps of one stream: one observation of the series.
  void add(std::span<const double> values_ms);

  // The interval of the mean takes the order of the calls for the order of the requests.

  /// Ends the adding of values, which are sorted in place.
  void close();
  /// After close(), of a collector of groups (checked): every value again, a group of values that
  /// hang together (the gaps of one stream) at a time.
  void add_group(std::span<const double> values_ms);
  /// After close() and the groups (checked).
  LatencyStats finish() const;

  /// After finish(): any quantile, whatever the number of values; nullopt without any. For figures
  /// of other tools, which have no rule for how many samples a percentile needs.
  std::optional<double> percentile(double q) const;

  bool approximate() const { return histogram_.has_value(); }

 private:
  static constexpr std::array kLevels = {0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999};
  // A quantile, and what the groups say of it.
  struct Level {
    std::optional<double> value;
    stats::GroupedProportion groups;
  };
  static std::array<Level, kLevels.size()> levels();

  std::optional<double> quantile(double q) const;
  std::optional<stats::Interval> interval(size_t level) const;
  std::optional<double> value_at_rank(int64_t rank) const;
  void to_histogram();
  void keep(double ms);

  int64_t exact_values_max_;
  bool grouped_;
  bool closed_ = false;
  std::array<Level, kLevels.size()> levels_ = levels();
  std::vector<double> values_;
  std::optional<stats::Histogram> histogram_;  // of ns
  stats::Moments moments_;
  stats::BatchRatio series_;
};

/// Samples needed before the q-quantile is shown: n (1 - q) >= 10 from p90 on, else 1.
int64_t samples_needed(double q);

}  // namespace prony::record
