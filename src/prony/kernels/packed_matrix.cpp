#include "prony/kernels/packed_matrix.hpp"

#include "prony/core/check.hpp"

namespace prony::kernels {

int64_t PackedMatrix::size_bytes(Dtype dtype, int64_t outputs, int64_t inputs) {
  const int64_t padded = dtype == Dtype::kBf16 ? round_up(inputs, 2) : inputs;
  return round_up(outputs, kLanes) * padded * dtype_bytes(dtype);
}

int64_t PackedMatrix::padded_inputs() const noexcept {
  return dtype_ == Dtype::kBf16 ? round_up(inputs_, 2) : inputs_;
}

int64_t PackedMatrix::panel_columns(int64_t panel) const noexcept {
  const int64_t left = round_up(outputs_, kLanes) - panel * kPanelColumns;
  return left < kPanelColumns ? left : kPanelColumns;
}

// Only the last panel may be narrow, so all before it have the full width.
int64_t PackedMatrix::panel_offset(int64_t panel) const noexcept {
  return panel * kPanelColumns * padded_inputs();
}

const float* PackedMatrix::panel_f32(int64_t panel) const noexcept {
  return static_cast<const float*>(storage_) + panel_offset(panel);
}

const quant::Bf16* PackedMatrix::panel_bf16(int64_t panel) const noexcept {
  return static_cast<const quant::Bf16*>(storage_) + panel_offset(panel);
}

void PackedMatrix::pack_rows(int64_t first, int64_t count, const float* rows) {
  PRONY_CHECK(first >= 0 && count >= 0 && first + count <= outputs_);
  for (int64_t row = 0; row < count; ++row) {
    const int64_t panel = (first + row) / kPanelColumns;
    const int64_t column = (first + row) % kPanelColumns;
    const int64_t columns = panel_columns(panel);
    const float* source = rows + row * inputs_;
    if (dtype_ == Dtype::kF32) {
      float* target = static_cast<float*>(storage_) + panel_offset(panel) + column;
      for (int64_t k = 0; k < inputs_; ++k) target[k * columns] = source[k];
    } else {
      quant::Bf16* target = static_cast<quant::Bf16*>(storage_) + panel_offset(panel) + column * 2;
      for (int64_t k = 0; k < inputs_; ++k) {
        target[k / 2 * columns * 2 + k % 2] = quant::to_bf16(source[k]);
      }
    }
  }
}

void PackedMatrix::read_row(int64_t output, float* row) const {
  PRONY_CHECK(output >= 0 && output < outputs_);
  const int64_t panel = output / kPanelColumns;
  const int64_t column = output % kPanelColumns;
  const int64_t columns = panel_columns(panel);
  if (dtype_ == Dtype::kF32) {
    const float* source = panel_f32(panel) + column;
    for (int64_t k = 0; k < inputs_; ++k) row[k] = source[k * columns];
  } else {
    const quant::Bf16* source = panel_bf16(panel) + column * 2;
    for (int64_t k = 0; k < inputs_; ++k) {
      row[k] = quant::to_float(source[k / 2 * columns * 2 + k % 2]);
    }
  }
}

}  // namespace prony::kernels
