// TensorSource: where weights come from, by the names of Hugging Face checkpoints
// ("model.layers.0.self_attn.q_proj.weight", row-major [outputs][inputs]). The engine asks for a
// few rows at a time while it packs, so no source needs a tensor in memory as a whole.
// Thread safety: read() from any thread at the same time.
#pragma once
#include <cstdint>
#include <string_view>

#include "prony/core/result.hpp"

namespace prony::engine {

/// Rows of one tensor; a vector (norm, bias) has one row.
struct TensorRows {
  std::string_view name;
  int64_t rows = 0;  // of the whole tensor: the source checks the shape
  int64_t columns = 0;
  int64_t first = 0;  // first row wanted
  int64_t count = 0;
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// Error: kInvalidArgument, naming the tensor, if it is missing or has another shape.
  virtual Result<void> read(const TensorRows& wanted, float* out /* [count][columns] */) const = 0;
};

}  // namespace prony::engine
