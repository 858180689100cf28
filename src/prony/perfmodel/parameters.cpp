#include "prony/perfmodel/parameters.hpp"

#include <algorithm>

#include "prony/core/check.hpp"

namespace prony::perfmodel {
namespace {

using catalog::ModelSpec;

// One layer's attention, norms of the latents and heads included.
void count_attention(const ModelSpec& spec, ParameterCount& count) {
  const int64_t hidden = spec.hidden, heads = spec.heads, kv_heads = spec.kv_heads;
  const int64_t head_dim = spec.head_dim;
  if (spec.mla) {
    const catalog::Mla& mla = *spec.mla;
    const int64_t rank = mla.q_lora_rank, queries = heads * head_dim;
    count.attention += rank > 0 ? hidden * rank + rank * queries : hidden * queries;
    count.other += rank + mla.kv_lora_rank;  // their norms
    count.attention += hidden * (int64_t{mla.kv_lora_rank} + mla.qk_rope_head_dim);
    count.attention += mla.kv_lora_rank * heads * (int64_t{mla.qk_nope_head_dim} + mla.v_head_dim);
    count.attention += heads * mla.v_head_dim * hidden;
    return;
  }
  const int64_t qkv = (heads + 2 * kv_heads) * head_dim;
  count.attention += hidden * qkv + heads * head_dim * hidden;
  if (spec.qkv_bias) count.other += qkv;
  if (spec.o_bias) count.other += hidden;
  if (spec.qk_norm) count.other += 2 * head_dim;
  if (spec.attention_sinks) count.other += heads;
}

void count_dense_mlp(const ModelSpec& spec, ParameterCount& count) {
  count.mlp += 3 * int64_t{spec.hidden} * spec.intermediate;
  if (spec.mlp_bias) count.other += 2 * int64_t{spec.intermediate} + spec.hidden;
}

void count_moe(const ModelSpec& spec, ParameterCount& count) {
  const catalog::Moe& moe = *spec.moe;
  const int64_t hidden = spec.hidden;
  const int64_t idle = moe.experts - moe.experts_per_token;
  const int64_t expert = 3 * hidden * moe.intermediate;
  const int64_t bias = moe.expert_bias ? 2 * int64_t{moe.intermediate} + hidden : 0;
  count.experts += moe.experts * expert;
  count.other += moe.experts * bias;
  count.idle_experts += idle * (expert + bias);
  count.mlp += 3 * hidden * moe.shared_intermediate;
  count.other += hidden * moe.experts;
  if (moe.router_bias) count.other += moe.experts;
  if (moe.shared_gate) count.other += hidden;
}

}  // namespace

ParameterCount parameter_count(const ModelSpec& spec) {
  ParameterCount count;
  const int64_t table = int64_t{spec.vocab} * spec.hidden;
  count.embedding = table;
  count.head = spec.tied_embeddings ? 0 : table;
  count.other = spec.hidden;  // final norm
  for (int32_t layer = 0; layer < spec.layers; ++layer) {
    count_attention(spec, count);
    count.other += (spec.sandwich_norms ? 4 : 2) * int64_t{spec.hidden};
    if (spec.moe && layer >= spec.moe->dense_layers) {
      count_moe(spec, count);
    } else {
      count_dense_mlp(spec, count);
    }
  }
  return count;
}

double weight_bytes(const ModelSpec& spec, const Precision& precision) {
  const ParameterCount count = parameter_count(spec);
  return static_cast<double>(count.embedding) * precision.embedding +
         static_cast<double>(count.head) * precision.head +
         static_cast<double>(count.attention + count.mlp) * precision.linear +
         static_cast<double>(count.experts) * precision.expert +
         static_cast<double>(count.other) * precision.other;
}

int64_t kv_elements_per_token_layer(const ModelSpec& spec) {
  if (spec.mla) return int64_t{spec.mla->kv_lora_rank} + spec.mla->qk_rope_head_dim;
  return 2 * int64_t{spec.kv_heads} * spec.head_dim;
}

double kv_bytes_per_token(const ModelSpec& spec, double kv_bytes_per_element) {
  return static_cast<double>(spec.layers * kv_elements_per_token_layer(spec)) *
         kv_bytes_per_element;
}

double kv_bytes(const ModelSpec& spec, double kv_bytes_per_element, int64_t context) {
  PRONY_CHECK(context >= 0, "negative context");
  const int64_t sliding = catalog::sliding_layers(spec);
  int64_t tokens = (spec.layers - sliding) * context;  // summed over layers
  if (sliding > 0) tokens += sliding * std::min<int64_t>(context, *spec.sliding_window);
  return static_cast<double>(tokens) * static_cast<double>(kv_elements_per_token_layer(spec)) *
         kv_bytes_per_element;
}

}  // namespace prony::perfmodel
