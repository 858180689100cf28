#include "prony/stats/student_t.hpp"

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"

namespace prony::stats {
namespace {

using core::math::exp;
using core::math::log;
using core::math::log_gamma;

// Continued fraction of the incomplete beta function by the modified Lentz method; converges fast
// for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto away_from_zero = [](double v) { return v < kTiny && v > -kTiny ? kTiny : v; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double value = d;
  for (int m = 1; m <= 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    value *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    const double factor = c * d;
    value *= factor;
    if (factor - 1 < 1e-15 && 1 - factor < 1e-15) break;
  }
  return value;
}

// I_x(a, b), the regularized incomplete beta function.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(1 - x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_t_cdf(double t, double freedom) {
  PRONY_CHECK(freedom > 0, "degrees of freedom must be positive");
  const double beyond = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
  return t < 0 ? beyond : 1 - beyond;
}

double student_t_quantile(double probability, double freedom) {
  PRONY_CHECK(probability > 0 && probability < 1, "probability not in (0, 1)");
  if (probability == 0.5) return 0;
  if (probability < 0.5) return -student_t_quantile(1 - probability, freedom);
  double low = 0, high = 1;
  while (student_t_cdf(high, freedom) < probability && high < 1e150) {
    low = high;
    high *= 2;
  }
  // Bisection: 80 halvings leave nothing of a double's 53 bits undecided.
  for (int i = 0; i < 80; ++i) {
    const double middle = low + (high - low) / 2;
    (student_t_cdf(middle, freedom) < probability ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

double student_t_two_sided(double confidence, double freedom) {
  return student_t_quantile(1 - (1 - confidence) / 2, freedom);
}

}  // namespace prony::stats
