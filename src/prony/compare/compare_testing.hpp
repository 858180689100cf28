// Runs made up for the tests of compare: Poisson arrivals, latencies that resemble those of their
// neighbours, failures, all from a seed. Not for production: only tests include this.
// Thread safety: pure functions.
#pragma once
#include <cmath>

#include "prony/compare/input.hpp"
#include "prony/core/rng.hpp"
#include "prony/record/sample_record.hpp"

namespace prony::compare {

struct MadeRun {
  uint64_t schedule = 1;  // seed of arrivals and of what each request asks
  uint64_t noise = 1;     // seed of the server's mood
  int requests = 400;
  double slower = 1;       // factor of every latency
  double correlation = 0;  // of neighbours' logarithms
  double failures = 0;     // share
  bool events = false;
};

inline std::vector<record::RequestRow> made_rows(const MadeRun& made) {
  std::vector<record::RequestRow> rows;
  core::Rng schedule(made.schedule, 1), noise(made.noise, 2);
  core::Nanos now_ns = 1'000'000'000;
  double mood = noise.normal();
  for (int i = 0; i < made.requests; ++i) {
    now_ns += static_cast<core::Nanos>(1e7 * schedule.exponential());
    const double work = std::exp(0.5 * schedule.normal());
    mood = made.correlation * mood +
           std::sqrt(1 - made.correlation * made.correlation) * noise.normal();
    record::RequestRow row;
    row.index = i;
    row.id = "r" + std::to_string(i);
    row.input_tokens_asked = static_cast<int32_t>(100 * work) + 1;
    row.output_tokens_asked = 10;
    row.t_intended_ns = now_ns;
    row.t_send_ns = now_ns + 10'000;
    if (noise.uniform() < made.failures) {
      row.status = record::Status::kHttp5xx;
      row.http_status = 503;
      row.error = "overloaded";
      row.t_close_ns = now_ns + 1'000'000;
      rows.push_back(row);
      continue;
    }
    row.status = record::Status::kOk;
    row.http_status = 200;
    row.prompt_tokens = row.input_tokens_asked;
    row.output_tokens = 10;
    row.token_source = record::TokenSource::kUsage;
    row.finish_reason = "length";
    const auto ttft_ns = static_cast<core::Nanos>(2e7 * made.slower * work * std::exp(0.2 * mood));
    const auto gap_ns =
        static_cast<core::Nanos>(2e6 * made.slower * std::exp(0.1 * noise.normal()));
    const core::Nanos first_ns = *row.t_send_ns + ttft_ns;
    row.t_first_event_ns = row.t_first_token_ns = row.t_first_output_ns = first_ns;
    row.t_headers_ns = first_ns - 1000;
    row.t_last_token_ns = first_ns + 9 * gap_ns;
    row.t_done_ns = row.t_close_ns = *row.t_last_token_ns + 1000;
    if (made.events) {
      for (int k = 0; k < 10; ++k)
        row.events.push_back({first_ns + k * gap_ns, first_ns + k * gap_ns, 1});
      row.tokens_per_event_exact = true;
      row.first_event_tokens = 1;
    }
    rows.push_back(row);
  }
  return rows;
}

inline record::Record made_record(const MadeRun& made,
                                  const std::vector<record::RequestRow>& rows) {
  auto record = record::sample_record();
  record.workload.num_requests = made.requests;
  record.workload.seed = made.schedule;
  record.workload.details["schedule_digest"] = "digest" + std::to_string(made.schedule);
  record::SummaryOptions options;
  options.goodput.ttft_ms = 30;
  record.metrics = record::summarize(rows, options);
  return record;
}

inline RunInput made_run(const MadeRun& made, const std::string& path = "made") {
  auto rows = made_rows(made);
  auto record = made_record(made, rows);
  return make_run(path, std::move(record), std::move(rows));
}

inline SideInput made_side(const std::string& name, const MadeRun& made) {
  SideInput side{name, {}};
  side.runs.push_back(made_run(made, name));
  return side;
}

}  // namespace prony::compare
