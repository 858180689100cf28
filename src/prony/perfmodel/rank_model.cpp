#include "prony/perfmodel/rank_model.hpp"

#include <algorithm>

#include "prony/core/check.hpp"
#include "prony/perfmodel/parameters.hpp"

namespace prony::perfmodel {
namespace {

int32_t share(int32_t whole, int32_t ranks) {
  return std::max(1, (whole + ranks - 1) / ranks);
}

bool is_expert(OperatorKind kind) {
  return kind == OperatorKind::kExpertGateUp || kind == OperatorKind::kExpertActivation ||
         kind == OperatorKind::kExpertDown || kind == OperatorKind::kExpertCombine;
}

// Ranks that share one expert.
int32_t expert_tp(const Parallelism& parallel) {
  return parallel.tp * parallel.dp / parallel.ep;
}

}  // namespace

catalog::ModelSpec shard_of(const catalog::ModelSpec& model, const Parallelism& parallel) {
  catalog::ModelSpec shard = model;
  const int32_t tp = parallel.tp;
  shard.heads = share(model.heads, tp);
  if (!model.mla) shard.kv_heads = share(model.kv_heads, tp);
  shard.intermediate = share(model.intermediate, tp);
  shard.vocab = share(model.vocab, tp);
  if (shard.moe) {
    shard.moe->intermediate = share(model.moe->intermediate, expert_tp(parallel));
    shard.moe->shared_intermediate =
        model.moe->shared_intermediate == 0 ? 0 : share(model.moe->shared_intermediate, tp);
  }
  return shard;
}

RankModel::RankModel(const Deployment& deployment)
    : model_(deployment.model),
      parallel_(deployment.parallel),
      expert_skew_(deployment.parallel.ep > 1 ? deployment.expert_skew : 1),
      step_(shard_of(deployment.model, deployment.parallel), precision_of(deployment)) {
  PRONY_CHECK(check_deployment(deployment).ok(), "deployment was not checked");
  const catalog::ModelSpec& shard = step_.spec();
  const Precision& precision = step_.precision();
  stage_layers_ = share(model_.layers, parallel_.pp);
  const ParameterCount count = parameter_count(shard);
  const double stage = static_cast<double>(stage_layers_) / model_.layers;
  // The first stage has the embedding, the last the head; with one stage both are on it. A tied
  // head has its copy on the last stage when stages differ.
  const double embedding = static_cast<double>(count.embedding) * precision.embedding;
  const double head = static_cast<double>(count.head) * precision.head;
  const double ends = parallel_.pp == 1 ? embedding + head : std::max(embedding, head);
  weight_bytes_ =
      ends + stage * (static_cast<double>(count.attention + count.mlp) * precision.linear +
                      static_cast<double>(count.experts) / parallel_.ep * precision.expert +
                      static_cast<double>(count.other) * precision.other);
  kv_bytes_per_token_ =
      stage_layers_ * static_cast<double>(kv_elements_per_token_layer(shard)) * precision.kv;
}

double RankModel::kv_bytes(int64_t context) const {
  const double stage = static_cast<double>(stage_layers_) / model_.layers;
  return stage * perfmodel::kv_bytes(step_.spec(), step_.precision().kv, context);
}

void RankModel::operators(const StepShape& shape, std::vector<Operator>* out) const {
  step_.operators(shape, out);
  if (model_.moe && (parallel_.ep > 1 || parallel_.dp > 1)) spread_experts(shape, out);
}

// The experts see the rows of all data-parallel groups, and each rank has its part of them.
void RankModel::spread_experts(const StepShape& shape, std::vector<Operator>* operators) const {
  const catalog::Moe& moe = *model_.moe;
  const double local = static_cast<double>(shape.tokens());
  const double all = local * parallel_.dp;
  const double reached_local = expected_experts(moe.experts, moe.experts_per_token, local);
  const double reached = expected_experts(moe.experts, moe.experts_per_token, all);
  // Of products and activations: rows of this rank over rows the list was made for.
  const double rows = parallel_.dp * expert_skew_ / parallel_.ep;
  // Of weights: experts reached on this rank over experts the list was made for.
  const double experts = reached / reached_local / parallel_.ep;
  for (Operator& op : *operators) {
    if (!is_expert(op.kind)) continue;
    op.flops *= rows;
    op.vector_flops *= rows;
    op.activation_bytes *= rows;
    op.weight_bytes *= experts;
    if (op.batch > 0) {
      op.batch *= experts;
      op.m *= rows / experts;
    }
  }
}

}  // namespace prony::perfmodel
