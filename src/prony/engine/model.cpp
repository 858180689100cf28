#include "prony/engine/model.hpp"

#include <cstring>

#include "prony/core/check.hpp"
#include "prony/quant/bf16.hpp"

namespace prony::engine {

using kernels::Dtype;
using kernels::PackedMatrix;

Model::Model(const catalog::ModelSpec& spec, Dtype dtype, kernels::Arena arena)
    : spec_(spec),
      dtype_(dtype),
      arena_(std::move(arena)),
      small_dtype_(dtype == Dtype::kI8 ? Dtype::kBf16 : dtype) {
  const int64_t hidden = spec.hidden;
  const int64_t q = int64_t{spec.heads} * spec.head_dim;
  const int64_t kv = int64_t{spec.kv_heads} * spec.head_dim;
  if (!spec.tied_embeddings) {
    embedding_ = arena_.take<std::byte>(spec.vocab * hidden * kernels::dtype_bytes(small_dtype_));
  }
  for (int32_t i = 0; i < spec.layers; ++i) {
    LayerWeights& layer = layers_.emplace_back();
    layer.input_norm = arena_.take<float>(hidden);
    if (spec.mla) {
      layer.mla = take_mla();
      layer.o = take_matrix(hidden, int64_t{spec.heads} * spec.mla->v_head_dim);
    } else {
      layer.qkv = take_matrix(q + 2 * kv, hidden);
      if (spec.qkv_bias) layer.qkv_bias = arena_.take<float>(q + 2 * kv);
      if (spec.qk_norm) {
        layer.q_norm = arena_.take<float>(spec.head_dim);
        layer.k_norm = arena_.take<float>(spec.head_dim);
      }
      layer.o = take_matrix(hidden, q);
    }
    if (spec.o_bias) layer.o_bias = arena_.take<float>(hidden);
    layer.mlp_norm = arena_.take<float>(hidden);
    if (spec.sandwich_norms) {
      layer.attention_out_norm = arena_.take<float>(hidden);
      layer.mlp_out_norm = arena_.take<float>(hidden);
    }
    if (has_experts(i)) {
      layer.moe = take_moe();
    } else {
      layer.mlp = take_mlp(spec.intermediate, spec.mlp_bias);
    }
  }
  final_norm_ = arena_.take<float>(hidden);
  head_ = take_matrix(spec.vocab, hidden);
}

MlpWeights Model::take_mlp(int64_t intermediate, bool bias) {
  MlpWeights mlp;
  mlp.gate_up = take_matrix(2 * intermediate, spec_.hidden);
  mlp.down = take_matrix(spec_.hidden, intermediate);
  if (bias) {
    mlp.gate_up_bias = arena_.take<float>(2 * intermediate);
    mlp.down_bias = arena_.take<float>(spec_.hidden);
  }
  return mlp;
}

MoeWeights Model::take_moe() {
  const catalog::Moe& shape = *spec_.moe;
  MoeWeights moe;
  moe.router = take_matrix(Dtype::kF32, shape.experts, spec_.hidden);
  if (shape.router_bias) moe.router_bias = arena_.take<float>(shape.experts);
  for (int32_t i = 0; i < shape.experts; ++i) {
    moe.experts.push_back(take_mlp(shape.intermediate, false));
  }
  if (shape.shared_intermediate > 0) moe.shared = take_mlp(shape.shared_intermediate, false);
  if (shape.shared_gate) moe.shared_gate = take_matrix(Dtype::kF32, 1, spec_.hidden);
  return moe;
}

MlaWeights Model::take_mla() {
  const catalog::Mla& shape = *spec_.mla;
  MlaWeights mla;
  int64_t query_inputs = spec_.hidden;
  if (shape.q_lora_rank > 0) {
    query_inputs = shape.q_lora_rank;
    mla.q_a = take_matrix(query_inputs, spec_.hidden);
    mla.q_a_norm = arena_.take<float>(query_inputs);
  }
  mla.q = take_matrix(int64_t{spec_.heads} * spec_.head_dim, query_inputs);
  mla.kv_a = take_matrix(shape.kv_lora_rank + shape.qk_rope_head_dim, spec_.hidden);
  mla.kv_a_norm = arena_.take<float>(shape.kv_lora_rank);
  for (int32_t head = 0; head < spec_.heads; ++head) {
    mla.key_up.push_back(take_matrix(small_dtype_, shape.kv_lora_rank, shape.qk_nope_head_dim));
    mla.value_up.push_back(take_matrix(small_dtype_, shape.v_head_dim, shape.kv_lora_rank));
  }
  return mla;
}

PackedMatrix Model::take_matrix(Dtype dtype, int64_t outputs, int64_t inputs) {
  return {dtype, outputs, inputs,
          arena_.take<std::byte>(PackedMatrix::size_bytes(dtype, outputs, inputs))};
}

PackedMatrix Model::take_matrix(int64_t outputs, int64_t inputs) {
  return take_matrix(dtype_, outputs, inputs);
}

int64_t Model::weights_bytes(const catalog::ModelSpec& spec, Dtype dtype) {
  return Model(spec, dtype, kernels::Arena()).arena_.used_bytes();
}

Result<Model> Model::load(const catalog::ModelSpec& spec, Dtype dtype, const TensorSource& source,
                          kernels::ThreadPool& pool) {
  Result<kernels::Pages> pages = kernels::Pages::create(weights_bytes(spec, dtype), false);
  if (!pages.ok()) return pages.error();
  Model model(spec, dtype, kernels::Arena(std::move(pages).value()));
  if (const Result<void> filled = model.fill(source, pool); !filled.ok()) return filled.error();
  return model;
}

void Model::embed(int32_t token, float* row) const {
  PRONY_CHECK(token >= 0 && token < spec_.vocab, "token outside of the vocabulary");
  const int64_t hidden = spec_.hidden;
  if (embedding_ == nullptr) {
    // Tied: gathering a row from the packed head costs a cache line an element, microseconds a
    // token; a second copy of the table would cost its whole size.
    head_.read_row(token, row);
  } else if (small_dtype_ == Dtype::kF32) {
    std::memcpy(row, static_cast<const float*>(embedding_) + token * hidden,
                static_cast<size_t>(hidden) * sizeof(float));
  } else {
    const auto* source = static_cast<const quant::Bf16*>(embedding_) + token * hidden;
    for (int64_t i = 0; i < hidden; ++i) row[i] = quant::to_float(source[i]);
  }
}

}  // namespace prony::engine
