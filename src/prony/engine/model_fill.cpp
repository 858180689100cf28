// Model::fill: every tensor of a checkpoint to its place, by the names that the published
// checkpoints of each architecture use.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>

#include "prony/engine/model.hpp"
#include "prony/quant/bf16.hpp"

namespace prony::engine {
namespace {

using kernels::Dtype;
using kernels::PackedMatrix;

// Reads whole tensors into place; after the first error it does nothing, so that callers need only
// ask once, at the end.
class Filler {
 public:
  Filler(const TensorSource& source, Dtype dtype, kernels::ThreadPool& pool)
      : source_(source), dtype_(dtype), pool_(pool) {}

  /// Outputs [first, first + rows) of `matrix` come from the tensor.
  void matrix(const std::string& name, PackedMatrix& matrix, int64_t first, int64_t rows) {
    read_rows(name, rows, matrix.inputs(), [&](int64_t row, int64_t count, const float* values) {
      matrix.pack_rows(first + row, count, values);
    });
  }

  /// Output place(row) of `matrix` comes from row `row` of the tensor.
  template <class Place>
  void reordered(const std::string& name, PackedMatrix& matrix, const Place& place) {
    const int64_t inputs = matrix.inputs();
    read_rows(name, matrix.outputs(), inputs, [&](int64_t row, int64_t count, const float* values) {
      for (int64_t i = 0; i < count; ++i) {
        matrix.pack_rows(place(row + i), 1, values + i * inputs);
      }
    });
  }

  /// Rows [first, first + count) of the tensor, for a caller that packs them by himself.
  bool rows(const TensorRows& wanted, float* values) {
    if (error_) return false;
    const Result<void> result = source_.read(wanted, values);
    if (!result.ok()) error_ = result.error();
    return result.ok();
  }

  void table(const std::string& name, void* table, int64_t rows, int64_t columns) {
    read_rows(name, rows, columns, [&](int64_t row, int64_t count, const float* values) {
      const int64_t at = row * columns;
      if (dtype_ == Dtype::kF32) {
        std::memcpy(static_cast<float*>(table) + at, values,
                    static_cast<size_t>(count * columns) * sizeof(float));
      } else {
        auto* target = static_cast<quant::Bf16*>(table) + at;
        for (int64_t i = 0; i < count * columns; ++i) target[i] = quant::to_bf16(values[i]);
      }
    });
  }

  void vector(const std::string& name, float* target, int64_t size) {
    if (target == nullptr) return;  // the model has none
    if (!rows({.name = name, .rows = 1, .columns = size, .first = 0, .count = 1}, target)) return;
    if (dtype_ != Dtype::kBf16) return;
    for (int64_t i = 0; i < size; ++i) target[i] = quant::round_to_bf16(target[i]);
  }

  Result<void> result() const {
    if (error_) return *error_;
    return {};
  }

 private:
  // Pieces start at multiples of a panel, so no two threads write one panel when `first` above is
  // such a multiple too, and the bytes of different outputs are distinct in any case.
  template <class Consume>
  void read_rows(const std::string& name, int64_t rows, int64_t columns, const Consume& consume) {
    if (error_) return;
    std::mutex mutex;
    pool_.run(rows, kernels::kPanelColumns, [&](int64_t begin, int64_t end) {
      std::vector<float> values(static_cast<size_t>(kernels::kPanelColumns * columns));
      for (int64_t row = begin; row < end; row += kernels::kPanelColumns) {
        const int64_t count = std::min(kernels::kPanelColumns, end - row);
        const Result<void> result = source_.read(
            {.name = name, .rows = rows, .columns = columns, .first = row, .count = count},
            values.data());
        if (!result.ok()) {
          const std::lock_guard lock(mutex);
          error_ = result.error();
          return;
        }
        consume(row, count, values.data());
      }
    });
  }

  const TensorSource& source_;
  Dtype dtype_;
  kernels::ThreadPool& pool_;
  std::optional<Error> error_;
};

// Where element `i` of a rotary part of `width` goes: DeepSeek's checkpoints pair neighbours, the
// kernels pair element i with element i + width / 2. Queries and keys are reordered alike, so their
// products stay.
int64_t half_split(int64_t i, int64_t width) {
  return i % 2 == 0 ? i / 2 : width / 2 + i / 2;
}

void fill_mla(Filler& filler, const catalog::ModelSpec& spec, const std::string& prefix,
              MlaWeights& mla) {
  const catalog::Mla& shape = *spec.mla;
  const int64_t head_dim = spec.head_dim, nope = shape.qk_nope_head_dim;
  const int64_t rope = shape.qk_rope_head_dim, rank = shape.kv_lora_rank;
  if (shape.q_lora_rank > 0) {
    filler.matrix(prefix + "q_a_proj.weight", mla.q_a, 0, shape.q_lora_rank);
    filler.vector(prefix + "q_a_layernorm.weight", mla.q_a_norm, shape.q_lora_rank);
  }
  const char* query = shape.q_lora_rank > 0 ? "q_b_proj.weight" : "q_proj.weight";
  filler.reordered(prefix + query, mla.q, [&](int64_t row) {
    const int64_t d = row % head_dim;
    return d < nope ? row : row - d + nope + half_split(d - nope, rope);
  });
  filler.reordered(prefix + "kv_a_proj_with_mqa.weight", mla.kv_a, [&](int64_t row) {
    return row < rank ? row : rank + half_split(row - rank, rope);
  });
  filler.vector(prefix + "kv_a_layernorm.weight", mla.kv_a_norm, rank);
  // kv_b_proj: for each head the rows of its keys, then those of its values.
  const std::string up = prefix + "kv_b_proj.weight";
  const int64_t per_head = nope + shape.v_head_dim;
  std::vector<float> rows(static_cast<size_t>(per_head * rank));
  std::vector<float> transposed(static_cast<size_t>(nope * rank));
  for (int64_t head = 0; head < spec.heads; ++head) {
    const TensorRows wanted{.name = up,
                            .rows = spec.heads * per_head,
                            .columns = rank,
                            .first = head * per_head,
                            .count = per_head};
    if (!filler.rows(wanted, rows.data())) return;
    for (int64_t d = 0; d < nope; ++d) {
      for (int64_t i = 0; i < rank; ++i) {
        transposed[static_cast<size_t>(i * nope + d)] = rows[static_cast<size_t>(d * rank + i)];
      }
    }
    mla.key_up[static_cast<size_t>(head)].pack_rows(0, rank, transposed.data());
    mla.value_up[static_cast<size_t>(head)].pack_rows(0, shape.v_head_dim,
                                                      rows.data() + nope * rank);
  }
}

void fill_attention(Filler& filler, const catalog::ModelSpec& spec, const std::string& prefix,
                    LayerWeights& layer) {
  const int64_t q = int64_t{spec.heads} * spec.head_dim;
  const int64_t kv = int64_t{spec.kv_heads} * spec.head_dim;
  if (spec.mla) {
    fill_mla(filler, spec, prefix, layer.mla);
  } else {
    filler.matrix(prefix + "q_proj.weight", layer.qkv, 0, q);
    filler.matrix(prefix + "k_proj.weight", layer.qkv, q, kv);
    filler.matrix(prefix + "v_proj.weight", layer.qkv, q + kv, kv);
    if (layer.qkv_bias != nullptr) {
      filler.vector(prefix + "q_proj.bias", layer.qkv_bias, q);
      filler.vector(prefix + "k_proj.bias", layer.qkv_bias + q, kv);
      filler.vector(prefix + "v_proj.bias", layer.qkv_bias + q + kv, kv);
    }
    filler.vector(prefix + "q_norm.weight", layer.q_norm, spec.head_dim);
    filler.vector(prefix + "k_norm.weight", layer.k_norm, spec.head_dim);
  }
  filler.matrix(prefix + "o_proj.weight", layer.o, 0, spec.hidden);
  filler.vector(prefix + "o_proj.bias", layer.o_bias, spec.hidden);
}

/// Names of the three projections; Mixtral numbers its experts' in this order: 1, 3, 2.
struct MlpNames {
  const char *gate = "gate_proj", *up = "up_proj", *down = "down_proj";
};

void fill_mlp(Filler& filler, const std::string& prefix, const MlpNames& names, MlpWeights& mlp) {
  const int64_t intermediate = mlp.down.inputs(), hidden = mlp.down.outputs();
  const std::string gate = prefix + names.gate, up = prefix + names.up, down = prefix + names.down;
  filler.matrix(gate + ".weight", mlp.gate_up, 0, intermediate);
  filler.matrix(up + ".weight", mlp.gate_up, intermediate, intermediate);
  filler.matrix(down + ".weight", mlp.down, 0, hidden);
  if (mlp.gate_up_bias == nullptr) return;
  filler.vector(gate + ".bias", mlp.gate_up_bias, intermediate);
  filler.vector(up + ".bias", mlp.gate_up_bias + intermediate, intermediate);
  filler.vector(down + ".bias", mlp.down_bias, hidden);
}

void fill_moe(Filler& filler, const catalog::ModelSpec& spec, const std::string& layer,
              MoeWeights& moe) {
  const bool mixtral = spec.architecture == "MixtralForCausalLM";
  const std::string prefix = layer + (mixtral ? "block_sparse_moe." : "mlp.");
  filler.matrix(prefix + "gate.weight", moe.router, 0, spec.moe->experts);
  filler.vector(prefix + "gate.e_score_correction_bias", moe.router_bias, spec.moe->experts);
  const MlpNames names = mixtral ? MlpNames{"w1", "w3", "w2"} : MlpNames{};
  for (size_t i = 0; i < moe.experts.size(); ++i) {
    fill_mlp(filler, fmt::format("{}experts.{}.", prefix, i), names, moe.experts[i]);
  }
  if (spec.moe->shared_intermediate == 0) return;
  // Qwen2-MoE has one shared expert with a gate, DeepSeek's are one matrix of several.
  const char* shared = spec.moe->shared_gate ? "shared_expert." : "shared_experts.";
  fill_mlp(filler, prefix + shared, {}, moe.shared);
  if (spec.moe->shared_gate) {
    filler.matrix(prefix + "shared_expert_gate.weight", moe.shared_gate, 0, 1);
  }
}

}  // namespace

Result<void> Model::fill(const TensorSource& source, kernels::ThreadPool& pool) {
  Filler filler(source, small_dtype_, pool);
  const int64_t hidden = spec_.hidden;
  const auto norm = [&](const std::string& name, float* target) {
    filler.vector(name, target, hidden);
    if (!spec_.norm_plus_one || target == nullptr) return;
    for (int64_t i = 0; i < hidden; ++i) target[i] += 1;  // in fp32, after any rounding: Gemma
  };
  if (embedding_ != nullptr) {
    filler.table("model.embed_tokens.weight", embedding_, spec_.vocab, hidden);
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    LayerWeights& layer = layers_[i];
    const std::string prefix = fmt::format("model.layers.{}.", i);
    norm(prefix + "input_layernorm.weight", layer.input_norm);
    fill_attention(filler, spec_, prefix + "self_attn.", layer);
    if (spec_.sandwich_norms) {
      norm(prefix + "post_attention_layernorm.weight", layer.attention_out_norm);
      norm(prefix + "pre_feedforward_layernorm.weight", layer.mlp_norm);
      norm(prefix + "post_feedforward_layernorm.weight", layer.mlp_out_norm);
    } else {
      norm(prefix + "post_attention_layernorm.weight", layer.mlp_norm);
    }
    if (has_experts(static_cast<int32_t>(i))) {
      fill_moe(filler, spec_, prefix, layer.moe);
    } else {
      fill_mlp(filler, prefix + "mlp.", {}, layer.mlp);
    }
  }
  norm("model.norm.weight", final_norm_);
  filler.matrix(spec_.tied_embeddings ? "model.embed_tokens.weight" : "lm_head.weight", head_, 0,
                spec_.vocab);
  return filler.result();
}

}  // namespace prony::engine
