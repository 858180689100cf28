#include "prony/record/summary.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/record/latency_collector.hpp"
#include "prony/record/row_metrics.hpp"
#include "prony/record/run_shape.hpp"
#include "prony/record/steady_window.hpp"

namespace prony::record {
namespace {

using core::Nanos;
using Rows = std::span<const RequestRow>;

// Streams shorter than this say nothing about bursts: two of two tokens in one event is a draft
// accepted, not a buffering proxy.
constexpr double kBurstyTokensMin = 8;

double seconds(Nanos ns) {
  return static_cast<double>(ns) / 1e9;
}

std::optional<double> rate(double amount, std::optional<double> over_s) {
  if (!over_s || !(*over_s > 0)) return std::nullopt;
  return amount / *over_s;
}

bool in_window(const Window& window, const std::optional<Nanos>& t) {
  return t && window.begin_ns <= *t && *t <= window.end_ns;
}

// The rows whose outcome counts: meant to start inside the window.
std::vector<const RequestRow*> population_of(Rows rows, const Window& window) {
  std::vector<const RequestRow*> out;
  for (const auto& row : rows) {
    if (in_window(window, row.t_intended_ns)) out.push_back(&row);
  }
  std::sort(out.begin(), out.end(), [](const RequestRow* a, const RequestRow* b) {
    return std::pair(a->t_intended_ns, a->index) < std::pair(b->t_intended_ns, b->index);
  });
  return out;
}

void count_outcomes(std::span<const RequestRow* const> population, Metrics& metrics) {
  int64_t completed = 0;
  for (const auto* row : population) {
    metrics.retries += row->retries;
    metrics.merged_events += row->merged_events;
    metrics.token_events += static_cast<int64_t>(row->events.size());
    if (row->status == Status::kOk) {
      ++completed;
      continue;
    }
    ++metrics.errors[status_name(row->status)];
    if (row->http_status && (*row->http_status < 200 || *row->http_status > 299)) {
      ++metrics.http_errors[std::to_string(*row->http_status)];
    }
  }
  metrics.attempted = static_cast<int64_t>(population.size());
  metrics.completed = completed;
  metrics.failed = *metrics.attempted - completed;
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

void count_tokens(std::span<const RequestRow* const> completed, Metrics& metrics) {
  int64_t exact = 0, by_event = 0;
  for (const auto* row : completed) {
    tally(metrics.input_tokens, row->input_tokens_asked, row->prompt_tokens);
    tally(metrics.output_tokens, row->output_tokens_asked, row->output_tokens);
    ++metrics.token_sources[token_source_name(row->token_source)];
    metrics.tpot_undefined += !tpot_ms(*row).has_value();
    const auto burst = largest_burst_share(*row);
    metrics.bursty_streams += burst && *burst > 0.5 && tokens_of(*row) >= kBurstyTokensMin;
    if (row->events.size() > 1) ++(row->tokens_per_event_exact ? exact : by_event);
  }
  metrics.token_source_mixed = metrics.token_sources.size() > 1;
  if (exact > 0 || by_event > 0) {
    metrics.itl_basis = by_event == 0 ? "tokens" : exact == 0 ? "events" : "mixed";
  }
}

// One latency of every request in `rows` that has it.
template <class Function>
LatencyStats per_request(std::span<const RequestRow* const> rows, int64_t exact_values_max,
                         Function latency) {
  LatencyCollector collector(exact_values_max);
  for (const auto* row : rows) collector.add(latency(*row));
  return collector.finish();
}

// Many values a request, which hang together.
template <class Append>
LatencyStats per_event(std::span<const RequestRow* const> rows, int64_t exact_values_max,
                       Append append, const char* name, std::string& approximate) {
  LatencyCollector collector(exact_values_max);
  const LatencyCollector::Groups groups = [&](const auto& take) {
    std::vector<double> values;
    for (const auto* row : rows) {
      values.clear();
      append(*row, values);
      take(values);
    }
  };
  groups([&](std::span<const double> values) { collector.add(values); });
  if (collector.approximate()) approximate += (approximate.empty() ? "" : " ") + std::string(name);
  return collector.finish(groups);
}

void append_read_lag_ms(const RequestRow& row, std::vector<double>& out) {
  for (const auto& event : row.events) {
    out.push_back(static_cast<double>(event.t_user_ns - event.t_kernel_ns) / kNanosPerMs);
  }
}

std::optional<double> user_tokens_per_s(const RequestRow& row) {
  const auto tpot = tpot_ms(row);
  if (!tpot || !(*tpot > 0)) return std::nullopt;  // all tokens at one instant: no speed
  return 1000 / *tpot;
}

void summarize_latencies(std::span<const RequestRow* const> population,
                         std::span<const RequestRow* const> completed,
                         const SummaryOptions& options, Metrics& metrics) {
  const int64_t max = options.exact_values_max;
  metrics.ttft_ms = per_request(completed, max, ttft_ms);
  metrics.tpot_ms = per_request(completed, max, tpot_ms);
  metrics.e2e_ms = per_request(completed, max, e2e_ms);
  metrics.ttft_intended_ms = per_request(completed, max, ttft_intended_ms);
  metrics.e2e_intended_ms = per_request(completed, max, e2e_intended_ms);
  metrics.ttfe_ms = per_request(completed, max, ttfe_ms);
  metrics.ttfo_ms = per_request(completed, max, ttfo_ms);
  metrics.ntpot_ms = per_request(completed, max, ntpot_ms);
  metrics.tpot_vllm_ms = per_request(completed, max, tpot_vllm_ms);
  metrics.user_tokens_per_s = per_request(completed, max, user_tokens_per_s);
  metrics.itl_ms = per_event(completed, max, append_itl_ms, "itl_ms", metrics.approximate);
  metrics.icl_ms = per_event(completed, max, append_icl_ms, "icl_ms", metrics.approximate);
  // The client's own behaviour: whatever became of the request.
  metrics.send_lag_ms = per_request(population, max, send_lag_ms);
  metrics.connect_ms = per_request(population, max, connect_ms);
  metrics.read_lag_ms =
      per_event(population, max, append_read_lag_ms, "read_lag_ms", metrics.approximate);
}

// Tokens count when they arrive, whatever becomes of the request and whenever it was meant to
// start.
void summarize_throughput(Rows rows, const Window& window, Metrics& metrics) {
  double output = 0, output_run = 0, input = 0;
  int64_t completions = 0, completions_run = 0;
  Nanos first = std::numeric_limits<Nanos>::max(), last = std::numeric_limits<Nanos>::min();
  for (const auto& row : rows) {
    first = std::min(first, row.t_intended_ns);
    last = std::max(last, last_stamp_ns(row));
    output += tokens_in_window(row, window.begin_ns, window.end_ns);
    output_run += tokens_of(row);
    if (in_window(window, row.t_first_token_ns)) {
      input += row.prompt_tokens.value_or(row.input_tokens_asked);
    }
    if (row.status != Status::kOk) continue;
    ++completions_run;
    completions += in_window(window, row.t_last_token_ns);
  }
  metrics.window_s = seconds(window.end_ns - window.begin_ns);
  metrics.duration_s = seconds(last - first);
  metrics.window_rule = window.rule;
  metrics.request_throughput = rate(static_cast<double>(completions), metrics.window_s);
  metrics.request_throughput_run = rate(static_cast<double>(completions_run), metrics.duration_s);
  metrics.output_throughput = rate(output, metrics.window_s);
  metrics.output_throughput_run = rate(output_run, metrics.duration_s);
  metrics.total_throughput = rate(input + output, metrics.window_s);
}

void summarize_goodput(std::span<const RequestRow* const> population, const core::RequestSlo& slo,
                       Metrics& metrics) {
  metrics.goodput_slo = core::goodput_text(slo);
  if (slo.empty()) return;
  int64_t good = 0;
  double tokens = 0;
  for (const auto* row : population) {
    if (!is_good(*row, slo)) continue;
    ++good;
    tokens += tokens_of(*row);
  }
  metrics.goodput = rate(static_cast<double>(good), metrics.window_s);
  metrics.goodput_output_throughput = rate(tokens, metrics.window_s);
  if (!population.empty()) {
    metrics.goodput_fraction = static_cast<double>(good) / static_cast<double>(population.size());
  }
}

// Requests a second between the first and the last of `instants`; nullopt if that is no time at
// all.
std::optional<double> mean_rate(std::vector<Nanos> instants) {
  if (instants.size() < 2) return std::nullopt;
  const auto [low, high] = std::minmax_element(instants.begin(), instants.end());
  return rate(static_cast<double>(instants.size() - 1), seconds(*high - *low));
}

void summarize_load(Rows rows, std::span<const RequestRow* const> population, const Window& window,
                    const SummaryOptions& options, Metrics& metrics) {
  metrics.requested_rate = options.requested_rate_per_s;
  std::vector<Nanos> intended, sent;
  for (const auto* row : population) {
    intended.push_back(row->t_intended_ns);
    if (row->t_send_ns) sent.push_back(*row->t_send_ns);
  }
  metrics.intended_rate = mean_rate(std::move(intended));
  metrics.sent_rate = mean_rate(std::move(sent));

  struct Edge {
    Nanos t;
    int step;  // -1 before +1 at one instant: a slot freed and taken again is one slot
    auto operator<=>(const Edge&) const = default;
  };
  std::vector<Edge> edges;
  double busy_ns = 0;
  for (const auto& row : rows) {
    if (!row.t_send_ns) continue;
    const Nanos end = flight_end_ns(row);
    edges.push_back({*row.t_send_ns, 1});
    edges.push_back({std::max(end, *row.t_send_ns), -1});
    const Nanos inside = std::min(end, window.end_ns) - std::max(*row.t_send_ns, window.begin_ns);
    busy_ns += static_cast<double>(std::max<Nanos>(0, inside));
  }
  std::sort(edges.begin(), edges.end());
  int64_t now = 0, most = 0;
  for (const auto& edge : edges) most = std::max(most, now += edge.step);
  metrics.concurrency_max = most;
  metrics.concurrency_mean = rate(busy_ns / 1e9, metrics.window_s);
}

}  // namespace

Window measurement_window(Rows rows, const SummaryOptions& options) {
  const Window whole = whole_window(rows, options);
  return options.steady_part_only ? steady_window(rows, whole, options).window : whole;
}

Window whole_window(Rows rows, const SummaryOptions& options) {
  PRONY_CHECK(!rows.empty(), "no rows, no window");
  Window window;
  const auto by_intended = [](const RequestRow& a, const RequestRow& b) {
    return a.t_intended_ns < b.t_intended_ns;
  };
  const auto [first, last] = std::minmax_element(rows.begin(), rows.end(), by_intended);
  window.begin_ns = options.window_begin_ns.value_or(first->t_intended_ns);
  if (options.window_end_ns) {
    window.end_ns = std::max(window.begin_ns, *options.window_end_ns);
    window.rule = "given";
    return window;
  }
  if (options.open_loop && last->t_intended_ns > window.begin_ns) {
    window.end_ns = last->t_intended_ns;
    window.rule = "arrivals";
    return window;
  }
  window.rule = "completions";
  std::optional<Nanos> completion;
  Nanos any = window.begin_ns;
  for (const auto& row : rows) {
    any = std::max(any, last_stamp_ns(row));
    if (row.status != Status::kOk || !row.t_last_token_ns) continue;
    completion = std::max(completion.value_or(*row.t_last_token_ns), *row.t_last_token_ns);
  }
  // The last intended start stays inside, so that no request drops out of the counts.
  window.end_ns = std::max({window.begin_ns, last->t_intended_ns, completion.value_or(any)});
  return window;
}

Metrics summarize(Rows rows, const SummaryOptions& options) {
  Metrics metrics;
  if (rows.empty()) {
    metrics.attempted = metrics.completed = metrics.failed = 0;
    metrics.requested_rate = options.requested_rate_per_s;
    metrics.goodput_slo = core::goodput_text(options.goodput);
    summarize_latencies({}, {}, options, metrics);
    return metrics;
  }
  const Window whole = whole_window(rows, options);
  const auto steady = steady_window(rows, whole, options);
  const Window window = options.steady_part_only ? steady.window : whole;
  metrics.warm_up = steady.warm_up;
  const auto population = population_of(rows, window);
  std::vector<const RequestRow*> completed;
  for (const auto* row : population) {
    if (row->status == Status::kOk) completed.push_back(row);
  }
  count_outcomes(population, metrics);
  count_tokens(completed, metrics);
  summarize_latencies(population, completed, options, metrics);
  summarize_throughput(rows, window, metrics);
  summarize_goodput(population, options.goodput, metrics);
  summarize_load(rows, population, window, options, metrics);
  RunShape shape(window, options);
  for (const auto& row : rows) shape.add(row);
  shape.finish(metrics);
  return metrics;
}

}  // namespace prony::record
