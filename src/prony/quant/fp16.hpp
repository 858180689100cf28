// fp16: IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits; 65504 is the largest, 2^-24 the
// smallest subnormal. Reading is exact. Thread safety: pure functions. Source: IEEE 754-2008, 3.6.
#pragma once
#include <bit>
#include <cstdint>

namespace prony::quant {

/// The bits of an fp16; a type of its own so that it is never taken for an integer.
struct Fp16 {
  uint16_t bits = 0;
  friend constexpr bool operator==(Fp16, Fp16) = default;
};

/// Exact; infinities stay infinite, a NaN stays a NaN with its payload.
constexpr float to_float(Fp16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t exponent = value.bits >> 10 & 0x1Fu;
  const uint32_t fraction = value.bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  // Subnormal: fraction * 2^-24, which a float holds as a normal number.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace prony::quant
