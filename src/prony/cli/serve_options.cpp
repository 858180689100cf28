#include "prony/cli/serve_options.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "prony/catalog/catalog.hpp"
#include "prony/cli/serve_emulated.hpp"

namespace prony::cli {
namespace {

Result<void> check_range(const char* flag, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return invalid_argument(fmt::format("{}: found {}, expected {} to {}", flag, value, low, high));
}

}  // namespace

void declare(Flags& flags, ServeOptions& options) {
  flags.group("Model")
      .text("--model", options.model,
            "folder of a checkpoint, or dummy:<...>; none: the house model")
      .text("--tokenizer", options.tokenizer, "another folder with tokenizer.json")
      .text("--served-model-name", options.served_name,
            "what clients call it (default: the folder)")
      .text("--device", options.device, "cpu, cuda, or emulated:HARDWARE: timing without computing")
      .text(
          "--weight-dtype", options.weight_dtype,
          "bf16, fp32, int8; the KV cache is fp32 beside fp32, else bf16. Emulated: as in predict")
      .choice("--activation-dtype", options.activation_dtype, {"auto", "fp32", "bf16"},
              "what products of bf16 weights read; auto: bf16 where the processor has AMX")
      .integer("--seed", options.seed, "of dummy weights and of requests without a seed")
      .text("--trace", options.trace_file,
            "time of every operator, to FILE and as a table at the end")
      .integer("--threads", options.threads, "of the engine; 0: one per allowed core");
  flags.group("Endpoint")
      .text("--host", options.host, "address to bind")
      .integer("--port", options.port, "0: any free one")
      .integer("--max-waiting", options.max_waiting, "queued requests before 503");
  flags.group("Scheduler")
      .integer("--max-num-seqs", options.max_sequences,
               "requests running at once (cpu: 64, cuda: 256)")
      .integer("--max-num-batched-tokens", options.max_step_tokens,
               "token budget of a step (cpu: 512, cuda: 8192)")
      .integer("--max-model-len", options.max_context, "context; 0: the model's")
      .number("--kv-cache-memory-gib", options.kv_memory_gib,
              "upper bound of the KV cache (cpu: 0.5, cuda: what fits)")
      .integer("--num-kv-blocks", options.kv_blocks, "KV blocks of 16 tokens, instead of a size")
      .choice("--enable-prefix-caching", options.prefix_caching, {"on", "off"}, "share prompts")
      .choice("--scheduling-policy", options.policy, {"fcfs", "priority"}, "queue order");
  flags.group("CUDA (docs/cuda.md)")
      .choice("--cuda-graphs", options.cuda_graphs, {"on", "off"}, "decode steps replay a graph");
  flags.group("Emulated devices (docs/emulate.md)")
      .text("--engine", options.engine, "whose overheads and limits: as in predict")
      .integer("--tp", options.tp, "devices that share every layer")
      .text("--step-time-profile", options.step_time_profile, "folder of measured layer times")
      .number("--step-noise", options.step_noise, "coefficient of variation of step times");
}

Result<void> check(const ServeOptions& options) {
  const bool emulated = !emulated_hardware(options.device).empty();
  if (!emulated && options.device != "cpu" && options.device != "cuda") {
    return invalid_argument(fmt::format(
        "--device: found '{}', expected cpu, cuda or emulated:HARDWARE", options.device));
  }
  if (!emulated && options.weight_dtype && *options.weight_dtype != "bf16" &&
      *options.weight_dtype != "fp32" && *options.weight_dtype != "int8") {
    return invalid_argument(fmt::format("--weight-dtype: found '{}', expected bf16, fp32 or int8",
                                        *options.weight_dtype));
  }
  if (!(options.step_noise >= 0 && options.step_noise < 10)) {
    return invalid_argument(
        fmt::format("--step-noise: found {}, expected 0 or more, below 10", options.step_noise));
  }
  if (emulated && options.model.empty()) {
    return invalid_argument("--model: missing, expected what to emulate: a catalogue id or folder");
  }
  std::error_code ignored;
  const bool dummy = catalog::is_dummy(options.model);
  if (!emulated && !options.model.empty() && !dummy &&
      !std::filesystem::is_directory(options.model, ignored)) {
    return invalid_argument(
        fmt::format("--model: found '{}', expected the folder of a checkpoint, dummy:<preset> or "
                    "dummy:<catalogue id>",
                    options.model));
  }
  if (options.device == "cuda" && !dummy) {
    return invalid_argument(
        "--device cuda: found a checkpoint, expected --model dummy:<...>: others run on cpu");
  }
  if ((dummy || emulated) && !options.tokenizer.empty()) {
    return invalid_argument(
        "--tokenizer: found it beside a model whose tokens are bytes, expected "
        "--model to be the folder of a checkpoint");
  }
  constexpr int64_t kMax = 1 << 30;
  for (const auto& done :
       {check_range("--port", options.port, 0, 65535),
        check_range("--threads", options.threads, 0, 1024),
        check_range("--max-waiting", options.max_waiting, 0, kMax),
        check_range("--max-num-seqs", options.max_sequences.value_or(1), 1, 65536),
        check_range("--max-num-batched-tokens", options.max_step_tokens.value_or(1), 1, kMax),
        check_range("--max-model-len", options.max_context, 0, kMax),
        check_range("--num-kv-blocks", options.kv_blocks.value_or(1), 1, kMax)}) {
    if (!done) return done.error();
  }
  if (const double gib = options.kv_memory_gib.value_or(0.5); !(gib > 0 && gib < 1e6)) {
    return invalid_argument(
        fmt::format("--kv-cache-memory-gib: found {}, expected more than 0", gib));
  }
  return {};
}

}  // namespace prony::cli
