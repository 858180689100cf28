// What the engine can run and what it needs: refusals before anything is allocated, each one line
// that names the model, what was found and what was expected. Thread safety: any thread.
#pragma once
#include <cstdint>
#include <string>

#include "prony/catalog/model_spec.hpp"
#include "prony/core/result.hpp"

namespace prony::engine {

/// Error: kInvalidArgument, naming the model and the first feature this engine lacks (attention
/// sinks, clamped swiglu, ...) or the first size that makes no sense.
Result<void> check_supported(const catalog::ModelSpec& spec);

/// Memory that could be used now without swapping: the kernel's estimate, or what the control group
/// of this process leaves, whichever is less. Error: kEnvironment if neither can be read.
Result<int64_t> available_memory_bytes();

/// Bytes the engine is about to take, by purpose.
struct MemoryNeed {
  int64_t weights_bytes = 0;
  int64_t kv_bytes = 0;
  int64_t workspace_bytes = 0;
  int64_t total_bytes() const { return weights_bytes + kv_bytes + workspace_bytes; }
};

/// Error: kEnvironment, "model M needs ... GB of memory (weights ..., KV cache ..., workspace ...),
/// available are ... GB", if more than `available_bytes` is needed.
Result<void> check_memory(const MemoryNeed& need, int64_t available_bytes,
                          const std::string& model_id);

}  // namespace prony::engine
