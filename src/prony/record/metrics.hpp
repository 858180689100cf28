// Metrics: the numbers of a Record, equal in kind for a measured, a predicted and a simulated run.
// Definitions: docs/metrics.md. A value without a model or without enough samples is nullopt, null
// in the file; never a plausible number. Field names are the JSON names.
// Thread safety: a value.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/stats/quantile.hpp"

namespace prony::record {

/// Statistics of one latency (or of any per-request quantity). As a whole null in JSON where
/// neither n nor mean nor p50 is known (a prediction without a model for it). Percentiles p50 and
/// p75 from n >= 1; p90 and above only where n (1 - p) >= 10, so that at least ten samples lie
/// beyond. Interpolation is linear (numpy's, vLLM's).
struct LatencyStats {
  std::optional<int64_t> n;
  std::optional<double> mean, sd, min, max;
  std::optional<double> p50, p75, p90, p95, p99, p999, p9999;
  struct Ci95 {  // 95 % confidence intervals
    std::optional<stats::Interval> p50, p90, p99, mean, p95, p999, p9999;
    bool operator==(const Ci95&) const = default;
  };
  Ci95 ci95;

  bool known() const { return n.has_value() || mean.has_value() || p50.has_value(); }
  bool operator==(const LatencyStats&) const = default;
};

/// Tokens asked for against tokens got, over completed requests.
struct TokenTally {
  int64_t requests = 0;
  int64_t asked = 0;                                    // sum over `requests`
  int64_t got = 0;                                      // sum over those whose count is known
  int64_t equal = 0, fewer = 0, more = 0, unknown = 0;  // requests, by got against asked
  bool operator==(const TokenTally&) const = default;
};

/// 95 % confidence intervals of rates [1/s] and fractions.
struct RateCi95 {
  std::optional<stats::Interval> request_throughput, output_throughput;
  std::optional<stats::Interval> goodput, goodput_output_throughput;
  std::optional<stats::Interval> goodput_fraction, error_rate;
  bool operator==(const RateCi95&) const = default;
};

/// Little's law over the window, L = lambda W: far from it, the window is short against the
/// requests, or the system did not stand still.
struct LittlesLaw {
  double in_flight = 0;    // L: requests in flight, time-weighted
  double rate = 0;         // lambda: sends in the window, 1/s
  double residence_s = 0;  // W: mean time in flight of the requests sent in the window
  double discrepancy = 0;  // lambda W / L - 1
  bool operator==(const LittlesLaw&) const = default;
};

/// The start of the run, where it is unlike the rest (MSER-5).
struct RunWarmUp {
  std::string judged;    // "ttft_intended_ms" or "e2e_ms"
  int64_t requests = 0;  // completed ones that it takes; 0: none
  double seconds = 0;    // from the first intended start to the first request after it
  double change = 0;     // their mean against the rest's: 0.8 is 80 % more
  bool trimmed = false;  // the window begins after it
  bool operator==(const RunWarmUp&) const = default;
};

/// Failures over time, by intended start: one slice of the window.
struct ErrorSlice {
  double begin_s = 0, end_s = 0;  // from the window's begin
  int64_t attempted = 0;
  std::map<std::string, int64_t> errors;  // status -> requests
  bool operator==(const ErrorSlice&) const = default;
};

/// The longest run of failed requests without a success between them, in the order in which they
/// were meant to start: what a time-out cascade or an outage looks like.
struct FailureRun {
  int64_t requests = 0;
  double begin_s = 0, end_s = 0;  // first and last intended start, from the window's begin
  std::map<std::string, int64_t> errors;
  bool operator==(const FailureRun&) const = default;
};

/// Requests that belong together (row_groups.hpp).
struct GroupStats {
  double begin_s = 0, end_s = 0;  // first and last intended start, from the window's begin
  int64_t attempted = 0, completed = 0;
  std::optional<double> input_tokens_mean, output_tokens_mean;  // of the completed
  LatencyStats ttft_ms, tpot_ms, itl_ms, e2e_ms;
  bool operator==(const GroupStats&) const = default;
};

/// One turn of the conversations that were sent; its input is the growing context.
struct TurnStats : GroupStats {
  int64_t turn = 0;  // from 0; the last entry holds all later ones
  int64_t& number() { return turn; }
  bool operator==(const TurnStats&) const = default;
};

/// One stage of a load in stages.
struct StageStats : GroupStats {
  int64_t stage = 0;  // from 0; the last entry holds all later ones
  int64_t& number() { return stage; }
  bool operator==(const StageStats&) const = default;
};

struct Metrics {
  // Requests. Population: intended start inside the window (docs/metrics.md).
  std::optional<int64_t> attempted, completed, failed;
  std::map<std::string, int64_t> errors;       // status -> requests, without ok
  std::map<std::string, int64_t> http_errors;  // HTTP code outside 2xx -> requests

  // Time. window_rule: "arrivals", "completions" or "given".
  std::optional<double> window_s, duration_s;
  std::string window_rule;

  // Rates; *_run over duration_s, everything else in the window.
  std::optional<double> request_throughput, request_throughput_run;  // completed requests/s
  std::optional<double> output_throughput, output_throughput_run;    // output tokens/s
  std::optional<double> total_throughput;                            // input + output tokens/s
  std::optional<double> goodput;                                     // good requests/s
  std::optional<double> goodput_fraction;                            // of attempted
  std::optional<double> goodput_output_throughput;                   // tokens/s of good requests
  std::string goodput_slo;                                           // "ttft:200", empty if none

  // Latencies.
  LatencyStats ttft_ms, tpot_ms, itl_ms, icl_ms, e2e_ms;
  LatencyStats ttft_intended_ms, e2e_intended_ms;
  LatencyStats send_lag_ms, read_lag_ms, queue_ms;
  // Diagnostics and other tools' forms.
  LatencyStats ttfe_ms, ttfo_ms, ntpot_ms, tpot_vllm_ms, connect_ms;
  LatencyStats user_tokens_per_s;     // 1 / TPOT of each request
  LatencyStats prefill_tokens_per_s;  // prompt tokens / TTFT of each request

  // Counting.
  TokenTally input_tokens, output_tokens;
  std::map<std::string, int64_t> token_sources;  // source -> completed requests
  bool token_source_mixed = false;
  std::string itl_basis;       // "tokens", "events" (ITL is ICL), "mixed", "" (none)
  int64_t tpot_undefined = 0;  // completed requests with a single token or one burst of all
  int64_t bursty_streams = 0;  // completed, most tokens at one instant
  int64_t token_events = 0, merged_events = 0;
  int64_t retries = 0;

  // Load as it was.
  std::optional<double> requested_rate, intended_rate, sent_rate;  // requests/s
  std::optional<double> concurrency_mean;
  std::optional<int64_t> concurrency_max;
  std::optional<bool> steady;           // null: too few requests to tell
  std::optional<double> steady_change;  // second half against first, of the latency judged
  std::optional<RunWarmUp> warm_up;     // null: too few requests to tell
  // A queue that grows until the run ends; null in closed loops and with too few requests.
  std::optional<bool> overloaded;
  std::optional<double> queue_growth;  // requests in the system, 1/s, last three quarters
  std::optional<LittlesLaw> little;
  RateCi95 ci95;
  std::vector<ErrorSlice> error_slices;  // empty without failures
  std::optional<FailureRun> longest_failure_run;
  std::vector<TurnStats> turns;    // empty without sessions
  std::vector<StageStats> stages;  // empty without stages
  std::string approximate;  // latencies whose percentiles come from a histogram (<= 0.1 % late)

  bool operator==(const Metrics&) const = default;
};

core::Json metrics_to_json(const Metrics& metrics);
/// `json` must have passed validate_record (record.hpp) as /metrics; other input is an Error.
Result<Metrics> metrics_from_json(const core::Json& json);

core::Json latency_to_json(const LatencyStats& stats);

}  // namespace prony::record
