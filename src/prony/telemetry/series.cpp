#include "prony/telemetry/series.hpp"

#include <cmath>
#include <utility>

#include "prony/core/check.hpp"

namespace prony::telemetry {

void Series::add(core::Nanos t_ns, double value) {
  if (!std::isfinite(value)) return;
  PRONY_CHECK(count_ == 0 || t_ns >= last_ns_, "times of a series fall");
  last_ns_ = t_ns;
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = count_ == 0 ? value : std::max(max_, value);
  ++count_;
  mean_ += (value - mean_) / static_cast<double>(count_);

  ++pending_count_;
  if (pending_count_ == 1) {
    pending_ = {t_ns, value};
  } else {
    pending_.t_ns += (t_ns - pending_.t_ns) / pending_count_;
    pending_.value += (value - pending_.value) / static_cast<double>(pending_count_);
  }
  if (pending_count_ < stride_) return;
  pending_count_ = 0;
  push(pending_);
}

void Series::push(Point point) {
  points_.push_back(point);
  if (points_.size() < kPointsMax) return;
  for (size_t i = 0; i < kPointsMax / 2; ++i) {
    const auto &a = points_[2 * i], &b = points_[2 * i + 1];
    points_[i] = {a.t_ns + (b.t_ns - a.t_ns) / 2, (a.value + b.value) / 2};
  }
  points_.resize(kPointsMax / 2);
  stride_ *= 2;
}

core::Json Series::to_json() const {
  PRONY_CHECK(count_ > 0, "a series without samples");
  auto points = points_;
  if (pending_count_ > 0) points.push_back(pending_);
  core::Json json = core::Json::object();
  json["name"] = name_;
  json["unit"] = unit_;
  json["source"] = source_;
  json["n"] = count_;
  // Rounding of the running mean must not put it outside the extremes.
  json["mean"] = std::clamp(mean_, min_, max_);
  json["min"] = min_;
  json["max"] = max_;
  core::Json times = core::Json::array(), values = core::Json::array();
  for (const auto& point : points) {
    times.push_back(point.t_ns);
    values.push_back(point.value);
  }
  json["t_ns"] = std::move(times);
  json["values"] = std::move(values);
  return json;
}

}  // namespace prony::telemetry
