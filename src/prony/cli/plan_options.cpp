#include "prony/cli/plan_options.hpp"

namespace prony::cli {

void declare(Flags& flags, PlanOptions& o) {
  flags.group("what is served")
      .text("--model", o.model, "catalogue id, Hugging Face id, folder or config.json")
      .text("--engine", o.engine, "overhead profile: vllm, sglang, trtllm, llamacpp, prony")
      .integer("--input-len,--random-input-len", o.input_len, "prompt tokens, 0: all cached")
      .integer("--output-len,--random-output-len", o.output_len, "output tokens")
      .number("--request-rate", o.request_rate, "Poisson arrivals a second, of the fleet")
      .number("--concurrency,--max-concurrency", o.concurrency, "clients of a closed loop")
      .number("--num-prompts", o.num_prompts, "requests of a closed-loop run; 0: endless")
      .text("--slo", o.slo, "ttft_p99<=500ms,tpot_mean<=50ms: all must hold");
  flags.group("what may be chosen")
      .list("--hardware", o.hardware, "catalogue ids; without: every device that has a price")
      .list("--weight-dtype", o.weights, "bf16, fp8, ...; auto: as published")
      .list("--tp", o.tp, "ranks that share every layer")
      .list("--pp", o.pp, "pipeline stages")
      .list("--dp", o.dp, "groups with data-parallel attention, of mixtures")
      .choice("--ep", o.ep, {"off", "on", "both"}, "experts spread over all ranks, of mixtures")
      .list("--max-num-seqs", o.max_num_seqs, "sequences that one engine runs at once")
      .integer("--max-num-batched-tokens", o.max_batched_tokens, "over the profile's")
      .integer("--max-devices", o.max_devices, "of all replicas, without spares");
  flags.group("prices")
      .list("--price", o.prices, "entries of the price books (prony cost --list), over the middle")
      .integer("--spares", o.spares, "replicas paid for beyond those that hold the load");
  flags.group("output")
      .list("--calibration", o.calibration,
            "files of prony fit --model engine, for this engine on some of the devices")
      .integer("--lines", o.lines, "of the front, in the table")
      .toggle("--json", o.json, "one JSON document on stdout");
}

}  // namespace prony::cli
