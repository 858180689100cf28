#include "prony/cli/predict_options.hpp"

namespace prony::cli {

void declare(Flags& flags, PredictOptions& o) {
  flags.group("what")
      .text("--model", o.model, "catalogue id, Hugging Face id, folder or config.json")
      .text("--hardware", o.hardware, "catalogue id, or ID:SLICE for a MIG slice")
      .text("--engine", o.engine, "overhead profile: vllm, sglang, trtllm, llamacpp, prony")
      .integer("--tp", o.tp, "ranks that share every layer")
      .integer("--pp", o.pp, "pipeline stages")
      .integer("--ep", o.ep, "ranks over which experts are spread")
      .integer("--dp", o.dp, "groups of tp ranks with data-parallel attention")
      .text("--weight-dtype", o.weight_dtype,
            "bf16, fp16, fp8, fp8-block, int8, int4, fp4, mxfp4; auto: as published")
      .text("--kv-dtype", o.kv_dtype, "bf16, fp16, fp8, int8; auto: as the engine's profile says")
      .number("--clock-mhz", o.clock_mhz, "held at this clock instead of the boost clock")
      .toggle("--eager", o.eager, "without CUDA graphs");
  flags.group("load")
      .integer("--input-len,--random-input-len", o.input_len, "prompt tokens, 0: all cached")
      .integer("--output-len,--random-output-len", o.output_len, "output tokens")
      .number("--concurrency,--max-concurrency", o.concurrency, "clients of a closed loop")
      .number("--request-rate", o.request_rate, "Poisson arrivals a second")
      .number("--num-prompts", o.num_prompts,
              "requests of a closed-loop run, for the share of its common start; 0: endless")
      .toggle("--static", o.static_batch, "one batch of --concurrency, together to the end");
  flags.group("engine settings")
      .integer("--max-num-seqs", o.max_num_seqs, "over the profile's")
      .integer("--max-num-batched-tokens", o.max_batched_tokens, "over the profile's")
      .number("--expert-skew", o.expert_skew, "busiest expert-parallel rank over the mean")
      .integer("--draft-tokens", o.draft_tokens, "speculative decoding: proposed a step")
      .number("--acceptance", o.acceptance, "probability that a proposed token is right")
      .number("--draft-cost", o.draft_cost, "a draft token relative to a step of the model");
  flags.group("output")
      .list("--calibration", o.calibration,
            "file of prony fit --model engine, for this engine on this device")
      .toggle("--json", o.json, "one JSON document on stdout")
      .list("--sweep", o.sweep, "FLAG=V1,V2,...: one row for each combination")
      .text("--rows", o.rows, "JSON lines of flags, one prediction each");
}

Result<void> apply_flags(PredictOptions& options, const std::vector<std::string>& arguments) {
  Flags flags("predict", "");
  declare(flags, options);
  const auto parsed = flags.parse(arguments);
  if (!parsed) return parsed.error();
  return {};
}

}  // namespace prony::cli
