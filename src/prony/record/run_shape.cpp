#include "prony/record/run_shape.hpp"

#include <algorithm>
#include <tuple>

#include "prony/record/row_metrics.hpp"
#include "prony/record/steady_window.hpp"
#include "prony/stats/bootstrap.hpp"
#include "prony/stats/steady_state.hpp"

namespace prony::record {
namespace {

using core::Nanos;

/// Fewer events than this in the window say nothing about how a rate varies.
constexpr double kEventsMin = 10;
/// An overload is told from the last three quarters: the first one fills an empty system.
constexpr size_t kFilling = 4;
/// A queue that grows by less than this share of the arrivals is within what a busy but stable
/// queue does by chance.
constexpr double kGrowthMin = 0.03;
constexpr double kTrend = 0.01;        // p-value
constexpr double kRiseMin = 0.05;      // of the wait for the first token
constexpr double kTimeoutsMin = 0.05;  // share of attempts

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

bool is_timeout(Status status) {
  return status == Status::kTimeoutConnect || status == Status::kTimeoutTtft ||
         status == Status::kTimeoutStall || status == Status::kTimeoutTotal ||
         status == Status::kUnfinished;
}

// Batch means of a series, at most 20 of equal length.
std::vector<double> batch_means(std::span<const double> series) {
  constexpr size_t kBatches = 20;
  const size_t length = std::max<size_t>(1, series.size() / kBatches);
  std::vector<double> means;
  for (size_t i = 0; i + length <= series.size(); i += length) {
    means.push_back(mean_of(series.subspan(i, length)));
  }
  return means;
}

}  // namespace

RunShape::RunShape(const Window& window, const SummaryOptions& options)
    : window_(window), options_(options) {
  // Rounded up, so that the last slice is the shorter one.
  const Nanos length = window.end_ns - window.begin_ns;
  width_ns_ =
      std::max<Nanos>(1, (length + static_cast<Nanos>(kSlices) - 1) / static_cast<Nanos>(kSlices));
}

bool RunShape::inside(Nanos t_ns) const {
  return window_.begin_ns <= t_ns && t_ns <= window_.end_ns;
}
size_t RunShape::slice_of(Nanos t_ns) const {
  return std::min(static_cast<size_t>((t_ns - window_.begin_ns) / width_ns_), kSlices - 1);
}
Nanos RunShape::slice_begin_ns(size_t slice) const {
  return std::min(window_.end_ns, window_.begin_ns + static_cast<Nanos>(slice) * width_ns_);
}
double RunShape::slice_s(size_t slice) const {
  const Nanos end = slice + 1 == kSlices ? window_.end_ns : slice_begin_ns(slice + 1);
  return core::to_seconds(end - slice_begin_ns(slice));
}

void RunShape::add(const RequestRow& row) {
  visit_tokens(row, [this](Nanos t_ns, double tokens) {
    if (inside(t_ns)) slices_[slice_of(t_ns)].output_tokens += tokens;
  });
  if (row.status == Status::kOk && row.t_last_token_ns && inside(*row.t_last_token_ns)) {
    slices_[slice_of(*row.t_last_token_ns)].completions += 1;
  }
  if (row.t_send_ns && inside(*row.t_send_ns)) {
    ++sent_;
    residence_ns_ += static_cast<double>(std::max<Nanos>(0, flight_end_ns(row) - *row.t_send_ns));
  }
  add_time_in_system(row);
  if (inside(row.t_intended_ns)) add_to_population(row);
}

void RunShape::add_to_population(const RequestRow& row) {
  Brief brief{row.t_intended_ns, row.index, -1, row.status, is_good(row, options_.goodput)};
  if (row.status == Status::kOk) {
    brief.judged_ms = judged_latency_ms(row, options_.open_loop).value_or(-1);
  }
  auto& slice = slices_[slice_of(row.t_intended_ns)];
  ++slice.attempted;
  if (row.status != Status::kOk) ++slice.errors[status_name(row.status)];
  if (brief.good) {
    slice.good += 1;
    slice.good_tokens += tokens_of(row);
  }
  population_.push_back(brief);
}

// From the intended start: what waits for a place waits in the system too.
void RunShape::add_time_in_system(const RequestRow& row) {
  // One that never left waited for as long as the run lasted.
  const Nanos end =
      row.t_send_ns ? flight_end_ns(row) : std::max(last_stamp_ns(row), window_.end_ns);
  const Nanos from = std::max(row.t_intended_ns, window_.begin_ns);
  const Nanos to = std::min(end, window_.end_ns);
  if (to <= from) return;
  for (size_t i = slice_of(from); i <= slice_of(to); ++i) {
    const Nanos slice_end = i + 1 == kSlices ? window_.end_ns : slice_begin_ns(i + 1);
    const Nanos overlap = std::min(to, slice_end) - std::max(from, slice_begin_ns(i));
    slices_[i].in_system_ns += static_cast<double>(std::max<Nanos>(0, overlap));
  }
}

void RunShape::finish(Metrics& metrics) {
  std::sort(population_.begin(), population_.end(), [](const Brief& a, const Brief& b) {
    return std::tie(a.t_intended_ns, a.index) < std::tie(b.t_intended_ns, b.index);
  });
  set_intervals(metrics);
  set_little(metrics);
  judge_steadiness(metrics);
  judge_overload(metrics);
  set_failures(metrics);
}

void RunShape::set_intervals(Metrics& metrics) const {
  const auto interval = [&](double Slice::*amount) -> std::optional<stats::Interval> {
    std::vector<stats::RatioBatch> batches;
    double total = 0;
    for (size_t i = 0; i < kSlices; ++i) {
      if (slice_s(i) > 0) batches.push_back({slices_[i].*amount, slice_s(i)});
      total += slices_[i].*amount;
    }
    if (total < kEventsMin) return std::nullopt;
    auto out = stats::bootstrap_ratio(stats::decorrelated(std::move(batches)));
    if (out) out->lower = std::max(0.0, out->lower);  // no rate is negative
    return out;
  };
  auto& ci = metrics.ci95;
  ci.request_throughput = interval(&Slice::completions);
  ci.output_throughput = interval(&Slice::output_tokens);
  if (!options_.goodput.empty()) {
    ci.goodput = interval(&Slice::good);
    ci.goodput_output_throughput = interval(&Slice::good_tokens);
  }
  if (population_.empty()) return;
  stats::BatchRatio good, failed;
  int64_t good_count = 0, failed_count = 0;
  for (const auto& brief : population_) {
    const bool fails = brief.status != Status::kOk;
    good.add(brief.good ? 1 : 0);
    failed.add(fails ? 1 : 0);
    good_count += brief.good;
    failed_count += fails;
  }
  const auto n = static_cast<int64_t>(population_.size());
  ci.error_rate =
      stats::clustered_proportion(failed_count, n, stats::decorrelated(failed.batches()));
  if (!options_.goodput.empty()) {
    ci.goodput_fraction =
        stats::clustered_proportion(good_count, n, stats::decorrelated(good.batches()));
  }
}

void RunShape::set_little(Metrics& metrics) const {
  const double window_s = core::to_seconds(window_.end_ns - window_.begin_ns);
  if (sent_ == 0 || !(window_s > 0) || !(metrics.concurrency_mean.value_or(0) > 0)) return;
  LittlesLaw little;
  little.in_flight = *metrics.concurrency_mean;
  little.rate = static_cast<double>(sent_) / window_s;
  little.residence_s = residence_ns_ / static_cast<double>(sent_) / 1e9;
  little.discrepancy = little.rate * little.residence_s / little.in_flight - 1;
  metrics.little = little;
}

void RunShape::judge_steadiness(Metrics& metrics) const {
  std::vector<double> series;
  for (const auto& brief : population_) {
    if (brief.judged_ms >= 0) series.push_back(brief.judged_ms);
  }
  if (const auto state = stats::assess_steady_state(series)) {
    metrics.steady = state->steady;
    metrics.steady_change = state->change;
  }
}

// Overload: the number in the system grows to the end of the window, by a share of the arrivals
// that chance does not explain, and either the wait for the first token grows with it or requests
// are lost to time-outs.
void RunShape::judge_overload(Metrics& metrics) const {
  if (!options_.open_loop || population_.size() < static_cast<size_t>(stats::kSteadyStateMin)) {
    return;
  }
  std::vector<double> in_system;
  double span_s = 0;
  for (size_t i = kSlices / kFilling; i < kSlices; ++i) {
    if (!(slice_s(i) > 0)) continue;
    in_system.push_back(slices_[i].in_system_ns / 1e9 / slice_s(i));
    span_s += slice_s(i);
  }
  const size_t third = in_system.size() / 3;
  if (third == 0) return;
  const auto all = std::span<const double>(in_system);
  // From the middle of the first third to the middle of the last are two thirds of the span.
  const double growth = (mean_of(all.last(third)) - mean_of(all.first(third))) / (span_s * 2 / 3);
  metrics.queue_growth = growth;
  const double rate = static_cast<double>(population_.size()) /
                      std::max(1e-9, core::to_seconds(window_.end_ns - window_.begin_ns));
  const bool grows = stats::trend_p_value(all) < kTrend && growth > kGrowthMin * rate;

  const Nanos filled = slice_begin_ns(kSlices / kFilling);
  std::vector<double> waits;
  int64_t timeouts = 0;
  for (const auto& brief : population_) {
    timeouts += is_timeout(brief.status);
    if (brief.t_intended_ns >= filled && brief.judged_ms >= 0) waits.push_back(brief.judged_ms);
  }
  const auto means = batch_means(waits);
  bool rises = false;
  if (means.size() >= 10) {
    const auto half = std::span<const double>(means);
    const double before = mean_of(half.first(half.size() / 2));
    const double after = mean_of(half.last(half.size() / 2));
    rises = stats::trend_p_value(means) < kTrend && after > before * (1 + kRiseMin);
  }
  const bool lost =
      static_cast<double>(timeouts) > kTimeoutsMin * static_cast<double>(population_.size());
  metrics.overloaded = grows && (rises || lost);
}

void RunShape::set_failures(Metrics& metrics) const {
  if (metrics.failed.value_or(0) == 0) return;
  for (size_t i = 0; i < kSlices; ++i) {
    const auto& slice = slices_[i];
    if (slice.attempted == 0) continue;
    const Nanos end = i + 1 == kSlices ? window_.end_ns : slice_begin_ns(i + 1);
    metrics.error_slices.push_back({core::to_seconds(slice_begin_ns(i) - window_.begin_ns),
                                    core::to_seconds(end - window_.begin_ns), slice.attempted,
                                    slice.errors});
  }
  FailureRun run, longest;
  for (const auto& brief : population_) {
    if (brief.status == Status::kOk) {
      run = {};
      continue;
    }
    const double t_s = core::to_seconds(brief.t_intended_ns - window_.begin_ns);
    if (run.requests++ == 0) run.begin_s = t_s;
    run.end_s = t_s;
    ++run.errors[status_name(brief.status)];
    if (run.requests > longest.requests) longest = run;
  }
  metrics.longest_failure_run = longest;
}

}  // namespace prony::record
