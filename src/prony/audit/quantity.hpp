// Quantity: a number with its dimension, for the arithmetic of claims: bytes, FLOP, seconds, tokens
// and dollars cannot be added by accident, so a slip of units shows as what it is.
// Thread safety: values and pure functions.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "prony/core/result.hpp"

namespace prony::audit {

enum class Base { kByte, kFlop, kSecond, kToken, kRequest, kUsd, kJoule, kParameter };
inline constexpr size_t kBases = 8;

/// Exponent of each base.
using Dimension = std::array<int, kBases>;

struct Quantity {
  double value = 0;  // in base units: B, FLOP, s, token, req, USD, J, param
  Dimension dimension{};
  bool operator==(const Quantity&) const = default;
};

Quantity operator*(const Quantity& a, const Quantity& b);
Quantity operator/(const Quantity& a, const Quantity& b);

/// "TFLOPS", "GB/s", "req/s", "USD/kWh", "B/param", "1", "%". GB is 1e9 and GiB 2^30 bytes, bit an
/// eighth of a byte, year 8760 h. Error: kInvalidArgument, naming the part that is unknown.
Result<Quantity> parse_unit(std::string_view text);

/// "89.7 req/s", "0.82", "15 %".
Result<Quantity> parse_quantity(std::string_view text);

/// "B/s", "1".
std::string dimension_text(const Dimension& dimension);

/// Four significant digits with a decimal prefix where the unit takes one: "617.0 TFLOP/s".
std::string quantity_text(const Quantity& quantity);

}  // namespace prony::audit
