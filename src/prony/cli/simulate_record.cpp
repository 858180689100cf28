#include "prony/cli/simulate_record.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/core/clock.hpp"
#include "prony/telemetry/environment.hpp"
#include "prony/version.hpp"

namespace prony::cli {
namespace {

using core::Json;

record::System system_of(const SimulateOptions& options, const SimulatePlan& plan) {
  const auto& d = plan.deployment;
  record::System system;
  system.kind = record::SystemKind::kDeployment;
  system.model = options.deployment.model;
  system.server = d.engine.name + " " + d.engine.version;
  system.device = d.hardware.id;
  system.details = {{"engine", d.engine.id},
                    {"tp", d.parallel.tp},
                    {"replicas", plan.cluster.replicas},
                    {"router", sim::router_name(plan.cluster.router)},
                    {"devices", d.parallel.ranks() * plan.cluster.replicas},
                    {"weight_dtype", perfmodel::weight_dtype_name(d.weights)},
                    {"kv_dtype", perfmodel::kv_dtype_name(d.kv)},
                    {"max_num_seqs", plan.cluster.scheduler.max_sequences},
                    {"max_num_batched_tokens", plan.cluster.scheduler.max_tokens_per_step},
                    {"kv_blocks", plan.cluster.scheduler.block_count},
                    {"prefix_caching", plan.cluster.scheduler.prefix_caching},
                    {"step_times", options.step_time_profile.empty() ? "model" : "profile"},
                    {"step_noise", plan.cluster.noise_cv}};
  return system;
}

record::Workload workload_of(const SimulateOptions& options, const SimulatePlan& plan,
                             const workload::Schedule& schedule) {
  record::Workload workload;
  workload.description = schedule.description;
  workload.dataset = options.load.bench.dataset;
  workload.arrival = plan.shape.closed_loop   ? "closed"
                     : plan.shape.at_once     ? "at-once"
                     : plan.shape.trace_times ? "trace"
                                              : "poisson";
  if (!schedule.has_sessions()) workload.request_rate = plan.shape.rate_per_s;
  workload.max_concurrency = plan.shape.max_concurrency;
  workload.num_requests = static_cast<int64_t>(schedule.entries.size());
  workload.seed = schedule.seed;
  workload.details = {{"schedule_digest", fmt::format("{:016x}", schedule.digest())}};
  return workload;
}

}  // namespace

Result<load::BenchRun> simulated_run(const SimulateOptions& options, const SimulatePlan& plan,
                                     const workload::Schedule& schedule,
                                     const std::vector<sim::Replication>& replications,
                                     double wall_s) {
  auto bench = options.load.bench;
  if (!options.load.goodput.empty()) {
    auto goodput = core::parse_goodput(std::span<const std::string>(options.load.goodput));
    if (!goodput) return goodput.error();
    bench.goodput = *goodput;
  }
  if (options.load.slo) {
    auto slo = core::parse_slo(*options.load.slo, "--slo");
    if (!slo) return slo.error();
    bench.slo = std::move(slo).value();
  }
  load::BenchRun run;
  auto& record = run.record;
  record.source = record::Source::kSimulated;
  record.system = system_of(options, plan);
  record.workload = workload_of(options, plan, schedule);
  record.environment = telemetry::capture_environment();
  record.environment.commit = kCommit;
  record.environment.version = kVersion;
  record.run.started_at = core::utc_text(core::realtime_ns()).text;
  record.run.label = bench.label;
  run.summary.open_loop = !plan.shape.closed_loop && !plan.shape.at_once;
  run.summary.goodput = bench.goodput;
  if (!schedule.has_sessions()) run.summary.requested_rate_per_s = plan.shape.rate_per_s;
  record.replications = Json::array();
  for (const auto& one : replications) {
    auto json = replication_json(record::summarize(one.rows, run.summary));
    json["seed"] = one.seed;
    record.replications.push_back(std::move(json));
  }
  if (replications.size() < 2) record.replications = nullptr;
  record::RowStore store{record::RowStore::Options{}};
  auto& rows = store.add_appender();
  for (const auto& row : sim::pooled(replications)) rows.append(row);
  rows.flush();
  store.seal();
  record.metrics = record::summarize(store, run.summary);
  run.rows = std::move(store);
  record.simulation = simulation_json(replications, wall_s);
  if (record.metrics.overloaded.value_or(false)) {
    record.validity.warnings.push_back(
        "overloaded: the queue grows until the run ends, so its latencies are those of its length");
  }
  load::judge(bench, record.metrics, run);
  return run;
}

}  // namespace prony::cli
