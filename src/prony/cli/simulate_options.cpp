#include "prony/cli/simulate_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/emulate/profile_step_time.hpp"
#include "prony/perfmodel/memory_model.hpp"

namespace prony::cli {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

Result<void> check(const char* flag, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return invalid_argument(
      fmt::format("{}: found {:g}, expected {:g} to {:g}", flag, value, low, high));
}

Result<int64_t> blocks_of(const SimulateOptions& o, const perfmodel::Deployment& deployment,
                          const sched::SchedulerOptions& limits) {
  if (o.kv_blocks) return *o.kv_blocks;
  const auto plan = perfmodel::memory_plan(
      deployment, perfmodel::RankModel(deployment),
      {.step_tokens = limits.max_tokens_per_step, .max_sequences = limits.max_sequences});
  if (plan.fits()) return plan.kv_tokens / sched::kBlockTokens;
  return invalid_argument(fmt::format(
      "--hardware: {} does not fit on {} x {}: {:.1f} GiB missing on each", deployment.model.id,
      deployment.parallel.ranks(), deployment.hardware.id, plan.missing_bytes / kGiB));
}

Result<sim::StepTimeMaker> step_times(const SimulateOptions& o,
                                      const perfmodel::Deployment& deployment) {
  sim::StepTimeMaker make = [profile = o.step_time_profile,
                             deployment]() -> Result<std::unique_ptr<emulate::StepTime>> {
    if (profile.empty()) {
      auto made = emulate::ModelStepTime::create(deployment);
      if (!made) return made.error();
      return std::unique_ptr<emulate::StepTime>(std::move(made).value());
    }
    auto made = emulate::ProfileStepTime::load(profile, deployment.model, deployment.engine.step_s,
                                               deployment.engine.sequence_s);
    if (!made) return made.error();
    return std::unique_ptr<emulate::StepTime>(std::move(made).value());
  };
  if (auto once = make(); !once) return once.error();  // now, not after the schedule
  return make;
}

}  // namespace

Result<SimulatePlan> plan_simulation(SimulateOptions& o) {
  constexpr double kMost = 1 << 30;
  for (const auto& done :
       {check("--replicas", static_cast<double>(o.replicas), 1, 100'000),
        check("--replications", static_cast<double>(o.replications), 1, 10'000),
        check("--threads", static_cast<double>(o.threads), 0, 1024),
        check("--step-noise", o.step_noise, 0, 9.99),
        check("--seed", static_cast<double>(o.load.seed), 0, 9e18),
        check("--max-num-seqs", static_cast<double>(o.deployment.max_num_seqs.value_or(1)), 1,
              65536),
        check("--max-num-batched-tokens",
              static_cast<double>(o.deployment.max_batched_tokens.value_or(1)), 1, kMost),
        check("--kv-blocks", static_cast<double>(o.kv_blocks.value_or(1)), 1, kMost),
        check("--max-input-len", static_cast<double>(o.load.max_input), 0, kMost),
        check("--max-output-len", static_cast<double>(o.load.max_output), 0, kMost),
        check("--max-total-len", static_cast<double>(o.load.max_total), 0, kMost)}) {
    if (!done) return done.error();
  }
  const auto router = sim::parse_router(o.router);
  if (!router) return router.error();
  SimulatePlan plan;
  auto deployment = deployment_of(o.deployment);
  if (!deployment) return deployment.error();
  plan.deployment = std::move(deployment).value();
  auto make = step_times(o, plan.deployment);
  if (!make) return make.error();
  plan.make_time = std::move(make).value();

  auto& bench = o.load.bench;
  bench.seed = static_cast<uint64_t>(o.load.seed);
  if (o.load.max_input > 0) bench.scale.input_max = static_cast<int32_t>(o.load.max_input);
  if (o.load.max_output > 0) bench.scale.output_max = static_cast<int32_t>(o.load.max_output);
  bench.scale.total_max = static_cast<int32_t>(o.load.max_total);
  if (auto workload = resolve_workload(o.load); !workload) return workload.error();
  if (auto path = fill_dataset_path(o.load); !path) return path.error();
  auto shape = load::load_shape(bench);
  if (!shape) return shape.error();
  plan.shape = *shape;

  auto& cluster = plan.cluster;
  const auto& engine = plan.deployment.engine;
  auto& limits = cluster.scheduler;
  limits.max_sequences =
      static_cast<int32_t>(o.deployment.max_num_seqs.value_or(engine.max_sequences));
  limits.max_tokens_per_step =
      static_cast<int32_t>(o.deployment.max_batched_tokens.value_or(engine.max_step_tokens));
  limits.prefix_caching = o.prefix_caching == "on";
  limits.prefix_sharing = sched::PrefixSharing::kPlanned;
  if (!engine.mixed_steps) limits.batching = sched::Batching::kPrefillFirst;
  const auto blocks = blocks_of(o, plan.deployment, limits);
  if (!blocks) return blocks.error();
  limits.block_count = static_cast<int32_t>(*blocks);
  limits.max_context = static_cast<int32_t>(
      std::min<int64_t>(plan.deployment.model.max_context, *blocks * sched::kBlockTokens));
  cluster.replicas = static_cast<int32_t>(o.replicas);
  cluster.router = *router;
  cluster.request_s = engine.request_s;
  cluster.closed_loop = plan.shape.closed_loop;
  cluster.max_concurrency = plan.shape.max_concurrency.value_or(0);
  cluster.noise_cv = o.step_noise;
  cluster.seed = bench.seed;
  cluster.macro_steps = o.macro_steps == "on";
  return plan;
}

}  // namespace prony::cli
