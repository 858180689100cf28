// RopeTable: cosines and sines of rotary position embedding for every position, computed in float64
// and rounded once, because angles at long positions lose their digits in less (engine notes, 3).
// Pair i of `half` turns by position * frequency(i); the layout of pairs is half-split, as in
// Hugging Face weights (kernels.hpp).
// Source: Su et al., "RoFormer", 2021, section 3.2; linear: Chen et al., "Extending context window
// of large language models via positional interpolation", 2023; llama3: the rope scaling published
// with Llama 3.1; yarn: Peng et al., "YaRN", 2023, section 3.4, and DeepSeek-V2's mscale.
// Thread safety: immutable.
#pragma once
#include <cstdint>
#include <vector>

#include "prony/catalog/model_spec.hpp"
#include "prony/kernels/memory.hpp"

namespace prony::engine {

/// Angle per position of each pair [radians]; [head_dim / 2]. Requires a rope type other than kNone
/// (checked).
std::vector<double> rope_frequencies(const catalog::Rope& rope, int32_t head_dim);

/// Factor on every cosine and sine: 1 but for yarn.
double rope_amplitude(const catalog::Rope& rope);
/// Factor on the softmax scale of latent attention: DeepSeek's mscale_all_dim, squared; else 1.
double rope_softmax_factor(const catalog::Rope& rope);

class RopeTable {
 public:
  RopeTable() = default;
  /// Takes its memory from `arena`; a planning arena leaves the table empty.
  RopeTable(const catalog::Rope& rope, int32_t head_dim, int32_t positions, kernels::Arena& arena);

  const float* cosine(int32_t position) const { return cosine_ + position * half_; }  // [half]
  const float* sine(int32_t position) const { return sine_ + position * half_; }      // [half]
  int64_t half() const noexcept { return half_; }

 private:
  int64_t half_ = 0;
  float* cosine_ = nullptr;  // [positions][half]
  float* sine_ = nullptr;    // [positions][half]
};

}  // namespace prony::engine
