#include "prony/engine/model.hpp"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <optional>
#include <string>

#include "prony/core/check.hpp"
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
    if (error_) return;
    const Result<void> result =
        source_.read({.name = name, .rows = 1, .columns = size, .first = 0, .count = 1}, target);
    if (!result.ok()) {
      error_ = result.error();
    } else if (dtype_ == Dtype::kBf16) {
      for (int64_t i = 0; i < size; ++i) target[i] = quant::round_to_bf16(target[i]);
    }
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

}  // namespace

Model::Model(const catalog::ModelSpec& spec, Dtype dtype, kernels::Arena arena)
    : spec_(spec), dtype_(dtype), arena_(std::move(arena)) {
  const int64_t hidden = spec.hidden;
  const int64_t q = int64_t{spec.heads} * spec.head_dim;
  const int64_t kv = int64_t{spec.kv_heads} * spec.head_dim;
  const int64_t inner = spec.intermediate;
  if (!spec.tied_embeddings) {
    embedding_ = arena_.take<std::byte>(spec.vocab * hidden * kernels::dtype_bytes(dtype));
  }
  for (int32_t i = 0; i < spec.layers; ++i) {
    LayerWeights& layer = layers_.emplace_back();
    layer.input_norm = arena_.take<float>(hidden);
    layer.qkv = take_matrix(q + 2 * kv, hidden);
    if (spec.qkv_bias) layer.qkv_bias = arena_.take<float>(q + 2 * kv);
    if (spec.qk_norm) {
      layer.q_norm = arena_.take<float>(spec.head_dim);
      layer.k_norm = arena_.take<float>(spec.head_dim);
    }
    layer.o = take_matrix(hidden, q);
    if (spec.o_bias) layer.o_bias = arena_.take<float>(hidden);
    layer.post_norm = arena_.take<float>(hidden);
    layer.gate_up = take_matrix(2 * inner, hidden);
    layer.down = take_matrix(hidden, inner);
    if (spec.mlp_bias) {
      layer.gate_up_bias = arena_.take<float>(2 * inner);
      layer.down_bias = arena_.take<float>(hidden);
    }
  }
  final_norm_ = arena_.take<float>(hidden);
  head_ = take_matrix(spec.vocab, hidden);
}

PackedMatrix Model::take_matrix(int64_t outputs, int64_t inputs) {
  return {dtype_, outputs, inputs,
          arena_.take<std::byte>(PackedMatrix::size_bytes(dtype_, outputs, inputs))};
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

Result<void> Model::fill(const TensorSource& source, kernels::ThreadPool& pool) {
  Filler filler(source, dtype_, pool);
  const int64_t hidden = spec_.hidden;
  const int64_t q = int64_t{spec_.heads} * spec_.head_dim;
  const int64_t kv = int64_t{spec_.kv_heads} * spec_.head_dim;
  const int64_t inner = spec_.intermediate;
  if (embedding_ != nullptr) {
    filler.table("model.embed_tokens.weight", embedding_, spec_.vocab, hidden);
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    LayerWeights& layer = layers_[i];
    const std::string prefix = fmt::format("model.layers.{}.", i);
    filler.vector(prefix + "input_layernorm.weight", layer.input_norm, hidden);
    filler.matrix(prefix + "self_attn.q_proj.weight", layer.qkv, 0, q);
    filler.matrix(prefix + "self_attn.k_proj.weight", layer.qkv, q, kv);
    filler.matrix(prefix + "self_attn.v_proj.weight", layer.qkv, q + kv, kv);
    if (layer.qkv_bias != nullptr) {
      filler.vector(prefix + "self_attn.q_proj.bias", layer.qkv_bias, q);
      filler.vector(prefix + "self_attn.k_proj.bias", layer.qkv_bias + q, kv);
      filler.vector(prefix + "self_attn.v_proj.bias", layer.qkv_bias + q + kv, kv);
    }
    if (layer.q_norm != nullptr) {
      filler.vector(prefix + "self_attn.q_norm.weight", layer.q_norm, spec_.head_dim);
      filler.vector(prefix + "self_attn.k_norm.weight", layer.k_norm, spec_.head_dim);
    }
    filler.matrix(prefix + "self_attn.o_proj.weight", layer.o, 0, hidden);
    if (layer.o_bias != nullptr) {
      filler.vector(prefix + "self_attn.o_proj.bias", layer.o_bias, hidden);
    }
    filler.vector(prefix + "post_attention_layernorm.weight", layer.post_norm, hidden);
    filler.matrix(prefix + "mlp.gate_proj.weight", layer.gate_up, 0, inner);
    filler.matrix(prefix + "mlp.up_proj.weight", layer.gate_up, inner, inner);
    filler.matrix(prefix + "mlp.down_proj.weight", layer.down, 0, hidden);
    if (layer.gate_up_bias != nullptr) {
      filler.vector(prefix + "mlp.gate_proj.bias", layer.gate_up_bias, inner);
      filler.vector(prefix + "mlp.up_proj.bias", layer.gate_up_bias + inner, inner);
      filler.vector(prefix + "mlp.down_proj.bias", layer.down_bias, hidden);
    }
  }
  filler.vector("model.norm.weight", final_norm_, hidden);
  filler.matrix(spec_.tied_embeddings ? "model.embed_tokens.weight" : "lm_head.weight", head_, 0,
                spec_.vocab);
  return filler.result();
}

void Model::embed(int32_t token, float* row) const {
  PRONY_CHECK(token >= 0 && token < spec_.vocab, "token outside of the vocabulary");
  const int64_t hidden = spec_.hidden;
  if (embedding_ == nullptr) {
    // Tied: gathering a row from the packed head costs a cache line an element, microseconds a
    // token; a second copy of the table would cost its whole size.
    head_.read_row(token, row);
  } else if (dtype_ == Dtype::kF32) {
    std::memcpy(row, static_cast<const float*>(embedding_) + token * hidden,
                static_cast<size_t>(hidden) * sizeof(float));
  } else {
    const auto* source = static_cast<const quant::Bf16*>(embedding_) + token * hidden;
    for (int64_t i = 0; i < hidden; ++i) row[i] = quant::to_float(source[i]);
  }
}

}  // namespace prony::engine
