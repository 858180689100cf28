#include "prony/fit/student.hpp"

#include <cmath>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"

namespace prony::fit {
namespace {

// Continued fraction of the incomplete beta function, for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kEpsilon = 1e-16;
  const auto guard = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / guard(1 - (a + b) * x / (a + 1)), result = d;
  for (int i = 1; i <= 500; ++i) {
    const double m = i, even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guard(1 + even * d);
    c = guard(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guard(1 + odd * d);
    c = guard(1 + odd / c);
    const double step = d * c;
    result *= step;
    if (std::abs(step - 1) < kEpsilon) break;
  }
  return result;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  namespace math = core::math;
  const double front = math::exp(math::log_gamma(a + b) - math::log_gamma(a) - math::log_gamma(b) +
                                 a * math::log(x) + b * math::log(1 - x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_cdf(double t, double degrees) {
  PRONY_CHECK(degrees > 0);
  const double tail = incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2;
  return t > 0 ? 1 - tail : tail;
}

double student_two_sided(double confidence, double degrees) {
  PRONY_CHECK(confidence > 0 && confidence < 1 && degrees > 0);
  const double target = 0.5 + confidence / 2;
  double low = 0, high = 1;
  while (student_cdf(high, degrees) < target && high < 1e12) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-14 * high; ++i) {
    const double middle = (low + high) / 2;
    (student_cdf(middle, degrees) < target ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace prony::fit
