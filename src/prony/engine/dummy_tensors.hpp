// DummyTensors: seeded random weights for every tensor name, so that an engine of any shape runs
// without a checkpoint, as `--load-format dummy` does elsewhere. An element is a pure function of
// (seed, tensor name, index), so neither the order of reads nor the packing changes it.
// Matrices are uniform with mean 0 and standard deviation 1/sqrt(columns): a unit-variance input
// gives a unit-variance output, so scores and logits stay of order one at any depth and width.
// Norm weights are uniform in [0.8, 1.2], biases in [-0.2, 0.2]: neither trivial nor dominant.
// Thread safety: any thread. Source of the random numbers: Philox (core/rng.hpp).
#pragma once
#include "prony/engine/tensor_source.hpp"

namespace prony::engine {

class DummyTensors final : public TensorSource {
 public:
  explicit DummyTensors(uint64_t seed) : seed_(seed) {}
  /// Never fails: every name exists in every shape.
  Result<void> read(const TensorRows& wanted, float* out /* [count][columns] */) const override;

 private:
  uint64_t seed_;
};

}  // namespace prony::engine
