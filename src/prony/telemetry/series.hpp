// Series: one quantity over time, bounded in memory however long the run: when it is full,
// neighbours are replaced by their mean and from then on so many samples make a point. Count, mean
// and extremes are of all samples, so that a peak is not lost with the points.
// Thread safety: none.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/json.hpp"

namespace prony::telemetry {

class Series {
 public:
  static constexpr size_t kPointsMax = 2000;

  Series(std::string name, std::string unit, std::string source)
      : name_(std::move(name)), unit_(std::move(unit)), source_(std::move(source)) {}

  /// A value that is not finite is dropped. Times must not fall (checked).
  void add(core::Nanos t_ns, double value);

  const std::string& name() const { return name_; }
  int64_t count() const { return count_; }
  double mean() const { return mean_; }
  double min() const { return min_; }
  double max() const { return max_; }

  /// {name, unit, source, n, mean, min, max, t_ns[], values[]}; requires count() > 0 (checked).
  core::Json to_json() const;

 private:
  struct Point {
    core::Nanos t_ns;
    double value;
  };
  void push(Point point);

  std::string name_, unit_, source_;
  std::vector<Point> points_;  // each the mean of stride_ samples
  int64_t stride_ = 1;
  Point pending_{};  // mean of the samples since the last point
  int64_t pending_count_ = 0;
  int64_t count_ = 0;
  double mean_ = 0, min_ = 0, max_ = 0;
  core::Nanos last_ns_ = 0;
};

}  // namespace prony::telemetry
