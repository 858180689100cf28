#include "prony/core/math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "prony/core/check.hpp"

namespace prony::core::math {
namespace {

constexpr double kLn2High = 0x1.62e42fee00000p-1;  // ln 2 to 33 bits: k * kLn2High is exact
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kInverseLn2 = 1.4426950408889634;
constexpr double kSqrtHalf = 0.70710678118654752;
constexpr double kPi = 3.14159265358979323846;

struct Split {
  double mantissa;  // in [sqrt(1/2), sqrt(2))
  int exponent;
};

// x = mantissa * 2^exponent for finite x > 0.
Split split(double x) {
  int exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    exponent = -54;
  }
  const auto bits = std::bit_cast<uint64_t>(x);
  exponent += static_cast<int>(bits >> 52 & 0x7ff) - 1022;
  double mantissa =
      std::bit_cast<double>((bits & 0x000f'ffff'ffff'ffffULL) | 0x3fe0'0000'0000'0000ULL);
  if (mantissa < kSqrtHalf) {
    mantissa *= 2;
    --exponent;
  }
  return {mantissa, exponent};
}

double scale(double x, int exponent) {
  // Two steps, so that results near the ends of the range do not overflow on the way.
  const int half = exponent / 2;
  const auto power = [](int e) {
    return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52);
  };
  return x * power(half) * power(exponent - half);
}

}  // namespace

double sqrt(double x) {
  return std::sqrt(x);
}

double log(double x) {
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (!(x > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == std::numeric_limits<double>::infinity()) return x;
  const auto [m, e] = split(x);
  // log m = f - f^2/2 + s (f^2/2 + R), s = f/(2+f), R = sum of 2 s^2k/(2k+1): keeps f exact.
  const double f = m - 1;
  const double s = f / (2 + f);
  const double z = s * s;
  double series = 0;
  for (int k = 12; k >= 1; --k) series = z * (2.0 / (2 * k + 1) + series);
  const double half_square = 0.5 * f * f;
  const double k = e;
  return k * kLn2High - ((half_square - (s * (half_square + series) + k * kLn2Low)) - f);
}

double exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.79) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0;
  const double shifted = x * kInverseLn2;
  const int k = static_cast<int>(shifted < 0 ? shifted - 0.5 : shifted + 0.5);
  const double high = x - k * kLn2High;
  const double low = k * kLn2Low;
  const double r = high - low;  // |r| <= ln2 / 2
  // Taylor series of degree 14: the first term left out is below 2^-70.
  double sum = 0;
  for (int n = 14; n >= 2; --n) sum = (sum + 1) * r / n;
  // exp(r) = 1 + r + r * sum; (high - low) carries the rounding of r.
  return scale(1 + (((high - r) - low) + r * sum + r), k);
}

double pow(double x, double y) {
  if (y == 0) return 1;
  if (x == 0) return y > 0 ? 0 : std::numeric_limits<double>::infinity();
  if (x == 1) return 1;
  return exp(y * log(x));
}

double log_gamma(double x) {
  PRONY_CHECK(x > 0);
  constexpr double kCoefficients[] = {
      0.99999999999980993,  676.5203681218851,     -1259.1392167224028,
      771.32342877765313,   -176.61502916214059,   12.507343278686905,
      -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
  double sum = kCoefficients[0];
  for (int i = 1; i < 9; ++i) sum += kCoefficients[i] / (x - 1 + i);
  const double t = x + 6.5;
  return 0.5 * log(2 * kPi) + (x - 0.5) * log(t) - t + log(sum);
}

double erf(double x) {
  if (std::isnan(x)) return x;
  const double a = x < 0 ? -x : x;
  double value = 1;
  if (a < 3) {
    // Abramowitz & Stegun 7.1.6: 2/sqrt(pi) exp(-x^2) sum 2^n x^(2n+1) / (2n+1)!!, all terms > 0.
    double term = a, sum = a;
    for (int n = 1; n < 200 && term > sum * 1e-17; ++n) {
      term *= 2 * a * a / (2 * n + 1);
      sum += term;
    }
    value = 2 / sqrt(kPi) * exp(-a * a) * sum;
  } else if (a < 6) {
    // Abramowitz & Stegun 7.1.14: continued fraction of erfc, from its tail.
    double fraction = 0;
    for (int n = 60; n >= 1; --n) fraction = 0.5 * n / (a + fraction);
    value = 1 - exp(-a * a) / sqrt(kPi) / (a + fraction);
  }
  return x < 0 ? -value : value;
}

}  // namespace prony::core::math

namespace prony::core {
namespace {

double polynomial(const double (&coefficients)[8], double x) {
  double sum = 0;
  for (int i = 7; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

}  // namespace

double normal_cdf(double x) {
  return 0.5 * (1 + math::erf(x / math::sqrt(2.0)));
}

double inverse_normal_cdf(double p) {
  PRONY_CHECK(p > 0 && p < 1);
  // Numerators and denominators of AS 241 for the centre, the shoulder and the far tail.
  constexpr double kA[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                           1.9715909503065514427e+3, 1.3731693765509461125e+4,
                           4.5921953931549871457e+4, 6.7265770927008700853e+4,
                           3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr double kB[] = {1.0,
                           4.2313330701600911252e+1,
                           6.8718700749205790830e+2,
                           5.3941960214247511077e+3,
                           2.1213794301586595867e+4,
                           3.9307895800092710610e+4,
                           2.8729085735721942674e+4,
                           5.2264952788528545610e+3};
  constexpr double kC[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                           5.76949722146069140550e0,  3.64784832476320460504e0,
                           1.27045825245236838258e0,  2.41780725177450611770e-1,
                           2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double kD[] = {1.0,
                           2.05319162663775882187e0,
                           1.67638483018380384940e0,
                           6.89767334985100004550e-1,
                           1.48103976427480074590e-1,
                           1.51986665636164571966e-2,
                           5.47593808499534494600e-4,
                           1.05075007164441684324e-9};
  constexpr double kE[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                           1.78482653991729133580e0,  2.96560571828504891230e-1,
                           2.65321895265761230930e-2, 1.24266094738807843860e-3,
                           2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double kF[] = {1.0,
                           5.99832206555887937690e-1,
                           1.36929880922735805310e-1,
                           1.48753612908506148525e-2,
                           7.86869131145613259100e-4,
                           1.84631831751005468180e-5,
                           1.42151175831644588870e-7,
                           2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kA, r) / polynomial(kB, r);
  }
  const double tail = math::sqrt(-math::log(q < 0 ? p : 1 - p));
  const double x = tail <= 5 ? polynomial(kC, tail - 1.6) / polynomial(kD, tail - 1.6)
                             : polynomial(kE, tail - 5) / polynomial(kF, tail - 5);
  return q < 0 ? -x : x;
}

}  // namespace prony::core
