// bf16: the upper half of an IEEE 754 binary32: 1 sign, 8 exponent and 7 fraction bits, so it has
// the range of a float and 8 significant bits: relative rounding error at most 2^-8.
// Conversion rounds to nearest, ties to even, as hardware (vcvtneps2bf16) and checkpoints do,
// except that subnormals are kept here and flushed by that instruction. Thread safety: pure
// functions. Source: Intel, "BFLOAT16 - Hardware Numerics Definition", 2018.
#pragma once
#include <bit>
#include <cstdint>

namespace prony::quant {

/// The bits of a bf16; a type of its own so that it is never taken for an integer.
struct Bf16 {
  uint16_t bits = 0;
  friend constexpr bool operator==(Bf16, Bf16) = default;
};

/// Exact.
constexpr float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

/// Round to nearest even; overflow goes to infinity, a NaN stays a (quiet) NaN.
constexpr Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  const uint32_t rounding = 0x7FFFu + ((bits >> 16) & 1u);
  return {static_cast<uint16_t>((bits + rounding) >> 16)};
}

/// `value` rounded to the nearest bf16.
constexpr float round_to_bf16(float value) {
  return to_float(to_bf16(value));
}

}  // namespace prony::quant
