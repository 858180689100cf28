// Operators of attention: grouped-query (multi-head and multi-query are its limits) and latent.
#include "prony/perfmodel/parameters.hpp"
#include "prony/perfmodel/step_builder.hpp"

namespace prony::perfmodel {

void StepBuilder::grouped_attention() {
  const double heads = spec_.heads, kv_heads = spec_.kv_heads, dim = spec_.head_dim;
  const double qkv = (heads + 2 * kv_heads) * dim;
  Operator& projection = gemm(OperatorKind::kQkv, tokens_, qkv, spec_.hidden, 1, precision_.linear);
  if (spec_.qkv_bias) add_bias(projection, qkv, tokens_);

  if (spec_.qk_norm) {
    Operator& op = add(OperatorKind::kQkNorm);
    const double elements = tokens_ * (heads + kv_heads) * dim;
    op.vector_flops = kNormOps * elements;
    op.weight_bytes = 2 * dim * precision_.other;
    activations(op, elements, elements);
  }

  Operator& rope = add(OperatorKind::kRopeStore);
  if (spec_.rope.type != catalog::RopeType::kNone) {
    rope.vector_flops = kRopeOps * tokens_ * (heads + kv_heads) * dim;
  }
  activations(rope, tokens_ * qkv, tokens_ * heads * dim);
  const double kv_elements = static_cast<double>(kv_elements_per_token_layer(spec_));
  rope.kv_write_bytes = tokens_ * kv_elements * precision_.kv;

  for (const RowKind kind : {RowKind::kPrefill, RowKind::kDecode}) {
    const AttentionLoad load = shape_.load(kind, window_);
    if (load.rows == 0) continue;
    Operator& op = add(kind == RowKind::kPrefill ? OperatorKind::kAttentionPrefill
                                                 : OperatorKind::kAttentionDecode);
    // 2 d for the score of a pair and 2 d for its value, in every query head.
    op.flops = 4 * dim * heads * load.pairs;
    op.vector_flops = softmax_ops(load.pairs);
    if (spec_.attention_sinks) op.weight_bytes = heads * precision_.other;
    const double queries = static_cast<double>(load.queries) * heads * dim;
    activations(op, queries, queries);
    // The heads of a group share one read of their keys and values.
    op.kv_read_bytes = static_cast<double>(load.keys) * kv_elements * precision_.kv;
  }

  Operator& output =
      gemm(OperatorKind::kOutput, tokens_, spec_.hidden, heads * dim, 1, precision_.linear);
  if (spec_.o_bias) add_bias(output, spec_.hidden, tokens_);
}

void StepBuilder::latent_attention() {
  latent_projections();
  latent_prefill();
  latent_decode();
  gemm(OperatorKind::kOutput, tokens_, spec_.hidden,
       static_cast<double>(spec_.heads) * spec_.mla->v_head_dim, 1, precision_.linear);
}

void StepBuilder::latent_projections() {
  const catalog::Mla& mla = *spec_.mla;
  const double heads = spec_.heads, latent = mla.kv_lora_rank, rope_dim = mla.qk_rope_head_dim;
  double query_input = spec_.hidden;
  if (mla.q_lora_rank > 0) {
    gemm(OperatorKind::kMlaQueryDown, tokens_, mla.q_lora_rank, spec_.hidden, 1, precision_.linear);
    norm(OperatorKind::kMlaQueryNorm, mla.q_lora_rank, false);
    query_input = mla.q_lora_rank;
  }
  gemm(OperatorKind::kMlaQueryUp, tokens_, heads * spec_.head_dim, query_input, 1,
       precision_.linear);
  gemm(OperatorKind::kMlaKvDown, tokens_, latent + rope_dim, spec_.hidden, 1, precision_.linear);
  norm(OperatorKind::kMlaKvNorm, latent, false);

  // Rotates its part of every query head and the one key part that all heads share.
  Operator& rope = add(OperatorKind::kRopeStore);
  rope.vector_flops = kRopeOps * tokens_ * (heads + 1) * rope_dim;
  activations(rope, tokens_ * (heads * rope_dim + latent + rope_dim), tokens_ * heads * rope_dim);
  rope.kv_write_bytes = tokens_ * (latent + rope_dim) * precision_.kv;
}

// Rows of several tokens: keys and values of all heads are made from the latents of every position
// the row sees, then attention is ordinary with head sizes nope + rope and v.
void StepBuilder::latent_prefill() {
  const AttentionLoad load = shape_.load(RowKind::kPrefill, window_);
  if (load.rows == 0) return;
  const catalog::Mla& mla = *spec_.mla;
  const double heads = spec_.heads, latent = mla.kv_lora_rank, rope_dim = mla.qk_rope_head_dim;
  const double queries = static_cast<double>(load.queries), keys = static_cast<double>(load.keys);
  const double expanded = heads * (mla.qk_nope_head_dim + mla.v_head_dim);

  Operator& up = gemm(OperatorKind::kMlaKvUp, keys, expanded, latent, 1, precision_.linear);
  up.activation_bytes = 0;  // its input comes from the cache
  activations(up, 0, keys * expanded);
  up.kv_read_bytes = keys * latent * precision_.kv;

  Operator& op = add(OperatorKind::kAttentionPrefill);
  op.flops = 2 * load.pairs * heads * (spec_.head_dim + mla.v_head_dim);
  op.vector_flops = softmax_ops(load.pairs);
  activations(op, queries * heads * spec_.head_dim + keys * expanded,
              queries * heads * mla.v_head_dim);
  op.kv_read_bytes = keys * rope_dim * precision_.kv;
}

// Rows of one token: the query is brought into the latent space instead, so that the cache is read
// as it is, once for all heads.
void StepBuilder::latent_decode() {
  const AttentionLoad load = shape_.load(RowKind::kDecode, window_);
  if (load.rows == 0) return;
  const catalog::Mla& mla = *spec_.mla;
  const double heads = spec_.heads, latent = mla.kv_lora_rank, rope_dim = mla.qk_rope_head_dim;
  const double queries = static_cast<double>(load.queries);
  gemm(OperatorKind::kMlaAbsorbQuery, queries, latent, mla.qk_nope_head_dim, heads,
       precision_.linear);

  Operator& op = add(OperatorKind::kAttentionDecode);
  op.flops = 2 * load.pairs * heads * (latent + rope_dim + latent);
  op.vector_flops = softmax_ops(load.pairs);
  activations(op, queries * heads * (latent + rope_dim), queries * heads * latent);
  op.kv_read_bytes = static_cast<double>(load.keys) * (latent + rope_dim) * precision_.kv;

  gemm(OperatorKind::kMlaAbsorbValue, queries, mla.v_head_dim, latent, heads, precision_.linear);
}

}  // namespace prony::perfmodel
