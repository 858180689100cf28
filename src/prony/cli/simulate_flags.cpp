// The flags of `prony simulate`.
#include "prony/cli/simulate_options.hpp"

namespace prony::cli {

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

}  // namespace prony::cli
