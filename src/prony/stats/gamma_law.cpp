#include "prony/stats/gamma_law.hpp"

#include <algorithm>
#include <cmath>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"

namespace prony::stats {

double gamma_cdf(double x, double shape) {
  PRONY_CHECK(shape > 0, "a shape");
  if (!(x > 0)) return 0;
  if (std::isinf(x)) return 1;
  constexpr double kPrecision = 1e-16;
  constexpr int kTermsMax = 100'000;  // about 10 sqrt(shape) are needed
  const double front =
      core::math::exp(shape * core::math::log(x) - x - core::math::log_gamma(shape));
  if (x < shape + 1) {
    double term = 1 / shape, sum = term;
    for (int k = 1; k < kTermsMax && term > sum * kPrecision; ++k) {
      term *= x / (shape + k);
      sum += term;
    }
    return std::clamp(sum * front, 0.0, 1.0);
  }
  // Lentz's evaluation of the continued fraction of the upper tail.
  constexpr double kTiny = 1e-300;
  double b = x + 1 - shape, c = 1 / kTiny, d = 1 / b, h = d;
  for (int k = 1; k < kTermsMax; ++k) {
    const double a = -k * (k - shape);
    b += 2;
    d = a * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + a / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double factor = d * c;
    h *= factor;
    if (std::abs(factor - 1) < kPrecision * 4) break;
  }
  return std::clamp(1 - front * h, 0.0, 1.0);
}

}  // namespace prony::stats
