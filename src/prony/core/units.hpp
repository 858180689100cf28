// Units: quantities that must not be mixed by accident. One multiply-add is 2 FLOP; GB is 1e9 and
// GiB is 2^30 bytes; a bandwidth is one-way unless its name says both. A plain double with the unit
// last in its name (`ttft_ms`) is for records; these types are for formulas.
// Thread safety: values.
#pragma once
#include <compare>

namespace prony::core {

template <class Tag>
struct Quantity {
  double value = 0;
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, double k) { return {a.value * k}; }
  friend constexpr Quantity operator*(double k, Quantity a) { return {a.value * k}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
};

using Seconds = Quantity<struct SecondsTag>;
using Flops = Quantity<struct FlopsTag>;
using Bytes = Quantity<struct BytesTag>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;

constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
  return {work.value / rate.value};
}
constexpr Seconds operator/(Bytes moved, BytesPerSecond rate) {
  return {moved.value / rate.value};
}

inline constexpr double kGB = 1e9, kGiB = 1024.0 * 1024.0 * 1024.0;
inline constexpr double kTera = 1e12;

}  // namespace prony::core
