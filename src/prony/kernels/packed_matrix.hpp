// PackedMatrix: the weight W[n][k] of y = x W^T, packed once at load into the order in which the
// matrix kernels read it: panels of 32 outputs, inside a panel input by input, so that a panel is
// one contiguous stream and a vector holds neighbouring outputs of one input.
//   fp32: [n/32][k][32]             float
//   bf16: [n/32][k padded/2][32][2] two neighbouring inputs side by side, as the bf16 dot-product
//                                   and tile instructions want them
//   int8: [n/32][k padded/4][32][4] four, each value + 128 as an unsigned byte, and at the end of
//                                   a panel the scales of its outputs, [32] float
// bf16 pads inputs with zeros to a multiple of 32 and int8 to 64: whole tiles, so that a block of
// 16 of those lines is loaded as it lies. The last panel is 16 wide if n leaves 16 or fewer
// outputs; missing outputs are zero rows. An int8 row is rounded to nearest by its own scale,
// largest magnitude / 127 (0 below 1e-30; a row with a NaN or an infinity gives NaNs).
// Thread safety: packing different panels from different threads is fine; reading any thread.
#pragma once
#include <cstddef>
#include <cstdint>

#include "prony/quant/bf16.hpp"

namespace prony::kernels {

enum class Dtype { kF32, kBf16, kI8 };

constexpr int64_t dtype_bytes(Dtype dtype) {
  return dtype == Dtype::kF32 ? 4 : dtype == Dtype::kBf16 ? 2 : 1;
}

inline constexpr int64_t kLanes = 16;         // floats of a vector, in every instruction set
inline constexpr int64_t kPanelColumns = 32;  // outputs of a panel

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class PackedMatrix {
 public:
  PackedMatrix() = default;
  /// A view of `storage`, size_bytes(...) zeroed bytes aligned to 64, which must outlive it.
  PackedMatrix(Dtype dtype, int64_t outputs, int64_t inputs, void* storage)
      : dtype_(dtype), outputs_(outputs), inputs_(inputs), storage_(storage) {}

  static int64_t size_bytes(Dtype dtype, int64_t outputs, int64_t inputs);
  static constexpr int64_t padded_inputs(Dtype dtype, int64_t inputs) {
    return dtype == Dtype::kF32 ? inputs : round_up(inputs, dtype == Dtype::kBf16 ? 32 : 64);
  }

  Dtype dtype() const noexcept { return dtype_; }
  int64_t outputs() const noexcept { return outputs_; }  // n
  int64_t inputs() const noexcept { return inputs_; }    // k
  int64_t panels() const noexcept { return (outputs_ + kPanelColumns - 1) / kPanelColumns; }
  /// Columns of a panel, padding included: 16 or 32.
  int64_t panel_columns(int64_t panel) const noexcept;
  const float* panel_f32(int64_t panel) const noexcept;         // [k][panel_columns]
  const quant::Bf16* panel_bf16(int64_t panel) const noexcept;  // [k padded/2][panel_columns][2]
  const uint8_t* panel_i8(int64_t panel) const noexcept;        // [k padded/4][panel_columns][4]
  const float* panel_scales(int64_t panel) const noexcept;      // [panel_columns]; int8 only
  int64_t padded_inputs() const noexcept;

  /// Writes output rows [first, first + count) of W, rounded to nearest even.
  void pack_rows(int64_t first, int64_t count, const float* rows /* [count][k] */);
  /// Row `output` of W, as stored: the embedding of a token when the head is tied to it.
  void read_row(int64_t output, float* row /* [k] */) const;

 private:
  int64_t panel_offset(int64_t panel) const noexcept;  // bytes
  std::byte* panel_at(int64_t panel) const noexcept {
    return static_cast<std::byte*>(storage_) + panel_offset(panel);
  }
  void pack_row_i8(int64_t output, const float* source);
  Dtype dtype_ = Dtype::kF32;
  int64_t outputs_ = 0, inputs_ = 0;
  void* storage_ = nullptr;
};

}  // namespace prony::kernels
