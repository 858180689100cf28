#include "prony/kernels/packed_matrix.hpp"

#include <cmath>
#include <limits>

#include "prony/core/check.hpp"

namespace prony::kernels {
namespace {

constexpr int kOffset = 128;  // makes an int8 an unsigned byte

// Bytes of a column: its inputs and, for int8, its scale.
int64_t column_bytes(Dtype dtype, int64_t inputs) {
  const int64_t scale = dtype == Dtype::kI8 ? int64_t{sizeof(float)} : 0;
  return PackedMatrix::padded_inputs(dtype, inputs) * dtype_bytes(dtype) + scale;
}

}  // namespace

int64_t PackedMatrix::size_bytes(Dtype dtype, int64_t outputs, int64_t inputs) {
  return round_up(outputs, kLanes) * column_bytes(dtype, inputs);
}

int64_t PackedMatrix::padded_inputs() const noexcept {
  return padded_inputs(dtype_, inputs_);
}

int64_t PackedMatrix::panel_columns(int64_t panel) const noexcept {
  const int64_t left = round_up(outputs_, kLanes) - panel * kPanelColumns;
  return left < kPanelColumns ? left : kPanelColumns;
}

// Only the last panel may be narrow, so all before it have the full width.
int64_t PackedMatrix::panel_offset(int64_t panel) const noexcept {
  return panel * kPanelColumns * column_bytes(dtype_, inputs_);
}

const float* PackedMatrix::panel_f32(int64_t panel) const noexcept {
  return reinterpret_cast<const float*>(panel_at(panel));
}

const quant::Bf16* PackedMatrix::panel_bf16(int64_t panel) const noexcept {
  return reinterpret_cast<const quant::Bf16*>(panel_at(panel));
}

const uint8_t* PackedMatrix::panel_i8(int64_t panel) const noexcept {
  return reinterpret_cast<const uint8_t*>(panel_at(panel));
}

const float* PackedMatrix::panel_scales(int64_t panel) const noexcept {
  return reinterpret_cast<const float*>(panel_at(panel) + padded_inputs() * panel_columns(panel));
}

void PackedMatrix::pack_row_i8(int64_t output, const float* source) {
  const int64_t panel = output / kPanelColumns, column = output % kPanelColumns;
  const int64_t columns = panel_columns(panel);
  float largest = 0;
  bool finite = true;
  for (int64_t k = 0; k < inputs_; ++k) {
    finite = finite && std::isfinite(source[k]);
    largest = std::fmax(largest, std::fabs(source[k]));
  }
  const bool zero = !finite || largest < 1e-30f;
  const float inverse = zero ? 0 : 127.0f / largest;
  std::byte* base = panel_at(panel);
  auto* target = reinterpret_cast<uint8_t*>(base);
  for (int64_t k = 0; k < padded_inputs(); ++k) {
    // Adding 1.5 2^23 rounds to an integer, ties to even.
    const float scaled = zero || k >= inputs_ ? 0 : source[k] * inverse;
    const float rounded = (scaled + 0x1.8p23f) - 0x1.8p23f;
    target[(k / 4 * columns + column) * 4 + k % 4] =
        static_cast<uint8_t>(static_cast<int>(rounded) + kOffset);
  }
  reinterpret_cast<float*>(base + padded_inputs() * columns)[column] =
      !finite ? std::numeric_limits<float>::quiet_NaN()
      : zero  ? 0
              : largest / 127.0f;
}

void PackedMatrix::pack_rows(int64_t first, int64_t count, const float* rows) {
  PRONY_CHECK(first >= 0 && count >= 0 && first + count <= outputs_);
  for (int64_t row = 0; row < count; ++row) {
    const int64_t panel = (first + row) / kPanelColumns;
    const int64_t column = (first + row) % kPanelColumns;
    const int64_t columns = panel_columns(panel);
    const float* source = rows + row * inputs_;
    if (dtype_ == Dtype::kI8) {
      pack_row_i8(first + row, source);
    } else if (dtype_ == Dtype::kF32) {
      float* target = reinterpret_cast<float*>(panel_at(panel)) + column;
      for (int64_t k = 0; k < inputs_; ++k) target[k * columns] = source[k];
    } else {
      auto* target = reinterpret_cast<quant::Bf16*>(panel_at(panel)) + column * 2;
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
  if (dtype_ == Dtype::kI8) {
    const uint8_t* source = panel_i8(panel) + column * 4;
    const float scale = panel_scales(panel)[column];
    for (int64_t k = 0; k < inputs_; ++k) {
      row[k] = static_cast<float>(source[k / 4 * columns * 4 + k % 4] - kOffset) * scale;
    }
  } else if (dtype_ == Dtype::kF32) {
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
