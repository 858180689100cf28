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

void declare(Flags& flags, SimulateOptions& o) {
  auto& d = o.deployment;
  auto& b = o.load.bench;
  flags.group("Replica")
      .text("--model", d.model, "catalogue id, Hugging Face id, folder or config.json")
      .text("--hardware", d.hardware, "catalogue id, or ID:SLICE for a MIG slice")
      .text("--engine", d.engine, "overheads and limits: vllm, sglang, trtllm, llamacpp, prony")
      .integer("--tp", d.tp, "devices that share every layer")
      .text("--weight-dtype", d.weight_dtype, "as in predict; auto: as published")
      .text("--kv-dtype", d.kv_dtype, "as in predict")
      .toggle("--eager", d.eager, "without CUDA graphs")
      .integer("--max-num-seqs", d.max_num_seqs, "over the engine profile's")
      .integer("--max-num-batched-tokens", d.max_batched_tokens, "likewise")
      .integer("--kv-blocks,--num-kv-blocks", o.kv_blocks, "of 16 tokens; none: what memory leaves")
      .choice("--enable-prefix-caching", o.prefix_caching, {"on", "off"}, "share prompts")
      .text("--step-time-profile", o.step_time_profile, "folder of measured layer times")
      .number("--step-noise", o.step_noise, "coefficient of variation of step times");
  flags.group("Cluster")
      .integer("--replicas", o.replicas, "of the deployment")
      .text("--router", o.router,
            "round-robin, least-outstanding, power-of-two, least-tokens, session, prefix")
      .integer("--replications", o.replications, "independent runs, seeds from --seed on")
      .integer("--threads", o.threads, "for replications; 0: one per core")
      .choice("--macro-steps", o.macro_steps, {"on", "off"},
              "off: every step alone, the same result");
  flags.group("Load")
      .text("--request-rate", b.request_rate, "requests/s, or inf; none: the trace's own times")
      .number("--burstiness", b.burstiness, "1 Poisson, below burstier, inf constant gaps")
      .integer("--max-concurrency,--concurrency", b.max_concurrency, "most requests in flight")
      .integer("--num-prompts", b.num_prompts, "requests; none: all of a trace, else 200")
      .number("--duration", b.duration_s, "arrivals for so long [s]")
      .integer("--seed", o.load.seed, "of everything random");
  declare_arrivals(flags, o.load);
  declare_workload(flags, o.load);
  flags.group("Result")
      .list("--goodput", o.load.goodput, "bounds of a good request [ms]: ttft:200 tpot:50")
      .text("--slo", o.load.slo, "must hold, else exit 1: ttft_p99<=500ms,tpot_p99<=50ms")
      .text("--out", o.load.out, "folder for record.json, requests.jsonl, report.html")
      .toggle("--save-detailed", b.save_detailed, "every token's instant in requests.jsonl")
      .toggle("--save-trace", o.load.save_trace, "trace.json in --out, for ui.perfetto.dev")
      .text("--label", b.label, "name of the run")
      .toggle("--json", o.json, "the record on stdout");
}

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
