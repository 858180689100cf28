#include "prony/stats/kolmogorov.hpp"

#include <algorithm>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"

namespace prony::stats {
namespace {

constexpr double kPi = 3.14159265358979323846;

double p_value_of(double distance, double n) {
  const double root = core::math::sqrt(n);
  return kolmogorov_tail((root + 0.12 + 0.11 / root) * distance);
}

}  // namespace

double kolmogorov_tail(double x) {
  if (x <= 0) return 1;
  if (x < 1) {
    // Jacobi's transform of the series below, which converges slowly for small x.
    double sum = 0;
    for (int k = 1; k <= 9; k += 2) sum += core::math::exp(-k * k * kPi * kPi / (8 * x * x));
    return std::clamp(1 - core::math::sqrt(2 * kPi) / x * sum, 0.0, 1.0);
  }
  double sum = 0;
  for (int k = 1; k <= 20; ++k) {
    const double term = core::math::exp(-2.0 * k * k * x * x);
    sum += k % 2 == 1 ? term : -term;
    if (term < 1e-18 * sum) break;
  }
  return std::clamp(2 * sum, 0.0, 1.0);
}

KsResult ks_one_sample(std::span<const double> sorted, const std::function<double(double)>& cdf) {
  PRONY_CHECK(!sorted.empty(), "no samples");
  const auto n = static_cast<double>(sorted.size());
  double distance = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double expected = cdf(sorted[i]);
    const auto before = static_cast<double>(i);
    distance = std::max({distance, expected - before / n, (before + 1) / n - expected});
  }
  return {distance, p_value_of(distance, n)};
}

KsResult ks_two_sample(std::span<const double> a, std::span<const double> b) {
  PRONY_CHECK(!a.empty() && !b.empty(), "no samples");
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  double distance = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double x = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= x) ++i;  // past all ties, in both
    while (j < b.size() && b[j] <= x) ++j;
    const double gap = static_cast<double>(i) / n - static_cast<double>(j) / m;
    distance = std::max(distance, gap < 0 ? -gap : gap);
  }
  return {distance, p_value_of(distance, n * m / (n + m))};
}

}  // namespace prony::stats
