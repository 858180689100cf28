// Model: the weights of a decoder, packed for the CPU kernels: matrices in fp32, bf16 or int8, norm
// weights and biases always as floats (rounded to bf16 first unless all is fp32). With int8, what
// is small or not a plain product stays as it is with bf16: the embedding table, unless the head is
// tied to it, and the two up-projections of latent attention, a matrix a head. Query, key and
// value projections are one matrix, gate and up another, so each input is read once.
// Source of the tensor names: the published checkpoints of each architecture.
// Thread safety: immutable after load().
#pragma once
#include <cstdint>
#include <vector>

#include "prony/catalog/model_spec.hpp"
#include "prony/core/result.hpp"
#include "prony/engine/layer_weights.hpp"
#include "prony/engine/tensor_source.hpp"
#include "prony/kernels/memory.hpp"
#include "prony/kernels/packed_matrix.hpp"
#include "prony/kernels/thread_pool.hpp"

namespace prony::engine {

class Model {
 public:
  /// Bytes load() will take. Requires a supported spec (support.hpp).
  static int64_t weights_bytes(const catalog::ModelSpec& spec, kernels::Dtype dtype);

  /// Reads and packs every tensor, on all threads of `pool`. Requires a supported spec.
  /// Error: what the source says, or kEnvironment if the memory cannot be had.
  static Result<Model> load(const catalog::ModelSpec& spec, kernels::Dtype dtype,
                            const TensorSource& source, kernels::ThreadPool& pool);

  const catalog::ModelSpec& spec() const noexcept { return spec_; }
  kernels::Dtype dtype() const noexcept { return dtype_; }  // of the large matrices
  /// True where layer `index` routes to experts.
  bool has_experts(int32_t index) const noexcept {
    return spec_.moe && index >= spec_.moe->dense_layers;
  }
  const LayerWeights& layer(int32_t index) const { return layers_[static_cast<size_t>(index)]; }
  const float* final_norm() const noexcept { return final_norm_; }      // [hidden]
  const kernels::PackedMatrix& head() const noexcept { return head_; }  // [vocab][hidden]
  /// The embedding of one token, as floats, not scaled. Requires 0 <= token < vocab.
  void embed(int32_t token, float* row /* [hidden] */) const;

 private:
  Model(const catalog::ModelSpec& spec, kernels::Dtype dtype, kernels::Arena arena);
  kernels::PackedMatrix take_matrix(int64_t outputs, int64_t inputs);
  kernels::PackedMatrix take_matrix(kernels::Dtype dtype, int64_t outputs, int64_t inputs);
  MlpWeights take_mlp(int64_t intermediate, bool bias);
  MoeWeights take_moe();
  MlaWeights take_mla();
  Result<void> fill(const TensorSource& source, kernels::ThreadPool& pool);

  catalog::ModelSpec spec_;
  kernels::Dtype dtype_;
  kernels::Arena arena_;
  std::vector<LayerWeights> layers_;
  kernels::Dtype small_dtype_;  // of what int8 is not for
  void* embedding_ = nullptr;   // float or Bf16 [vocab][hidden]; null if tied: rows come from head_
  float* final_norm_ = nullptr;
  kernels::PackedMatrix head_;
};

}  // namespace prony::engine
