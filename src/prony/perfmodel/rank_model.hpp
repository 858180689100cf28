// RankModel: the operators of one step on one rank. A tensor-parallel rank computes like a smaller
// model (its share of heads, of the MLP, of the vocabulary), so the operator list of StepModel is
// used on that shard; experts and pipeline stages are then scaled.
//   TP > kv heads: every rank keeps max(1, kv/tp) heads, so keys and values are replicated.
//   MLA: heads are split, the latent projections and the latent cache are not.
//   EP: a rank holds experts/ep experts whole; the busiest rank has `expert_skew` times the mean.
//   DP attention: attention sees the rows of its own group, experts those of all groups.
//   PP: the figures are of the slowest stage; embedding is on the first, head on the last.
// Thread safety: const calls from any thread.
#pragma once
#include <vector>

#include "prony/perfmodel/deployment.hpp"
#include "prony/perfmodel/step_model.hpp"

namespace prony::perfmodel {

/// The model as one tensor-parallel rank sees it.
catalog::ModelSpec shard_of(const catalog::ModelSpec& model, const Parallelism& parallel);

class RankModel {
 public:
  /// Requires check_deployment() (checked).
  explicit RankModel(const Deployment& deployment);

  /// Operators of the rank for `shape`, the rows of its data-parallel group. Their `count` is of
  /// the whole model: all stages together, one after the other.
  void operators(const StepShape& shape, std::vector<Operator>* out) const;

  /// Weights of the fullest rank [bytes].
  double weight_bytes() const { return weight_bytes_; }
  /// KV cache of one token of context on the fullest rank [bytes], windows ignored.
  double kv_bytes_per_token() const { return kv_bytes_per_token_; }
  /// KV cache of a sequence on the fullest rank, sliding layers keep their window only [bytes].
  double kv_bytes(int64_t context) const;
  /// Layers of the fullest stage.
  int32_t stage_layers() const { return stage_layers_; }
  const catalog::ModelSpec& shard() const { return step_.spec(); }
  const Precision& precision() const { return step_.precision(); }

 private:
  void spread_experts(const StepShape& shape, std::vector<Operator>* operators) const;

  catalog::ModelSpec model_;
  Parallelism parallel_;
  double expert_skew_;
  StepModel step_;
  int32_t stage_layers_ = 0;
  double weight_bytes_ = 0;
  double kv_bytes_per_token_ = 0;
};

}  // namespace prony::perfmodel
