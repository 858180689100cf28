// Made-up runs for the tests of the report: a plausible server with a queue, jitter and faults, as
// rows and a whole record. For tests only; equal options give equal runs.
// Thread safety: pure function.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/record/record.hpp"
#include "prony/record/request_row.hpp"
#include "prony/record/row_metrics.hpp"
#include "prony/record/summary.hpp"

namespace prony::report {

struct SampleOptions {
  int requests = 400;
  double rate_per_s = 40;
  double output_tokens_mean = 60;
  double failed_fraction = 0.01;
  int tokens_per_event = 1;
  bool events = true;
  uint64_t seed = 1;
};

struct SampleRun {
  record::Record record;
  std::vector<record::RequestRow> rows;
  record::SummaryOptions summary;
};

inline record::RequestRow sample_row(const SampleOptions& options, int index, core::Nanos start_ns,
                                     core::Nanos queue_ns, core::Rng& rng) {
  using record::Status;
  record::RequestRow row;
  row.index = index;
  row.id = "run-" + std::to_string(index);
  row.t_intended_ns = start_ns;
  row.input_tokens_asked = 64 + static_cast<int32_t>(900 * rng.gamma(1.6) / 1.6);
  row.prompt_tokens = row.input_tokens_asked;
  row.output_tokens_asked =
      1 + static_cast<int32_t>(options.output_tokens_mean * rng.gamma(2.0) / 2.0);
  const auto ms = [](double value) { return static_cast<core::Nanos>(value * 1e6); };
  row.t_send_ns = start_ns + ms(0.05 + 0.1 * rng.exponential());
  row.t_sent_ns = *row.t_send_ns + ms(0.02);
  if (rng.uniform() < options.failed_fraction / 2) {
    row.status = Status::kHttp5xx;
    row.http_status = 503;
    row.error = "status 503: server busy, try later";
    row.t_headers_ns = *row.t_sent_ns + ms(1.5);
    row.t_done_ns = row.t_close_ns = *row.t_headers_ns + ms(0.1);
    return row;
  }
  row.http_status = 200;
  const double prefill_ms = 8 + 0.02 * row.input_tokens_asked + 3 * rng.exponential();
  core::Nanos at = *row.t_sent_ns + queue_ns + ms(prefill_ms);
  row.t_headers_ns = at - ms(0.05);
  row.t_first_event_ns = row.t_first_token_ns = row.t_first_output_ns = at;
  const bool cut = rng.uniform() < options.failed_fraction / 2;
  const int32_t tokens = cut ? std::max(1, row.output_tokens_asked / 2) : row.output_tokens_asked;
  for (int32_t sent = 0; sent < tokens;) {
    const int32_t step = std::min(options.tokens_per_event, tokens - sent);
    if (sent > 0) at += ms(step * (7 + 1.2 * rng.exponential() + (rng.uniform() < 0.01 ? 25 : 0)));
    if (options.events) row.events.push_back({at, at + ms(0.03 + 0.02 * rng.exponential()), step});
    sent += step;
  }
  row.output_tokens = tokens;
  row.token_source = cut ? record::TokenSource::kEventCount : record::TokenSource::kUsage;
  row.first_event_tokens = std::min(options.tokens_per_event, tokens);
  row.tokens_per_event_exact = true;
  row.read_lag_max_ns = ms(0.09);
  row.t_last_token_ns = at;
  row.t_close_ns = at + ms(0.2);
  if (cut) {
    row.status = Status::kTruncated;
    row.error = "stream ended without its end marker";
  } else {
    row.status = Status::kOk;
    row.finish_reason = "length";
    row.t_done_ns = at + ms(0.1);
  }
  return row;
}

inline SampleRun sample_run(const SampleOptions& options) {
  SampleRun run;
  core::Rng arrivals(options.seed, 1), service(options.seed, 2);
  core::Nanos now = 1'000'000'000'000, queue_free = 0;
  for (int i = 0; i < options.requests; ++i) {
    now += static_cast<core::Nanos>(arrivals.exponential() / options.rate_per_s * 1e9);
    // A queue that is sometimes behind: each request occupies the prefill for a while.
    queue_free = std::max(queue_free, now) +
                 static_cast<core::Nanos>(service.exponential() / options.rate_per_s * 0.7e9);
    run.rows.push_back(
        sample_row(options, i, now, std::max<core::Nanos>(0, queue_free - now), service));
  }
  run.summary.requested_rate_per_s = options.rate_per_s;
  run.summary.goodput.ttft_ms = 100;
  run.summary.goodput.tpot_ms = 12;
  record::Record& record = run.record;
  record.system.model = "llama-3.1-8b";
  record.system.endpoint = "http://127.0.0.1:8000/v1";
  record.system.endpoint_type = "openai-chat";
  record.system.server = "vLLM 0.11.0";
  record.system.device = "h100-sxm";
  record.workload.description = "random lengths, input about 960 tokens, output about 60";
  record.workload.dataset = "random";
  record.workload.arrival = "poisson";
  record.workload.request_rate = options.rate_per_s;
  record.workload.num_requests = options.requests;
  record.workload.seed = options.seed;
  record.workload.details = {{"burstiness", 1.0}, {"stall_timeout_s", 30}, {"ignore_eos", true}};
  record.environment = {.commit = "0123456789ab",
                        .version = "0.1.0",
                        .cpu = "Example CPU @ 2.00GHz",
                        .cores = 2,
                        .memory_bytes = 8'331'169'792,
                        .kernel = "Linux 6.1.0",
                        .compiler = "g++ 12.2.0",
                        .load_average = 0.42,
                        .steal_fraction = 0.001,
                        .gpus = core::Json::array()};
  record.run.started_at = "2026-11-30T19:09:34Z";
  record.run.command = {"prony",          "bench", "--base-url", "http://127.0.0.1:8000",
                        "--request-rate", "40"};
  record.client = {
      {"threads", 1},
      {"loop_busy", {0.12}},
      {"merged_events", 0},
      {"clock_step_max_ms", 0.004},
      {"issue_lag_ms", {{"n", options.requests}, {"p50", 0.02}, {"p99", 0.09}, {"max", 0.3}}},
      {"ttft_share", {{"percentile", 99}, {"value_ms", 195.2}, {"shift_ms", 0.12}}},
      {"connections_lost", 0}};
  record.metrics = record::summarize(run.rows, run.summary);
  return run;
}

}  // namespace prony::report
