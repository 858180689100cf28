// Precision: bytes per element of the tensors a step touches. Fractions are real: packed formats
// count their scales (4 bits in groups of 128 with a 16-bit scale: 0.5 + 2/128 bytes).
// Thread safety: a value.
#pragma once
#include "prony/catalog/model_spec.hpp"

namespace prony::perfmodel {

struct Precision {
  double linear = 2;      // projections of attention, dense MLP and shared experts [B/element]
  double expert = 2;      // routed experts
  double embedding = 2;   // token embedding, and the output head that is tied to it
  double head = 2;        // output head of its own
  double other = 2;       // norms, biases, router, attention sinks
  double activation = 2;  // what passes between operators
  double kv = 2;          // KV cache
};

inline constexpr double kFp8Block128Bytes = 1 + 4.0 / (128 * 128);  // one fp32 scale a block
inline constexpr double kMxfp4Bytes = 0.5 + 1.0 / 32;               // one 8-bit scale for 32

/// As the weights are published: activations and KV cache in 16 bits, in 32 for fp32 weights.
Precision published_precision(const catalog::ModelSpec& spec);

/// The same number of bytes for everything.
Precision uniform_precision(double bytes);

}  // namespace prony::perfmodel
