// Dual: a number with its derivative by one variable, so that a formula written once as a template
// gives its value and its exact derivative. Thread safety: a value.
// Source: forward-mode differentiation, Wengert, CACM 7(8), 1964.
#pragma once
#include <cmath>

namespace prony::cost {

struct Dual {
  double value = 0, slope = 0;
  Dual() = default;
  Dual(double v, double s = 0) : value(v), slope(s) {}  // NOLINT: constants mix with duals
};

inline Dual operator+(Dual a, Dual b) {
  return {a.value + b.value, a.slope + b.slope};
}
inline Dual operator-(Dual a, Dual b) {
  return {a.value - b.value, a.slope - b.slope};
}
inline Dual operator*(Dual a, Dual b) {
  return {a.value * b.value, a.slope * b.value + a.value * b.slope};
}
inline Dual operator/(Dual a, Dual b) {
  const double quotient = a.value / b.value;
  return {quotient, (a.slope - quotient * b.slope) / b.value};
}
inline Dual log1p(Dual a) {
  return {std::log1p(a.value), a.slope / (1 + a.value)};
}
inline Dual expm1(Dual a) {
  const double e = std::expm1(a.value);
  return {e, (e + 1) * a.slope};
}
inline double log1p(double a) {
  return std::log1p(a);
}
inline double expm1(double a) {
  return std::expm1(a);
}
inline double value_of(double a) {
  return a;
}
inline double value_of(Dual a) {
  return a.value;
}

}  // namespace prony::cost
