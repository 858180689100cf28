#include "prony/perfmodel/memory_model.hpp"

#include <algorithm>
#include <cmath>

namespace prony::perfmodel {

MemoryPlan memory_plan(const Deployment& deployment, const RankModel& rank,
                       const MemoryLimits& limits) {
  const catalog::EngineProfile& engine = deployment.engine;
  const catalog::ModelSpec& shard = rank.shard();
  MemoryPlan plan;
  plan.device_bytes = deployment.hardware.memory_bytes;
  plan.weight_bytes = rank.weight_bytes();
  plan.kv_bytes_per_token = rank.kv_bytes_per_token();

  // Live at once at the widest point of a layer: residual stream and its norm, and the MLP's gate,
  // up and product, or the queries, keys and values.
  const double hidden = shard.hidden;
  const double qkv = (shard.heads + 2.0 * shard.kv_heads) * shard.head_dim;
  double wide = std::max(3.0 * shard.intermediate, qkv);
  if (shard.moe) {
    wide = std::max(qkv, 3.0 * shard.moe->intermediate * shard.moe->experts_per_token +
                             3.0 * shard.moe->shared_intermediate);
  }
  const double activations =
      static_cast<double>(limits.step_tokens) * (2 * hidden + wide) * rank.precision().activation;
  // Samplers keep logits in 32 bits and their probabilities or sorted copies beside them.
  const double logits =
      2.0 * 4 * static_cast<double>(limits.max_sequences) * deployment.model.vocab;
  plan.activation_bytes = engine.activation_factor * activations + logits;
  plan.overhead_bytes = engine.context_bytes + (deployment.cuda_graphs ? engine.graph_bytes : 0) +
                        (deployment.parallel.ranks() > 1 ? engine.communicator_bytes : 0);

  const double taken = plan.weight_bytes + plan.activation_bytes + plan.overhead_bytes;
  double left = 0;
  if (engine.share_of_free) {
    plan.usable_bytes = plan.device_bytes;
    left = engine.memory_share * (plan.device_bytes - taken);
  } else {
    plan.usable_bytes = engine.memory_share * plan.device_bytes;
    left = plan.usable_bytes - taken;
  }
  if (left <= 0) {
    plan.missing_bytes = -left + plan.kv_bytes_per_token * engine.block_tokens;
    return plan;
  }
  plan.kv_bytes = left;
  const double block = plan.kv_bytes_per_token * engine.block_tokens;
  plan.kv_blocks = static_cast<int64_t>(left / block);
  plan.kv_tokens = plan.kv_blocks * engine.block_tokens;
  return plan;
}

int64_t sequences_that_fit(const MemoryPlan& plan, const RankModel& rank, int64_t context,
                           int32_t block_tokens) {
  if (!plan.fits()) return 0;
  const int64_t rounded = (context + block_tokens - 1) / block_tokens * block_tokens;
  return static_cast<int64_t>(plan.kv_bytes / rank.kv_bytes(rounded));
}

int64_t largest_context(const MemoryPlan& plan, const RankModel& rank, int64_t sequences) {
  if (!plan.fits() || sequences < 1) return 0;
  const double each = plan.kv_bytes / static_cast<double>(sequences);
  int64_t low = 0, high = rank.shard().max_context;
  while (low < high) {  // kv_bytes() grows with the context
    const int64_t middle = low + (high - low + 1) / 2;
    if (rank.kv_bytes(middle) <= each) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace prony::perfmodel
