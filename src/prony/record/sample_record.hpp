// A valid Record with every section filled, for the tests of this module and of those that read
// records. Not for production: only tests include this. Thread safety: pure functions.
#pragma once
#include "prony/record/random_rows.hpp"
#include "prony/record/record.hpp"
#include "prony/record/slo_verdict.hpp"
#include "prony/record/summary.hpp"

namespace prony::record {

inline Environment sample_environment() {
  Environment out;
  out.commit = "0123456789ab";
  out.version = "0.1.0";
  out.cpu = "Example CPU";
  out.cores = 2;
  out.memory_bytes = 8'000'000'000;
  out.kernel = "Linux 6.1.0";
  out.compiler = "g++ 12.2.0";
  out.load_average = 0.25;
  out.steal_fraction = 0.001;
  return out;
}

/// A measured run of `requests` random rows.
inline Record sample_record(uint64_t seed = 1, int64_t requests = 400) {
  core::Rng rng(seed);
  const auto rows = random_rows(rng, requests, 5'000'000'000);
  Record out;
  out.source = Source::kMeasured;
  out.system.kind = SystemKind::kEndpoint;
  out.system.model = "example-model";
  out.system.endpoint = "http://127.0.0.1:8000";
  out.system.endpoint_type = "openai-chat";
  out.system.details["tp"] = 1;
  out.workload.description = "random rows";
  out.workload.dataset = "random";
  out.workload.arrival = "poisson";
  out.workload.request_rate = 80;
  out.workload.num_requests = requests;
  out.workload.seed = seed;
  out.environment = sample_environment();
  SummaryOptions options;
  options.goodput.ttft_ms = 50;
  options.requested_rate_per_s = 80;
  out.metrics = summarize(rows, options);
  out.run.started_at = "2026-11-30T19:09:34Z";
  out.run.command = {"prony", "bench"};
  out.slo = slo_verdict_to_json(
      evaluate_slo(core::parse_slo("ttft_p50<=500ms,error_rate<=0.9").value(), out.metrics));
  out.client["loop_busy_fraction"] = 0.02;
  return out;
}

/// A predicted record: means alone, everything else unknown.
inline Record sample_prediction() {
  Record out;
  out.source = Source::kPredicted;
  out.system.kind = SystemKind::kDeployment;
  out.system.model = "example-model";
  out.system.device = "h100-sxm";
  out.workload.description = "512 in, 128 out, 2 requests/s";
  out.workload.arrival = "poisson";
  out.workload.request_rate = 2;
  out.environment = sample_environment();
  out.environment.steal_fraction.reset();
  out.metrics.ttft_ms.mean = 120;
  out.metrics.tpot_ms.mean = 9.5;
  out.metrics.output_throughput = 256;
  out.run.started_at = "2026-11-30T19:09:34Z";
  out.prediction["bottleneck"] = "memory bandwidth";
  return out;
}

}  // namespace prony::record
