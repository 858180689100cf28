#include "prony/stats/quantile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"
#include "prony/stats/binomial.hpp"

namespace prony::stats {

int64_t nearest_rank(double q, int64_t n) {
  PRONY_CHECK(q >= 0 && q <= 1 && n > 0, "quantile of nothing, or outside [0, 1]");
  const double position = q * static_cast<double>(n);
  const double whole = std::round(position);
  const double slack = 4 * std::numeric_limits<double>::epsilon() * position;
  const double rank = std::fabs(position - whole) <= slack ? whole : std::ceil(position);
  return std::clamp(static_cast<int64_t>(rank), int64_t{1}, n);
}

double quantile_nearest_rank(std::span<const double> sorted, double q) {
  return sorted[static_cast<size_t>(nearest_rank(q, static_cast<int64_t>(sorted.size())) - 1)];
}

double quantile_linear(std::span<const double> sorted, double q) {
  PRONY_CHECK(!sorted.empty() && q >= 0 && q <= 1, "quantile of nothing, or outside [0, 1]");
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double a = sorted[below], b = sorted[below + 1];
  const double t = position - static_cast<double>(below);
  // numpy's form: from the nearer end, so that t = 1 - tiny cannot overshoot b.
  return t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t);
}

std::optional<RankInterval> quantile_ranks(int64_t n, double q, double confidence) {
  PRONY_CHECK(q > 0 && q < 1 && confidence > 0 && confidence < 1, "q or confidence not in (0, 1)");
  if (n <= 0) return std::nullopt;
  // N = number of samples at or below the true quantile is Binomial(n, q). The lower bound fails if
  // N < lower, the upper if N >= upper.
  const double tail = (1 - confidence) / 2;
  RankInterval out;
  out.lower = binomial_quantile(tail, n, q);
  out.upper = binomial_quantile(1 - tail, n, q) + 1;
  if (out.lower < 1 || out.upper > n) return std::nullopt;
  return out;
}

std::optional<RankInterval> quantile_ranks_effective(int64_t n, double effective_n, double q,
                                                     double confidence) {
  if (n <= 0) return std::nullopt;
  const auto m = std::clamp(static_cast<int64_t>(effective_n), int64_t{1}, n);
  auto out = quantile_ranks(m, q, confidence);
  if (!out || m == n) return out;
  const double stretch = static_cast<double>(n) / static_cast<double>(m);
  // Rank r of m stands for the quantile levels ((r - 1) / m, r / m]; take the outer ends.
  out->lower =
      std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(out->lower - 1) * stretch) + 1);
  out->upper = std::min<int64_t>(
      n, static_cast<int64_t>(std::ceil(static_cast<double>(out->upper) * stretch)));
  return out;
}

std::optional<Interval> quantile_interval(std::span<const double> sorted, double q,
                                          double confidence) {
  const auto ranks = quantile_ranks(static_cast<int64_t>(sorted.size()), q, confidence);
  if (!ranks) return std::nullopt;
  return Interval{sorted[static_cast<size_t>(ranks->lower - 1)],
                  sorted[static_cast<size_t>(ranks->upper - 1)]};
}

void GroupedProportion::add(int64_t n, int64_t at_or_below) {
  PRONY_CHECK(n >= 0 && at_or_below >= 0 && at_or_below <= n, "more successes than trials");
  if (n == 0) return;
  const auto size = static_cast<double>(n), x = static_cast<double>(at_or_below);
  ++groups_;
  n_ += size;
  x_ += x;
  nn_ += size * size;
  xn_ += x * size;
  xx_ += x * x;
}

std::optional<double> GroupedProportion::effective_n() const {
  if (groups_ < 2) return std::nullopt;
  // The share at or below is more than q where values tie; the spread is around the share itself:
  // the sum over groups of (x - share n)^2. What cancels in it is far below independence.
  const double n = n_, share = x_ / n;
  const double square = std::max(0.0, xx_ - 2 * share * xn_ + share * share * nn_);
  // Linearised variance of a ratio of group totals against that of n independent trials.
  const auto groups = static_cast<double>(groups_);
  const double variance = square * groups / (groups - 1) / (n * n);
  const double independent = q_ * (1 - q_) / n;
  if (variance <= independent) return n;  // never better than independence
  return std::max(1.0, n * independent / variance);
}

}  // namespace prony::stats
