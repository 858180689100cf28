#include "prony/report/series.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "prony/core/check.hpp"
#include "prony/record/row_metrics.hpp"

namespace prony::report {
namespace {

using record::RequestRow;
using record::Status;

constexpr uint64_t kSampleSeed = 0x70726f6e79;  // any constant: the same page for the same run

// Instants to the nanosecond, as they were taken: shorter in the page, and nothing is lost.
double round_ms(double ms) {
  return std::round(ms * 1e6) / 1e6;
}
double round_fraction(double p) {
  return std::round(p * 1e7) / 1e7;
}

void keep_point(CdfPoints& points, double x_ms, double p) {
  if (!points.x_ms.empty() && points.x_ms.back() == x_ms) {
    points.p.back() = p;
    return;
  }
  points.x_ms.push_back(x_ms);
  points.p.push_back(p);
}

// The least of 1, 2, 5 times a power of ten that is >= x > 0.
core::Nanos nice_width_ns(core::Nanos at_least_ns) {
  for (core::Nanos power = 1;; power *= 10) {
    for (const core::Nanos step : {1, 2, 5}) {
      if (step * power >= at_least_ns) return step * power;
    }
  }
}

// Adds amounts to buckets of equal width.
class Buckets {
 public:
  Buckets(core::Nanos origin_ns, core::Nanos width_ns, size_t count)
      : origin_ns_(origin_ns), width_ns_(width_ns), sums_(count, 0.0) {}

  size_t index(core::Nanos at_ns) const {
    const core::Nanos offset = std::max<core::Nanos>(0, at_ns - origin_ns_);
    return std::min(sums_.size() - 1, static_cast<size_t>(offset / width_ns_));
  }
  void add(core::Nanos at_ns, double amount) { sums_[index(at_ns)] += amount; }
  /// `amount` evenly over [begin_ns, end_ns], begin_ns < end_ns.
  void spread(core::Nanos begin_ns, core::Nanos end_ns, double amount) {
    const auto length = static_cast<double>(end_ns - begin_ns);
    for (size_t i = index(begin_ns); i <= index(end_ns); ++i) {
      sums_[i] += amount * static_cast<double>(overlap_ns(i, begin_ns, end_ns)) / length;
    }
  }
  /// The sums over `unit_ns` instead of over the width of a bucket.
  std::vector<double> per(core::Nanos unit_ns) const {
    std::vector<double> rates = sums_;
    const double scale = static_cast<double>(unit_ns) / static_cast<double>(width_ns_);
    for (double& rate : rates) rate = std::round(rate * scale * 1e4) / 1e4;
    return rates;
  }

 private:
  core::Nanos overlap_ns(size_t i, core::Nanos begin_ns, core::Nanos end_ns) const {
    const core::Nanos left = origin_ns_ + static_cast<core::Nanos>(i) * width_ns_;
    // The first and the last bucket take what lies outside.
    const core::Nanos low = i == 0 ? begin_ns : std::max(left, begin_ns);
    const core::Nanos high = i + 1 == sums_.size() ? end_ns : std::min(left + width_ns_, end_ns);
    return std::max<core::Nanos>(0, high - low);
  }
  core::Nanos origin_ns_, width_ns_;
  std::vector<double> sums_;
};

// Without stored events: the first event's tokens at the first stamp, the rest at even distances.
void add_tokens_without_events(const RequestRow& row, int64_t tokens, Buckets& buckets) {
  if (!row.t_first_token_ns || !row.t_last_token_ns) {
    buckets.add(record::last_stamp_ns(row), static_cast<double>(tokens));
    return;
  }
  const core::Nanos first = *row.t_first_token_ns;
  const int64_t at_once = std::clamp<int64_t>(row.first_event_tokens, 1, tokens);
  buckets.add(first, static_cast<double>(at_once));
  const int64_t rest = tokens - at_once;
  const double step =
      rest < 1 ? 0 : static_cast<double>(*row.t_last_token_ns - first) / static_cast<double>(rest);
  for (int64_t i = 1; i <= rest; ++i) {
    buckets.add(first + static_cast<core::Nanos>(step * static_cast<double>(i)), 1);
  }
}

// The tokens of one request by the instant of their arrival: the rule of record::tokens_in_window,
// for all buckets in one pass.
void add_tokens(const RequestRow& row, Buckets& buckets) {
  const double tokens = record::tokens_of(row);
  if (tokens <= 0) return;
  if (row.events.empty()) {
    add_tokens_without_events(row, static_cast<int64_t>(tokens), buckets);
    return;
  }
  double counted = 0;
  for (const auto& event : row.events) counted += event.tokens;
  const bool by_count = row.tokens_per_event_exact && counted > 0;
  for (const auto& event : row.events) {
    const double share =
        by_count ? event.tokens / counted : 1.0 / static_cast<double>(row.events.size());
    buckets.add(event.t_kernel_ns, tokens * share);
  }
}

// The largest number in flight within each bucket, from the instants at which it changes.
std::vector<double> peaks(std::vector<std::pair<core::Nanos, int>> changes, const Buckets& buckets,
                          size_t count) {
  // At one instant ends come first: a connection that hands over to the next request at once is
  // one in flight, not two.
  std::sort(changes.begin(), changes.end());
  std::vector<double> peak(count, 0.0);
  int64_t level = 0;
  size_t at = 0;
  for (const auto& [t_ns, change] : changes) {
    const size_t next = buckets.index(t_ns);
    for (; at < next; ++at) peak[at + 1] = static_cast<double>(level);  // carried over the edge
    level += change;
    peak[at] = std::max(peak[at], static_cast<double>(level));
  }
  return peak;
}

}  // namespace

std::vector<int64_t> shown_ranks(int64_t n, size_t points_max) {
  PRONY_CHECK(n >= 1 && points_max >= 16);
  const auto budget = static_cast<int64_t>(points_max);
  std::vector<int64_t> ranks;
  if (n <= budget) {
    ranks.resize(static_cast<size_t>(n));
    std::iota(ranks.begin(), ranks.end(), int64_t{1});
    return ranks;
  }
  // The tail is what a reader looks at: the last values one by one, before them ever wider steps,
  // and an even comb below.
  const int64_t last = budget / 8, steps = budget / 8, even = budget - last - steps;
  for (int64_t i = 0; i < even; ++i) ranks.push_back(1 + (n - 1) * i / (even - 1));
  const double ratio = static_cast<double>(n) / static_cast<double>(last);
  for (int64_t i = 0; i < steps; ++i) {
    const double back = static_cast<double>(last) *
                        std::pow(ratio, static_cast<double>(i) / static_cast<double>(steps));
    ranks.push_back(n - static_cast<int64_t>(back) + 1);
  }
  for (int64_t i = 0; i < last; ++i) ranks.push_back(n - i);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

Distribution::Distribution(size_t exact_values_max) : exact_values_max_(exact_values_max) {}

void Distribution::add(double value_ms) {
  ++n_;
  const double value = std::max(0.0, value_ms);
  const auto to_ns = [](double ms) { return static_cast<uint64_t>(ms * 1e6 + 0.5); };
  if (!histogram_ns_ && values_ms_.size() < exact_values_max_) {
    values_ms_.push_back(value);
    return;
  }
  if (!histogram_ns_) {
    auto created = stats::Histogram::create({});
    PRONY_CHECK(created.ok());
    histogram_ns_ = std::move(created).value();
    for (const double kept : values_ms_) histogram_ns_->record(to_ns(kept));
    values_ms_ = {};
  }
  histogram_ns_->record(to_ns(value));
}

CdfPoints Distribution::points(size_t points_max) {
  CdfPoints result;
  result.n = n_;
  if (n_ == 0) return result;
  const auto ranks = shown_ranks(n_, points_max);
  const auto total = static_cast<double>(n_);
  if (histogram_ns_) {
    result.exact = false;
    result.thinned = true;
    for (const int64_t rank : ranks) {
      const auto x_ns = histogram_ns_->value_at_rank(static_cast<uint64_t>(rank));
      if (!x_ns) break;  // beyond an hour: the curve ends below 1
      const auto below = static_cast<double>(histogram_ns_->count_at_or_below(*x_ns));
      keep_point(result, round_ms(static_cast<double>(*x_ns) / 1e6), round_fraction(below / total));
    }
    return result;
  }
  std::sort(values_ms_.begin(), values_ms_.end());
  for (const int64_t rank : ranks) {
    const double x = values_ms_[static_cast<size_t>(rank - 1)];
    const auto end = std::upper_bound(values_ms_.begin(), values_ms_.end(), x);
    keep_point(result, round_ms(x),
               round_fraction(static_cast<double>(end - values_ms_.begin()) / total));
  }
  result.thinned = static_cast<int64_t>(ranks.size()) < n_;
  return result;
}

std::optional<Timeline> timeline(const record::RowSource& rows, size_t buckets_max) {
  PRONY_CHECK(buckets_max >= 1);
  if (rows.empty()) return std::nullopt;
  core::Nanos begin = std::numeric_limits<core::Nanos>::max();
  core::Nanos end = std::numeric_limits<core::Nanos>::min();
  rows.for_each([&](const RequestRow& row) {
    begin = std::min(begin, row.t_intended_ns);
    end = std::max(end, record::last_stamp_ns(row));
  });
  if (end <= begin) return std::nullopt;
  const auto most = static_cast<core::Nanos>(buckets_max);
  const core::Nanos width = nice_width_ns((end - begin + most - 1) / most);
  const auto count = static_cast<size_t>((end - begin + width - 1) / width);

  Buckets tokens(begin, width, count), flight_ns(begin, width, count), failed(begin, width, count);
  std::vector<std::pair<core::Nanos, int>> changes;
  rows.for_each([&](const RequestRow& row) {
    add_tokens(row, tokens);
    const core::Nanos done = record::flight_end_ns(row);
    if (row.t_send_ns && done > *row.t_send_ns) {
      flight_ns.spread(*row.t_send_ns, done, static_cast<double>(done - *row.t_send_ns));
      changes.emplace_back(*row.t_send_ns, 1);
      changes.emplace_back(done, -1);
    }
    if (row.status != Status::kOk) failed.add(done, 1);
  });
  Timeline result;
  result.origin_ns = begin;
  result.bucket_s = static_cast<double>(width) / 1e9;
  result.output_tokens_per_s = tokens.per(core::kNanosPerSecond);
  result.in_flight_mean = flight_ns.per(1);
  result.in_flight_max = peaks(std::move(changes), flight_ns, count);
  result.failed_per_s = failed.per(core::kNanosPerSecond);
  return result;
}

ScatterSample::ScatterSample(size_t points_max)
    : sample_max_(points_max - kSlowestKept), rng_(kSampleSeed) {
  PRONY_CHECK(points_max > kSlowestKept);
}

void ScatterSample::add(const RequestRow& completed) {
  // One axis, one meaning: the length asked for, unless the server counted every prompt.
  counted_ = counted_ && completed.prompt_tokens.has_value();
  const auto ttft = record::ttft_ms(completed);
  if (!ttft) return;
  ++n_;
  Point point = {static_cast<double>(completed.input_tokens_asked),
                 static_cast<double>(completed.prompt_tokens.value_or(0)), round_ms(*ttft)};
  slowest_.push_back(point);
  std::push_heap(slowest_.begin(), slowest_.end());
  if (slowest_.size() <= kSlowestKept) return;
  std::pop_heap(slowest_.begin(), slowest_.end());
  point = slowest_.back();
  slowest_.pop_back();
  // The rest pass here one by one; each stays with the same probability (Vitter's algorithm R, ACM
  // TOMS 11(1), 1985).
  ++sampled_;
  if (sample_.size() < sample_max_) {
    sample_.push_back(point);
  } else if (const auto place = rng_.below(static_cast<uint64_t>(sampled_)); place < sample_max_) {
    sample_[place] = point;
  }
}

Scatter ScatterSample::finish() const {
  Scatter result;
  result.n = n_;
  result.server_count = counted_ && n_ > 0;
  for (const auto* points : {&slowest_, &sample_}) {
    for (const auto& point : *points) {
      result.input_tokens.push_back(result.server_count ? point.counted : point.asked);
      result.ttft_ms.push_back(point.ttft_ms);
    }
  }
  return result;
}

}  // namespace prony::report
