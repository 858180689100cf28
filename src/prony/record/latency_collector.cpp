#include "prony/record/latency_collector.hpp"

#include <algorithm>
#include <cmath>

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
  const int64_t n = moments_.n();
  if (n < samples_needed(q)) return std::nullopt;
  if (histogram_) return value_at_rank(stats::nearest_rank(q, n));
  return stats::quantile_linear(values_, q);
}

std::optional<stats::Interval> LatencyCollector::interval(double q, double value,
                                                          const Groups& groups) const {
  const int64_t n = moments_.n();
  std::optional<stats::RankInterval> ranks;
  if (groups) {
    stats::GroupedProportion grouped(q);
    const uint64_t bound_ns = to_ns(value);
    groups([&](std::span<const double> group) {
      const auto below = std::count_if(group.begin(), group.end(), [&](double ms) {
        return histogram_ ? histogram_->reported(to_ns(ms)) <= bound_ns : ms <= value;
      });
      grouped.add(static_cast<int64_t>(group.size()), below);
    });
    const auto effective = grouped.effective_n();
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

LatencyStats LatencyCollector::finish(const Groups& groups) {
  std::sort(values_.begin(), values_.end());
  LatencyStats out;
  out.n = moments_.n();
  out.mean = moments_.mean();
  out.sd = moments_.sd();
  out.min = moments_.min();
  out.max = moments_.max();
  struct Level {
    double q;
    std::optional<double>& value;
    std::optional<stats::Interval>* interval;
  };
  const Level levels[] = {{0.5, out.p50, &out.ci95.p50},       {0.75, out.p75, nullptr},
                          {0.9, out.p90, &out.ci95.p90},       {0.95, out.p95, &out.ci95.p95},
                          {0.99, out.p99, &out.ci95.p99},      {0.999, out.p999, &out.ci95.p999},
                          {0.9999, out.p9999, &out.ci95.p9999}};
  for (const auto& level : levels) {
    level.value = quantile(level.q);
    if (level.value && level.interval != nullptr) {
      *level.interval = interval(level.q, *level.value, groups);
    }
  }
  out.ci95.mean = series_.interval();
  // A bucket may end above the largest sample; the report must not show p99.9 above the maximum.
  if (histogram_) {
    for (const auto& level : levels) {
      if (level.value) level.value = std::min(*level.value, *out.max);
    }
  }
  return out;
}

}  // namespace prony::record
