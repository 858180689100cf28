#include <fmt/format.h>

#include <cmath>

#include "prony/cli/calibrations.hpp"
#include "prony/cli/predict_output.hpp"
#include "prony/core/clock.hpp"
#include "prony/plan/plan.hpp"
#include "prony/telemetry/environment.hpp"
#include "prony/version.hpp"

namespace prony::cli {

using perfmodel::ServingPrediction;

record::Record predicted_record(const PredictOptions& options,
                                const perfmodel::Deployment& deployment,
                                const perfmodel::ServingLoad& load, const ServingPrediction& p) {
  record::Record record;
  record.source = record::Source::kPredicted;
  record.system.kind = record::SystemKind::kDeployment;
  record.system.model = options.model;
  record.system.server = deployment.engine.name + " " + deployment.engine.version;
  record.system.device = deployment.hardware.id;
  record.system.details = {{"engine", deployment.engine.id},
                           {"tp", deployment.parallel.tp},
                           {"pp", deployment.parallel.pp},
                           {"ep", deployment.parallel.ep},
                           {"dp", deployment.parallel.dp},
                           {"devices", deployment.parallel.ranks()},
                           {"weight_dtype", perfmodel::weight_dtype_name(deployment.weights)},
                           {"kv_dtype", perfmodel::kv_dtype_name(deployment.kv)},
                           {"cuda_graphs", deployment.cuda_graphs},
                           {"draft_tokens", deployment.speculation.draft_tokens}};
  record.workload.description =
      fmt::format("{} input and {} output tokens each", load.input_tokens, load.output_tokens);
  record.workload.dataset = "fixed";
  record.workload.arrival = load.request_rate ? "poisson" : "closed";
  record.workload.request_rate = load.request_rate;
  if (load.concurrency) record.workload.max_concurrency = std::llround(*load.concurrency);
  record.workload.details = {{"input_len", load.input_tokens},
                             {"output_len", load.output_tokens},
                             {"static", load.static_batch}};
  record.environment = telemetry::capture_environment();
  record.environment.commit = kCommit;
  record.environment.version = kVersion;
  record.run.started_at = core::utc_text(core::realtime_ns()).text;
  record::Metrics& m = record.metrics;
  m.request_throughput = p.request_throughput;
  m.output_throughput = p.output_throughput;
  m.total_throughput =
      p.request_throughput * static_cast<double>(load.input_tokens + load.output_tokens);
  plan::set_latencies(p, load.output_tokens, m);
  m.concurrency_mean = load.concurrency ? load.concurrency
                       : p.e2e_s        ? std::optional(p.request_throughput * *p.e2e_s)
                                        : std::nullopt;
  m.requested_rate = load.request_rate;
  if (!p.ttft_s) record.validity.warnings.push_back(p.ttft_reason);
  record.prediction = prediction_json(deployment, load, p);
  if (const auto loaded = load_calibrations(options.calibration); loaded) {
    if (const auto* own = find_calibration(*loaded, deployment.hardware.id, deployment.engine.id)) {
      record.prediction["calibration"] = calibration_json(*own);
    }
  }
  return record;
}

}  // namespace prony::cli
