// Helpers of the tests of products in low precision: rows with their memory, and the contract
// (kernels.hpp) written out number by number. Thread safety: pure functions.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "prony/kernels/kernels.hpp"
#include "prony/kernels/test_support.hpp"

namespace prony::kernels {

/// Packed rows with their memory: garbage where a tile reads and nothing was packed.
struct OwnedRows {
  OwnedRows(Dtype dtype, int64_t count, int64_t inputs)
      : storage(static_cast<size_t>(PackedRows::size_bytes(dtype, count, inputs)) / 64),
        scales(static_cast<size_t>(count)),
        sums(static_cast<size_t>(count)) {
    for (auto& line : storage) std::memset(line.bytes, 0x5A, sizeof(line.bytes));
    rows = {.dtype = dtype,
            .data = storage[0].bytes,
            .block_bytes = PackedRows::block_bytes_for(dtype, inputs),
            .scale = scales.data(),
            .sum = sums.data()};
  }
  const std::byte* at(int64_t row, int64_t byte) const {
    return rows.data + row / 16 * rows.block_bytes + byte / 64 * 1024 + row % 16 * 64 + byte % 64;
  }
  float bf16(int64_t row, int64_t k) const {
    quant::Bf16 value;
    std::memcpy(&value, at(row, k * 2), 2);
    return quant::to_float(value);
  }
  int32_t int8(int64_t row, int64_t k) const {
    int8_t value = 0;
    std::memcpy(&value, at(row, k), 1);
    return value;
  }
  std::vector<OwnedMatrix::Line> storage;
  std::vector<float> scales;
  std::vector<int32_t> sums;
  PackedRows rows;
};

/// The row as int8, its scale in `*scale`.
inline std::vector<int32_t> quantized(const float* x, int64_t inputs, float* scale) {
  float largest = 0;
  for (int64_t k = 0; k < inputs; ++k) largest = std::max(largest, std::fabs(x[k]));
  std::vector<int32_t> values;
  for (int64_t k = 0; k < inputs; ++k) {
    const float inverse = largest < 1e-30f ? 0.0f : 127.0f / largest;
    values.push_back(static_cast<int32_t>(std::nearbyint(x[k] * inverse)));  // ties to even
  }
  *scale = largest < 1e-30f ? 0.0f : largest / 127.0f;
  return values;
}

/// One output as AMX's TDPBF16PS sums it: x and w are bf16 values. Source: Intel, "64 and IA-32
/// Architectures Software Developer's Manual", vol. 2, TDPBF16PS.
inline float tile_order_sum(const std::vector<float>& x, const std::vector<float>& w) {
  float sum = 0;
  for (size_t block = 0; block < x.size(); block += 32) {
    float even = 0, odd = 0;
    for (size_t k = block; k < std::min(block + 32, x.size()); k += 2) {
      even = std::fmaf(x[k], w[k], even);
      if (k + 1 < x.size()) odd = std::fmaf(x[k + 1], w[k + 1], odd);
    }
    sum += even + odd;
  }
  return sum;
}

}  // namespace prony::kernels
