#include "prony/record/summary.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/record/latency_collector.hpp"
#include "prony/record/row_groups.hpp"
#include "prony/record/row_metrics.hpp"
#include "prony/record/run_shape.hpp"
#include "prony/record/steady_window.hpp"

namespace prony::record {
namespace {

using core::Nanos;

// Streams shorter than this say nothing about bursts: two of two tokens in one event is a draft
// accepted, not a buffering proxy.
constexpr double kBurstyTokensMin = 8;

std::optional<double> rate(double amount, std::optional<double> over_s) {
  if (!over_s || !(*over_s > 0)) return std::nullopt;
  return amount / *over_s;
}

void tally(TokenTally& tally, int32_t asked, const std::optional<int32_t>& got) {
  ++tally.requests;
  tally.asked += asked;
  if (!got) {
    ++tally.unknown;
    return;
  }
  tally.got += *got;
  ++(*got == asked ? tally.equal : *got < asked ? tally.fewer : tally.more);
}

void append_read_lag_ms(const RequestRow& row, std::vector<double>& out) {
  for (const auto& event : row.events) {
    out.push_back(core::to_ms(event.t_user_ns - event.t_kernel_ns));
  }
}

std::optional<double> user_tokens_per_s(const RequestRow& row) {
  const auto tpot = tpot_ms(row);
  if (!tpot || !(*tpot > 0)) return std::nullopt;  // all tokens at one instant: no speed
  return 1000 / *tpot;
}

// The latencies, and where each comes from: one value a request, or many that hang together. Of the
// completed requests, or, for the client's own behaviour, of whatever became of them.
struct PerRequest {
  LatencyStats Metrics::*stats;
  const char* name;
  std::optional<double> (*value)(const RequestRow&);
  bool completed_only = true;
};
constexpr PerRequest kPerRequest[] = {
    {&Metrics::ttft_ms, "ttft_ms", ttft_ms},
    {&Metrics::tpot_ms, "tpot_ms", tpot_ms},
    {&Metrics::e2e_ms, "e2e_ms", e2e_ms},
    {&Metrics::ttft_intended_ms, "ttft_intended_ms", ttft_intended_ms},
    {&Metrics::e2e_intended_ms, "e2e_intended_ms", e2e_intended_ms},
    {&Metrics::ttfe_ms, "ttfe_ms", ttfe_ms},
    {&Metrics::ttfo_ms, "ttfo_ms", ttfo_ms},
    {&Metrics::ntpot_ms, "ntpot_ms", ntpot_ms},
    {&Metrics::tpot_vllm_ms, "tpot_vllm_ms", tpot_vllm_ms},
    {&Metrics::user_tokens_per_s, "user_tokens_per_s", user_tokens_per_s},
    {&Metrics::prefill_tokens_per_s, "prefill_tokens_per_s", prefill_tokens_per_s},
    {&Metrics::send_lag_ms, "send_lag_ms", send_lag_ms, false},
    {&Metrics::connect_ms, "connect_ms", connect_ms, false}};

struct PerEvent {
  LatencyStats Metrics::*stats;
  const char* name;
  void (*append)(const RequestRow&, std::vector<double>&);
  bool completed_only = true;
};
constexpr PerEvent kPerEvent[] = {
    {&Metrics::itl_ms, "itl_ms", append_itl_ms},
    {&Metrics::icl_ms, "icl_ms", append_icl_ms},
    {&Metrics::read_lag_ms, "read_lag_ms", append_read_lag_ms, false}};

class Latencies {
 public:
  explicit Latencies(int64_t exact_values_max) {
    per_request_.resize(std::size(kPerRequest), LatencyCollector(exact_values_max));
    per_event_.resize(std::size(kPerEvent), LatencyCollector(exact_values_max, true));
  }
  // Of the population.
  void add(const RequestRow& row) {
    const bool ok = row.status == Status::kOk;
    for (size_t i = 0; i < per_request_.size(); ++i) {
      if (ok || !kPerRequest[i].completed_only) per_request_[i].add(kPerRequest[i].value(row));
    }
    for (size_t i = 0; i < per_event_.size(); ++i) {
      if (ok || !kPerEvent[i].completed_only) per_event_[i].add(values_of(row, kPerEvent[i]));
    }
  }
  void close() {
    for (auto& collector : per_request_) collector.close();
    for (auto& collector : per_event_) collector.close();
  }
  // The same rows again, after close().
  void add_groups(const RequestRow& row) {
    const bool ok = row.status == Status::kOk;
    for (size_t i = 0; i < per_event_.size(); ++i) {
      if (ok || !kPerEvent[i].completed_only) per_event_[i].add_group(values_of(row, kPerEvent[i]));
    }
  }
  void finish(Metrics& metrics) const {
    const auto put = [&](const auto& source, const LatencyCollector& collector) {
      metrics.*source.stats = collector.finish();
      if (!collector.approximate()) return;
      if (!metrics.approximate.empty()) metrics.approximate += ' ';
      metrics.approximate += source.name;
    };
    for (size_t i = 0; i < per_request_.size(); ++i) put(kPerRequest[i], per_request_[i]);
    for (size_t i = 0; i < per_event_.size(); ++i) put(kPerEvent[i], per_event_[i]);
  }

 private:
  std::span<const double> values_of(const RequestRow& row, const PerEvent& source) {
    values_.clear();
    source.append(row, values_);
    return values_;
  }
  std::vector<LatencyCollector> per_request_, per_event_;
  std::vector<double> values_;  // of one row
};

// What happened to the requests that were meant to start inside the window.
class Outcomes {
 public:
  Outcomes(const core::RequestSlo& slo, Metrics& metrics) : slo_(slo), metrics_(metrics) {
    metrics.attempted = metrics.completed = metrics.failed = 0;
  }
  void add(const RequestRow& row) {
    ++*metrics_.attempted;
    metrics_.retries += row.retries;
    metrics_.merged_events += row.merged_events;
    metrics_.token_events += static_cast<int64_t>(row.events.size());
    if (!slo_.empty() && is_good(row, slo_)) {
      ++good_;
      good_tokens_ += tokens_of(row);
    }
    if (row.status == Status::kOk) {
      ++*metrics_.completed;
      add_completed(row);
      return;
    }
    ++*metrics_.failed;
    ++metrics_.errors[status_name(row.status)];
    if (row.http_status && (*row.http_status < 200 || *row.http_status > 299)) {
      ++metrics_.http_errors[std::to_string(*row.http_status)];
    }
  }
  // Requires metrics.window_s.
  void finish() {
    metrics_.token_source_mixed = metrics_.token_sources.size() > 1;
    if (exact_ > 0 || by_event_ > 0) {
      metrics_.itl_basis = by_event_ == 0 ? "tokens" : exact_ == 0 ? "events" : "mixed";
    }
    if (slo_.empty()) return;
    metrics_.goodput = rate(static_cast<double>(good_), metrics_.window_s);
    metrics_.goodput_output_throughput = rate(good_tokens_, metrics_.window_s);
    if (*metrics_.attempted > 0) {
      metrics_.goodput_fraction =
          static_cast<double>(good_) / static_cast<double>(*metrics_.attempted);
    }
  }

 private:
  void add_completed(const RequestRow& row) {
    tally(metrics_.input_tokens, row.input_tokens_asked, row.prompt_tokens);
    tally(metrics_.output_tokens, row.output_tokens_asked, row.output_tokens);
    ++metrics_.token_sources[token_source_name(row.token_source)];
    metrics_.tpot_undefined += !tpot_ms(row).has_value();
    const auto burst = largest_burst_share(row);
    metrics_.bursty_streams += burst && *burst > 0.5 && tokens_of(row) >= kBurstyTokensMin;
    if (row.events.size() > 1) ++(row.tokens_per_event_exact ? exact_ : by_event_);
  }

  const core::RequestSlo& slo_;
  Metrics& metrics_;
  int64_t exact_ = 0, by_event_ = 0, good_ = 0;
  double good_tokens_ = 0;
};

// Tokens count when they arrive, whatever becomes of the request and whenever it was meant to
// start.
class Throughput {
 public:
  explicit Throughput(const Window& window) : window_(window) {}
  // Every row of the run.
  void add(const RequestRow& row) {
    first_ = std::min(first_, row.t_intended_ns);
    last_ = std::max(last_, last_stamp_ns(row));
    output_ += tokens_in_window(row, window_.begin_ns, window_.end_ns);
    output_run_ += tokens_of(row);
    if (window_.holds(row.t_first_token_ns)) {
      input_ += row.prompt_tokens.value_or(row.input_tokens_asked);
    }
    if (row.status != Status::kOk) return;
    ++completions_run_;
    completions_ += window_.holds(row.t_last_token_ns);
  }
  void finish(Metrics& metrics) const {
    metrics.window_s = core::to_seconds(window_.end_ns - window_.begin_ns);
    metrics.duration_s = core::to_seconds(last_ - first_);
    metrics.window_rule = window_.rule;
    metrics.request_throughput = rate(static_cast<double>(completions_), metrics.window_s);
    metrics.request_throughput_run =
        rate(static_cast<double>(completions_run_), metrics.duration_s);
    metrics.output_throughput = rate(output_, metrics.window_s);
    metrics.output_throughput_run = rate(output_run_, metrics.duration_s);
    metrics.total_throughput = rate(input_ + output_, metrics.window_s);
  }

 private:
  const Window& window_;
  double output_ = 0, output_run_ = 0, input_ = 0;
  int64_t completions_ = 0, completions_run_ = 0;
  Nanos first_ = std::numeric_limits<Nanos>::max(), last_ = std::numeric_limits<Nanos>::min();
};

// Instants a second between the first and the last; nullopt if that is no time at all.
class MeanRate {
 public:
  void add(Nanos t) {
    ++n_;
    low_ = std::min(low_, t);
    high_ = std::max(high_, t);
  }
  std::optional<double> per_s() const {
    if (n_ < 2) return std::nullopt;
    return rate(static_cast<double>(n_ - 1), core::to_seconds(high_ - low_));
  }

 private:
  int64_t n_ = 0;
  Nanos low_ = std::numeric_limits<Nanos>::max(), high_ = std::numeric_limits<Nanos>::min();
};

// Requests in flight, of all rows: 16 bytes a request.
class Concurrency {
 public:
  explicit Concurrency(const Window& window) : window_(window) {}
  void add(const RequestRow& row) {
    if (!row.t_send_ns) return;
    const Nanos end = std::max(flight_end_ns(row), *row.t_send_ns);
    sends_.push_back(*row.t_send_ns);
    ends_.push_back(end);
    const Nanos inside = std::min(end, window_.end_ns) - std::max(*row.t_send_ns, window_.begin_ns);
    busy_ns_ += static_cast<double>(std::max<Nanos>(0, inside));
  }
  void finish(Metrics& metrics) {
    std::sort(sends_.begin(), sends_.end());
    std::sort(ends_.begin(), ends_.end());
    int64_t most = 0;
    size_t ended = 0;
    for (size_t sent = 0; sent < sends_.size(); ++sent) {
      // An end at the same instant comes first: a place freed and taken again is one place.
      while (ended < ends_.size() && ends_[ended] <= sends_[sent]) ++ended;
      most = std::max(most, static_cast<int64_t>(sent + 1) - static_cast<int64_t>(ended));
    }
    metrics.concurrency_max = most;
    metrics.concurrency_mean = rate(busy_ns_ / 1e9, metrics.window_s);
  }

 private:
  const Window& window_;
  std::vector<Nanos> sends_, ends_;
  double busy_ns_ = 0;
};

}  // namespace

Window measurement_window(const RowSource& rows, const SummaryOptions& options) {
  const Window whole = whole_window(rows, options);
  return options.steady_part_only ? steady_window(rows, whole, options).window : whole;
}

Window whole_window(const RowSource& rows, const SummaryOptions& options) {
  PRONY_CHECK(!rows.empty(), "no rows, no window");
  Nanos first = std::numeric_limits<Nanos>::max(), last = std::numeric_limits<Nanos>::min();
  Nanos any = std::numeric_limits<Nanos>::min();
  std::optional<Nanos> completion;
  rows.for_each([&](const RequestRow& row) {
    first = std::min(first, row.t_intended_ns);
    last = std::max(last, row.t_intended_ns);
    any = std::max(any, last_stamp_ns(row));
    if (row.status != Status::kOk || !row.t_last_token_ns) return;
    completion = std::max(completion.value_or(*row.t_last_token_ns), *row.t_last_token_ns);
  });
  Window window;
  window.begin_ns = options.window_begin_ns.value_or(first);
  if (options.window_end_ns) {
    window.end_ns = std::max(window.begin_ns, *options.window_end_ns);
    window.rule = "given";
  } else if (options.open_loop && last > window.begin_ns) {
    window.end_ns = last;
    window.rule = "arrivals";
  } else {
    // The last intended start stays inside, so that no request drops out of the counts.
    window.end_ns = std::max({window.begin_ns, last, completion.value_or(any)});
    window.rule = "completions";
  }
  return window;
}

Metrics summarize(const RowSource& rows, const SummaryOptions& options) {
  Metrics metrics;
  metrics.requested_rate = options.requested_rate_per_s;
  metrics.goodput_slo = core::goodput_text(options.goodput);
  Latencies latencies(options.exact_values_max);
  if (rows.empty()) {
    metrics.attempted = metrics.completed = metrics.failed = 0;
    latencies.close();
    latencies.finish(metrics);
    return metrics;
  }
  const Window whole = whole_window(rows, options);
  const auto steady = steady_window(rows, whole, options);
  const Window window = options.steady_part_only ? steady.window : whole;
  metrics.warm_up = steady.warm_up;
  Outcomes outcomes(options.goodput, metrics);
  Throughput throughput(window);
  Concurrency concurrency(window);
  RunShape shape(window, options);
  MeanRate intended, sent;
  RowGroups turns(&RequestRow::turn), stages(&RequestRow::stage);
  rows.for_each([&](const RequestRow& row) {
    throughput.add(row);
    concurrency.add(row);
    shape.add(row);
    if (!window.holds(row.t_intended_ns)) return;
    outcomes.add(row);
    latencies.add(row);
    turns.add(row);
    stages.add(row);
    intended.add(row.t_intended_ns);
    if (row.t_send_ns) sent.add(*row.t_send_ns);
  });
  latencies.close();
  turns.close();
  stages.close();
  rows.for_each([&](const RequestRow& row) {
    if (!window.holds(row.t_intended_ns)) return;
    latencies.add_groups(row);
    turns.add_gaps(row);
    stages.add_gaps(row);
  });
  latencies.finish(metrics);
  metrics.turns = turns.finish<TurnStats>(window.begin_ns);
  metrics.stages = stages.finish<StageStats>(window.begin_ns);
  throughput.finish(metrics);
  outcomes.finish();
  concurrency.finish(metrics);
  shape.finish(metrics);
  metrics.intended_rate = intended.per_s();
  metrics.sent_rate = sent.per_s();
  return metrics;
}

Metrics summarize(std::span<const RequestRow> rows, const SummaryOptions& options) {
  return summarize(RowSpan(rows), options);
}

}  // namespace prony::record
