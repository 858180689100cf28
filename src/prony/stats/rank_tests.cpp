#include "prony/stats/rank_tests.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"
#include "prony/stats/student_t.hpp"

namespace prony::stats {
namespace {

std::vector<double> sorted_values(std::span<const BlockedValue> sample) {
  std::vector<double> out;
  out.reserve(sample.size());
  for (const auto& one : sample) out.push_back(one.value);
  std::sort(out.begin(), out.end());
  return out;
}

// Pairs (i, j) with b[j] - a[i] <= x.
int64_t differences_up_to(std::span<const double> a, std::span<const double> b, double x) {
  int64_t count = 0;
  size_t j = 0;
  for (const double low : a) {
    while (j < b.size() && b[j] - low <= x) ++j;
    count += static_cast<int64_t>(j);
  }
  return count;
}

// Pairs i <= j with (d[i] + d[j]) / 2 <= x.
int64_t averages_up_to(std::span<const double> d, double x) {
  int64_t count = 0;
  size_t end = d.size();
  for (size_t i = 0; i < d.size(); ++i) {
    while (end > 0 && (d[i] + d[end - 1]) / 2 > x) --end;
    if (end <= i) break;
    count += static_cast<int64_t>(end - i);
  }
  return count;
}

// The `rank`-th least (from 1) of pairs that `count` counts, all in [low, high]: to 1e-12 of the
// span of the values.
template <class Count>
double nth_pair(int64_t rank, double low, double high, const Count& count) {
  if (count(low) >= rank) return low;
  const double precision = 1e-12 * std::max({std::abs(low), std::abs(high), high - low});
  while (high - low > precision) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (count(middle) >= rank ? high : low) = middle;
  }
  return high;
}

template <class Count>
double median_pair(int64_t pairs, double low, double high, const Count& count) {
  const double first = nth_pair((pairs + 1) / 2, low, high, count);
  if (pairs % 2 == 1) return first;
  // Mostly the next one is no further than that.
  if (count(first) >= pairs / 2 + 1) return first;
  return (first + nth_pair(pairs / 2 + 1, low, high, count)) / 2;
}

template <class Count>
Interval pair_interval(int64_t pairs, double half, double low, double high, const Count& count) {
  const auto all = static_cast<double>(pairs);
  const double below = std::max(0.0, 0.5 - half) * all, above = std::min(1.0, 0.5 + half) * all;
  const auto rank = [&](double at) { return std::clamp<int64_t>(std::llround(at), 1, pairs); };
  return {nth_pair(rank(std::floor(below)), low, high, count),
          nth_pair(rank(std::ceil(above)), low, high, count)};
}

// Scores of one sample, summed by block; blocks without a value are left out.
std::vector<RatioBatch> batches_of(std::span<const BlockedValue> sample,
                                   std::span<const double> scores) {
  std::vector<RatioBatch> by_block;
  for (size_t i = 0; i < sample.size(); ++i) {
    const auto block = static_cast<size_t>(sample[i].block);
    if (block >= by_block.size()) by_block.resize(block + 1);
    by_block[block].numerator += scores[i];
    by_block[block].denominator += 1;
  }
  std::erase_if(by_block, [](const RatioBatch& batch) { return batch.denominator == 0; });
  return by_block;
}

struct Spread {
  double mean = 0, variance = 0, freedom = 0;  // of the mean
};
std::optional<Spread> spread_of(std::span<const BlockedValue> sample,
                                std::span<const double> scores) {
  auto batches = batches_of(sample, scores);
  if (batches.size() < static_cast<size_t>(kBlocksMin)) return std::nullopt;
  batches = decorrelated(std::move(batches));
  const auto estimate = ratio_estimate(batches);
  if (!estimate) return std::nullopt;
  return Spread{estimate->ratio, estimate->standard_error * estimate->standard_error,
                static_cast<double>(batches.size() - 1)};
}

// For each value, the share of `others` (sorted) below it less the share above it.
std::vector<double> placements(std::span<const BlockedValue> sample, double shift,
                               std::span<const double> others) {
  std::vector<double> out;
  out.reserve(sample.size());
  const auto n = static_cast<double>(others.size());
  for (const auto& one : sample) {
    const auto range = std::equal_range(others.begin(), others.end(), one.value + shift);
    out.push_back((static_cast<double>(range.first - others.begin()) -
                   static_cast<double>(others.end() - range.second)) /
                  n);
  }
  return out;
}

// Cliff's delta of b shifted by `shift` over a.
std::optional<Spread> delta_spread(std::span<const BlockedValue> a, std::span<const BlockedValue> b,
                                   std::span<const double> a_sorted,
                                   std::span<const double> b_sorted, double shift) {
  const auto of_a = spread_of(a, placements(a, -shift, b_sorted));
  const auto of_b = spread_of(b, placements(b, shift, a_sorted));
  if (!of_a || !of_b) return std::nullopt;
  Spread out;
  out.mean = of_b->mean;
  out.variance = of_a->variance + of_b->variance;
  const double denominator = of_a->variance * of_a->variance / of_a->freedom +
                             of_b->variance * of_b->variance / of_b->freedom;
  out.freedom = denominator > 0 ? out.variance * out.variance / denominator
                                : std::min(of_a->freedom, of_b->freedom);
  return out;
}

// Of all ways to deal k blocks to either side, two separate the sides wholly.
double separated_p(double freedom) {
  const double k = freedom + 1;
  return 2 * core::math::exp(2 * core::math::log_gamma(k + 1) - core::math::log_gamma(2 * k + 1));
}

double two_sided_p(const Spread& spread, double value) {
  if (!(spread.variance > 0)) return value == 0 ? 1 : separated_p(spread.freedom);
  const double t = std::abs(value) / core::math::sqrt(spread.variance);
  return std::min(1.0, 2 * student_t_cdf(-t, spread.freedom));
}

double half_width(const Spread& spread, double confidence) {
  return student_t_two_sided(confidence, spread.freedom) * core::math::sqrt(spread.variance);
}

std::optional<Interval> clamped_delta(const Spread& spread, double confidence) {
  if (!(spread.variance > 0)) return std::nullopt;
  const double half = half_width(spread, confidence);
  return Interval{std::max(-1.0, spread.mean - half), std::min(1.0, spread.mean + half)};
}

// Ranks of |value| with their mean for ties, and the value's sign.
std::vector<double> signed_ranks(std::span<const BlockedValue> sample) {
  std::vector<size_t> order(sample.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto size_of = [&](size_t i) { return std::abs(sample[i].value); };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return size_of(a) < size_of(b); });
  std::vector<double> out(sample.size(), 0);
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && size_of(order[end]) == size_of(order[begin])) ++end;
    const double rank = (static_cast<double>(begin + end) + 1) / 2;
    for (size_t i = begin; i < end; ++i) {
      const double value = sample[order[i]].value;
      out[order[i]] = value > 0 ? rank : value < 0 ? -rank : 0;
    }
    begin = end;
  }
  return out;
}

}  // namespace

double hodges_lehmann(std::span<const double> a_sorted, std::span<const double> b_sorted) {
  PRONY_CHECK(!a_sorted.empty() && !b_sorted.empty(), "no values");
  const auto pairs = static_cast<int64_t>(a_sorted.size()) * static_cast<int64_t>(b_sorted.size());
  return median_pair(pairs, b_sorted.front() - a_sorted.back(), b_sorted.back() - a_sorted.front(),
                     [&](double x) { return differences_up_to(a_sorted, b_sorted, x); });
}

double hodges_lehmann(std::span<const double> d) {
  PRONY_CHECK(!d.empty(), "no values");
  const auto n = static_cast<int64_t>(d.size());
  return median_pair(n * (n + 1) / 2, d.front(), d.back(),
                     [&](double x) { return averages_up_to(d, x); });
}

std::optional<RankTest> rank_sum_test(std::span<const BlockedValue> a,
                                      std::span<const BlockedValue> b, double confidence) {
  const auto a_sorted = sorted_values(a), b_sorted = sorted_values(b);
  const auto delta =
      a.empty() || b.empty() ? std::nullopt : delta_spread(a, b, a_sorted, b_sorted, 0);
  if (!delta) return std::nullopt;
  RankTest test;
  test.delta = delta->mean;
  test.delta_interval = clamped_delta(*delta, confidence);
  test.p_value = two_sided_p(*delta, delta->mean);
  test.shift = hodges_lehmann(a_sorted, b_sorted);
  // At the shift the sides overlap most: how surely half of all differences lie below it.
  const auto shifted = delta_spread(a, b, a_sorted, b_sorted, -test.shift);
  if (!shifted || !(shifted->variance > 0)) return test;
  const auto pairs = static_cast<int64_t>(a.size()) * static_cast<int64_t>(b.size());
  test.shift_interval =
      pair_interval(pairs, half_width(*shifted, confidence) / 2, b_sorted.front() - a_sorted.back(),
                    b_sorted.back() - a_sorted.front(),
                    [&](double x) { return differences_up_to(a_sorted, b_sorted, x); });
  return test;
}

std::optional<RankTest> signed_rank_test(std::span<const BlockedValue> differences,
                                         double confidence) {
  if (differences.empty()) return std::nullopt;
  const auto ranks = spread_of(differences, signed_ranks(differences));
  if (!ranks) return std::nullopt;
  RankTest test;
  test.p_value = two_sided_p(*ranks, ranks->mean);
  std::vector<double> scores;
  scores.reserve(differences.size());
  for (const auto& one : differences) {
    scores.push_back(one.value > 0 ? 1 : one.value < 0 ? -1 : 0);
  }
  const auto signs = spread_of(differences, scores);
  test.delta = signs->mean;
  test.delta_interval = clamped_delta(*signs, confidence);
  const auto sorted = sorted_values(differences);
  test.shift = hodges_lehmann(sorted);
  // The share of averages with the others that lie at or below the shift, of each difference.
  scores.clear();
  const auto n = static_cast<double>(sorted.size());
  for (const auto& one : differences) {
    const auto end = std::upper_bound(sorted.begin(), sorted.end(), 2 * test.shift - one.value);
    scores.push_back(static_cast<double>(end - sorted.begin()) / n);
  }
  const auto shares = spread_of(differences, scores);
  if (!(shares->variance > 0)) return test;
  const auto count = static_cast<int64_t>(sorted.size());
  test.shift_interval =
      pair_interval(count * (count + 1) / 2, 2 * half_width(*shares, confidence), sorted.front(),
                    sorted.back(), [&](double x) { return averages_up_to(sorted, x); });
  return test;
}

}  // namespace prony::stats
