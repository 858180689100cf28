#include "prony/record/latency_collector.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "prony/core/check.hpp"
#include "prony/record/row_metrics.hpp"

namespace prony::record {
namespace {

// Lags may come out a little negative (two clocks were compared); a histogram counts them as 0.
uint64_t to_ns(double ms) {
  return ms <= 0 ? 0 : static_cast<uint64_t>(std::llround(ms * 1e6));
}

}  // namespace

int64_t samples_needed(double q) {
  if (q < 0.9) return 1;
  // 10 / (1 - q) as a whole number: 1 - 0.9 is not exactly 0.1.
  return std::llround(10 / (1 - q));
}

void LatencyCollector::add(double ms) {
  keep(ms);
  series_.add(ms);
}

void LatencyCollector::add(std::span<const double> values_ms) {
  if (values_ms.empty()) return;
  double sum = 0;
  for (const double ms : values_ms) {
    keep(ms);
    sum += ms;
  }
  series_.add(sum, static_cast<double>(values_ms.size()));
}

void LatencyCollector::keep(double ms) {
  moments_.add(ms);
  if (histogram_) {
    histogram_->record(to_ns(ms));
    return;
  }
  values_.push_back(ms);
  if (static_cast<int64_t>(values_.size()) > exact_values_max_) to_histogram();
}

void LatencyCollector::to_histogram() {
  // A day in ns: longer than any request, since time-outs end those.
  histogram_ = stats::Histogram::create({.value_max = 86'400'000'000'000}).value();
  for (const double ms : values_) histogram_->record(to_ns(ms));
  values_.clear();
  values_.shrink_to_fit();
}

std::optional<double> LatencyCollector::value_at_rank(int64_t rank) const {
  if (!histogram_) return values_[static_cast<size_t>(rank - 1)];
  const auto ns = histogram_->value_at_rank(static_cast<uint64_t>(rank));
  if (!ns) return std::nullopt;
  return static_cast<double>(*ns) / kNanosPerMs;
}

std::optional<double> LatencyCollector::quantile(double q) const {
  return moments_.n() < samples_needed(q) ? std::nullopt : percentile(q);
}

std::optional<double> LatencyCollector::percentile(double q) const {
  const int64_t n = moments_.n();
  if (n == 0) return std::nullopt;
  if (histogram_) return value_at_rank(stats::nearest_rank(q, n));
  return stats::quantile_linear(values_, q);
}

std::array<LatencyCollector::Level, LatencyCollector::kLevels.size()> LatencyCollector::levels() {
  return std::apply(
      [](auto... q) {
        return std::array{Level{std::nullopt, stats::GroupedProportion(q)}...};
      },
      kLevels);
}

void LatencyCollector::close() {
  PRONY_CHECK(!closed_, "closed twice");
  closed_ = true;
  std::sort(values_.begin(), values_.end());
  for (size_t i = 0; i < levels_.size(); ++i) levels_[i].value = quantile(kLevels[i]);
}

void LatencyCollector::add_group(std::span<const double> values_ms) {
  PRONY_CHECK(grouped_ && closed_, "groups follow the values");
  std::array<int64_t, kLevels.size()> below{};
  size_t known = 0;  // the levels that n shows; the later ones are not looked at
  while (known < levels_.size() && levels_[known].value) ++known;
  for (const double ms : values_ms) {
    const double value =
        histogram_ ? static_cast<double>(histogram_->reported(to_ns(ms))) / kNanosPerMs : ms;
    for (size_t i = 0; i < known; ++i) below[i] += value <= *levels_[i].value;
  }
  for (size_t i = 0; i < known; ++i) {
    levels_[i].groups.add(static_cast<int64_t>(values_ms.size()), below[i]);
  }
}

std::optional<stats::Interval> LatencyCollector::interval(size_t level) const {
  if (!levels_[level].value) return std::nullopt;
  const double q = kLevels[level];
  const int64_t n = moments_.n();
  std::optional<stats::RankInterval> ranks;
  if (grouped_) {
    const auto effective = levels_[level].groups.effective_n();
    if (!effective) return std::nullopt;
    ranks = stats::quantile_ranks_effective(n, *effective, q);
  } else {
    ranks = stats::quantile_ranks(n, q);
  }
  if (!ranks) return std::nullopt;
  const auto lower = value_at_rank(ranks->lower), upper = value_at_rank(ranks->upper);
  if (!lower || !upper) return std::nullopt;
  return stats::Interval{*lower, *upper};
}

LatencyStats LatencyCollector::finish() const {
  PRONY_CHECK(closed_, "finish() before close()");
  LatencyStats out;
  out.n = moments_.n();
  out.mean = moments_.mean();
  out.sd = moments_.sd();
  out.min = moments_.min();
  out.max = moments_.max();
  // In the order of kLevels.
  auto& ci = out.ci95;
  const std::pair<std::optional<double>*, std::optional<stats::Interval>*> targets[] = {
      {&out.p50, &ci.p50}, {&out.p75, nullptr},   {&out.p90, &ci.p90},    {&out.p95, &ci.p95},
      {&out.p99, &ci.p99}, {&out.p999, &ci.p999}, {&out.p9999, &ci.p9999}};
  static_assert(std::size(targets) == kLevels.size());
  for (size_t i = 0; i < kLevels.size(); ++i) {
    auto& value = *targets[i].first;
    value = levels_[i].value;
    if (targets[i].second != nullptr) *targets[i].second = interval(i);
    // A bucket may end above the largest sample; the report must not show p99.9 above the maximum.
    if (value && histogram_) value = std::min(*value, *out.max);
  }
  ci.mean = series_.interval();
  return out;
}

}  // namespace prony::record
