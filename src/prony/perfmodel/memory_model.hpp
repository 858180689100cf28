// MemoryModel: what fills a device (weights, activations, graphs, context, communicator) and what
// is left for the KV cache: blocks, largest batch, largest context, or by how much it does not fit.
// Thread safety: pure functions.
#pragma once
#include <cstdint>

#include "prony/perfmodel/rank_model.hpp"

namespace prony::perfmodel {

struct MemoryPlan {
  double device_bytes = 0;  // of one device
  double usable_bytes = 0;  // what the engine may use
  double weight_bytes = 0;
  double activation_bytes = 0;
  double overhead_bytes = 0;      // context, graphs, communicator
  double kv_bytes = 0;            // left for the cache; 0 if it does not fit
  double missing_bytes = 0;       // by how much it does not fit; 0 if it does
  double kv_bytes_per_token = 0;  // on the fullest rank
  int64_t kv_blocks = 0;
  int64_t kv_tokens = 0;  // of one data-parallel group
  bool fits() const { return missing_bytes <= 0; }
};

struct MemoryLimits {
  int64_t step_tokens = 0;    // of the largest step
  int64_t max_sequences = 0;  // whose logits may be needed at once
};

/// Requires check_deployment().
MemoryPlan memory_plan(const Deployment& deployment, const RankModel& rank,
                       const MemoryLimits& limits);

/// Sequences that hold `context` tokens each at the same time; 0 if not even one does.
int64_t sequences_that_fit(const MemoryPlan& plan, const RankModel& rank, int64_t context,
                           int32_t block_tokens);

/// Largest context that `sequences` sequences can have at the same time, at most the model's own.
int64_t largest_context(const MemoryPlan& plan, const RankModel& rank, int64_t sequences);

}  // namespace prony::perfmodel
