#include "prony/stats/rank_correlation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"

namespace prony::stats {
namespace {

std::vector<double> ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> out(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t last = first + 1;
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    const double mean = static_cast<double>(first + last - 1) / 2;
    for (size_t i = first; i < last; ++i) out[order[i]] = mean;
    first = last;
  }
  return out;
}

double fisher_z(double rho) {
  return 0.5 * core::math::log((1 + rho) / (1 - rho));
}

}  // namespace

std::optional<double> spearman(std::span<const double> a, std::span<const double> b) {
  PRONY_CHECK(a.size() == b.size(), "pairs");
  if (a.size() < 2) return std::nullopt;
  const auto x = ranks(a), y = ranks(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean, dy = y[i] - mean;
    xy += dx * dy;
    xx += dx * dx;
    yy += dy * dy;
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return std::clamp(xy / core::math::sqrt(xx * yy), -1.0, 1.0);
}

std::optional<double> spearman_difference_p(double rho_a, int64_t n_a, double rho_b, int64_t n_b) {
  constexpr int64_t kLeast = 10;
  if (n_a < kLeast || n_b < kLeast || std::abs(rho_a) >= 1 || std::abs(rho_b) >= 1) {
    return std::nullopt;
  }
  const double variance = 1.06 / static_cast<double>(n_a - 3) + 1.06 / static_cast<double>(n_b - 3);
  const double z = (fisher_z(rho_a) - fisher_z(rho_b)) / core::math::sqrt(variance);
  return 2 * core::normal_cdf(-std::abs(z));
}

}  // namespace prony::stats
