// Helpers of the kernel and engine tests: random tensors and bit-exact comparison.
// Thread safety: pure functions.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/kernels/isa.hpp"
#include "prony/kernels/packed_matrix.hpp"

namespace prony::kernels {

/// `count` standard normal floats of the stream (seed, 0).
inline std::vector<float> random_floats(int64_t count, uint64_t seed) {
  core::Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(rng.normal());
  return values;
}

/// Index of the first element whose bits differ; -1 if none. NaNs compare by their bits.
inline int64_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

/// A packed matrix with its storage.
struct OwnedMatrix {
  OwnedMatrix(Dtype dtype, int64_t outputs, int64_t inputs, const std::vector<float>& rows)
      : storage(static_cast<size_t>(PackedMatrix::size_bytes(dtype, outputs, inputs)) / 64 + 1),
        matrix(dtype, outputs, inputs, storage.data()) {
    matrix.pack_rows(0, outputs, rows.data());
  }
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  std::vector<Line> storage;
  PackedMatrix matrix;
};

/// For INSTANTIATE_TEST_SUITE_P.
template <class ParamInfo>
std::string isa_test_name(const ParamInfo& info) {
  return std::string(isa_name(info.param));
}

}  // namespace prony::kernels
