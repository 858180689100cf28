// EngineProfile: what an inference engine adds to the hardware, as data: host time of a step, time
// between kernels, which all-reduce it uses, how it schedules, what memory it keeps for itself.
// All numbers come from data/engines, with origin and reference.
// Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::catalog {

enum class AllReduceKind { kLibrary, kCustom };

/// What the scheduler sets aside when it admits a request.
enum class Reservation {
  kPrompt,  // input only; grows, and preempts when memory runs out (vLLM)
  kWhole,   // input and all of the output (TensorRT-LLM without eviction)
};

struct EngineProfile {
  std::string id, name, version;
  // Time.
  double step_s = 0;          // host work that the device waits for, once a step
  double sequence_s = 0;      // the same per sequence of the step
  double layer_s = 0;         // added per layer beyond its kernels
  double eager_kernel_s = 0;  // per kernel when CUDA graphs are off
  double request_s = 0;       // from arrival to schedule and from token to client, once a request
  double gemm16 = 1, gemm8 = 1;  // time of GEMMs relative to the hardware's curves, 16 and 8 bits
  double gemm8_memory = 1;       // the same of weight-bound 8-bit GEMMs
  double few_heads = 0;          // attention of decodes: times (8/KV heads of a rank)^this, below 8
  double overlap = 0;            // share of a collective hidden behind compute
  AllReduceKind all_reduce = AllReduceKind::kLibrary;
  int32_t graph_batch_max = 0;  // largest decode batch that runs as a CUDA graph; 0: none
  bool graph_prompts = false;   // steps with prompts and so many tokens do too
  // Scheduler.
  bool mixed_steps = true;  // prefill chunks and decodes share a step
  int32_t max_sequences = 0, max_step_tokens = 0, block_tokens = 16;
  Reservation reservation = Reservation::kPrompt;
  bool kv_follows_weights = false;  // 8-bit weights mean 8-bit KV cache unless said otherwise
  // Memory.
  double memory_share = 0.9;      // of the device for everything, or with share_of_free:
  bool share_of_free = false;     // of what weights and the rest leave, for the KV cache
  double context_bytes = 0;       // CUDA context, libraries, allocator
  double graph_bytes = 0;         // captured graphs
  double communicator_bytes = 0;  // once there is more than one rank
  double activation_factor = 1;   // on the largest live activations of a step
  bool operator==(const EngineProfile&) const = default;
};

/// `name` is the file, for messages. Error: kInvalidArgument, "NAME:LINE: what is wrong".
Result<EngineProfile> parse_engine_file(std::string_view text, std::string_view name);

/// Ids of data/engines, sorted.
Result<std::vector<std::string>> engine_ids();

/// A catalogue id ("vllm", or "vllm-0.6" where versions differ) or a FILE.yaml.
Result<EngineProfile> resolve_engine(std::string_view name);

}  // namespace prony::catalog
