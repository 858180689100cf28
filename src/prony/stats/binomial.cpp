#include "prony/stats/binomial.hpp"

#include <algorithm>
#include <vector>

#include "prony/core/check.hpp"

namespace prony::stats {
namespace {

// Probabilities of Binomial(n, p), 0 < p < 1, from `first` on; terms below `cutoff` times the
// mode's are left out. Built from the mode outwards by the ratio of neighbours, so nothing
// overflows.
struct Terms {
  int64_t first = 0;
  std::vector<double> probability;
};

Terms binomial_terms(int64_t n, double p, double cutoff) {
  const double odds = p / (1 - p);
  const auto mode =
      std::clamp(static_cast<int64_t>((static_cast<double>(n) + 1) * p), int64_t{0}, n);
  std::vector<double> below;  // of mode - 1, mode - 2, ...
  double term = 1, total = 0;
  for (int64_t k = mode; k > 0; --k) {
    term *= static_cast<double>(k) / (static_cast<double>(n - k + 1) * odds);
    if (term < cutoff) break;
    below.push_back(term);
  }
  Terms out;
  out.first = mode - static_cast<int64_t>(below.size());
  out.probability.assign(below.rbegin(), below.rend());
  out.probability.push_back(term = 1);
  for (int64_t k = mode; k < n; ++k) {
    term *= static_cast<double>(n - k) * odds / static_cast<double>(k + 1);
    if (term < cutoff) break;
    out.probability.push_back(term);
  }
  for (const double value : out.probability) total += value;
  for (double& value : out.probability) value /= total;
  return out;
}

constexpr double kTiny = 1e-290;  // for tails as such
constexpr double kSmall = 1e-40;  // for quantiles of usual confidence levels

}  // namespace

double binomial_cdf(int64_t k, int64_t n, double p) {
  PRONY_CHECK(n >= 0 && p >= 0 && p <= 1, "not a binomial distribution");
  if (k < 0) return 0;
  if (k >= n || p == 0) return 1;
  if (p == 1) return 0;
  const Terms terms = binomial_terms(n, p, kTiny);
  const auto size = static_cast<int64_t>(terms.probability.size());
  // Whichever tail is shorter is summed, from its small end.
  double tail = 0;
  if (k < terms.first + size / 2) {
    for (int64_t i = 0; i <= std::min(k - terms.first, size - 1); ++i) {
      tail += terms.probability[static_cast<size_t>(i)];
    }
    return tail;
  }
  for (int64_t i = size - 1; i > k - terms.first; --i) {
    tail += terms.probability[static_cast<size_t>(i)];
  }
  return 1 - tail;
}

int64_t binomial_quantile(double probability, int64_t n, double p) {
  PRONY_CHECK(n >= 0 && p >= 0 && p <= 1, "not a binomial distribution");
  PRONY_CHECK(probability > 0 && probability < 1, "probability outside (0, 1)");
  if (p == 0 || n == 0) return 0;
  if (p == 1) return n;
  const Terms terms = binomial_terms(n, p, kSmall);
  double sum = 0;
  int64_t k = terms.first;
  for (const double value : terms.probability) {
    sum += value;
    if (sum >= probability) return k;
    ++k;
  }
  return k - 1;
}

ProportionInterval proportion_interval(int64_t k, int64_t n, double confidence) {
  PRONY_CHECK(n > 0 && k >= 0 && k <= n, "not a proportion");
  PRONY_CHECK(confidence > 0 && confidence < 1, "confidence outside (0, 1)");
  const double tail = (1 - confidence) / 2;
  // Both tails are monotone in p: bisect. 60 halvings reach the spacing of doubles near 1.
  const auto solve = [&](auto too_low) {
    double low = 0, high = 1;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (too_low(middle) ? low : high) = middle;
    }
    return (low + high) / 2;
  };
  ProportionInterval out;
  if (k > 0) out.lower = solve([&](double p) { return 1 - binomial_cdf(k - 1, n, p) < tail; });
  if (k < n) out.upper = solve([&](double p) { return binomial_cdf(k, n, p) > tail; });
  return out;
}

}  // namespace prony::stats
