#include "prony/stats/rank_tests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "prony/core/rng.hpp"

namespace prony::stats {
namespace {

std::vector<double> values_of(std::span<const BlockedValue> sample) {
  std::vector<double> out;
  for (const auto& one : sample) out.push_back(one.value);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<BlockedValue> sample(core::Rng& rng, int n, double shift, double correlation = 0,
                                 bool whole = false) {
  std::vector<BlockedValue> out;
  double normal = rng.normal();
  for (int i = 0; i < n; ++i) {
    if (i > 0) {
      normal = correlation * normal + std::sqrt(1 - correlation * correlation) * rng.normal();
    }
    const double value = std::exp(normal) + shift;
    out.push_back({whole ? std::round(4 * value) : value,
                   static_cast<int32_t>(i * std::min(n, kBlocksMax) / n)});
  }
  return out;
}

double middle(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return quantile_linear(all, 0.5);
}

TEST(HodgesLehmann, IsTheMedianOfAllPairs) {
  core::Rng rng(1);
  for (int round = 0; round < 60; ++round) {
    const bool whole = round % 2 == 0;
    const auto a = values_of(sample(rng, 1 + static_cast<int>(rng.below(40)), 0, 0, whole));
    const auto b = values_of(sample(rng, 1 + static_cast<int>(rng.below(40)), 0.3, 0, whole));
    std::vector<double> differences, averages;
    for (const double x : a) {
      for (const double y : b) differences.push_back(y - x);
    }
    for (size_t i = 0; i < a.size(); ++i) {
      for (size_t j = i; j < a.size(); ++j) averages.push_back((a[i] + a[j]) / 2);
    }
    EXPECT_NEAR(hodges_lehmann(a, b), middle(differences), 1e-9);
    EXPECT_NEAR(hodges_lehmann(a), middle(averages), 1e-9);
  }
}

TEST(RankSum, DeltaCountsAllPairs) {
  core::Rng rng(2);
  for (int round = 0; round < 20; ++round) {
    const auto a = sample(rng, 50, 0, 0, round % 2 == 0),
               b = sample(rng, 30, 0.2, 0, round % 2 == 0);
    double count = 0;
    for (const auto& x : a) {
      for (const auto& y : b) count += y.value > x.value ? 1 : y.value < x.value ? -1 : 0;
    }
    const auto test = rank_sum_test(a, b);
    ASSERT_TRUE(test);
    EXPECT_NEAR(test->delta, count / 1500, 1e-12);
    const auto back = rank_sum_test(b, a);
    EXPECT_NEAR(back->delta, -test->delta, 1e-12);
    EXPECT_NEAR(back->p_value, test->p_value, 1e-9);
    EXPECT_NEAR(back->shift, -test->shift, 1e-9);
  }
}

TEST(RankSum, NearTheTextbookForIndependentRequests) {
  // U of 64 + 64 values, a value a block: normal with variance n m (n + m + 1) / 12.
  core::Rng rng(5);
  const auto a = sample(rng, 64, 0), b = sample(rng, 64, 0.5);
  const auto test = rank_sum_test(a, b);
  const double z = test->delta * 64 * 64 / 2 / std::sqrt(64.0 * 64 * 129 / 12);
  EXPECT_NEAR(std::log10(test->p_value), std::log10(std::erfc(std::abs(z) / std::sqrt(2.0))), 0.35);
}

TEST(SignedRank, CountsPairs) {
  core::Rng rng(3);
  std::vector<BlockedValue> differences;
  for (int i = 0; i < 100; ++i)
    differences.push_back({std::round(3 * rng.normal() + 1), i * 64 / 100});
  const auto test = signed_rank_test(differences);
  ASSERT_TRUE(test);
  double above = 0;
  for (const auto& one : differences) above += one.value > 0 ? 1 : one.value < 0 ? -1 : 0;
  EXPECT_NEAR(test->delta, above / 100, 1e-12);
  ASSERT_TRUE(test->shift_interval);
  EXPECT_LE(test->shift_interval->lower, test->shift);
  EXPECT_GE(test->shift_interval->upper, test->shift);
}

TEST(RankTests, FewBlocksSayNothing) {
  core::Rng rng(1);
  const auto few = sample(rng, 7, 0), more = sample(rng, 100, 0);
  EXPECT_FALSE(rank_sum_test(few, more));
  EXPECT_FALSE(rank_sum_test(more, {}));
  EXPECT_FALSE(signed_rank_test(few));
}

TEST(RankTests, SidesThatDoNotOverlap) {
  core::Rng rng(1);
  const auto a = sample(rng, 100, 0);
  auto b = a;
  for (auto& one : b) one.value += 1e6;
  const auto apart = rank_sum_test(a, b);
  ASSERT_TRUE(apart);
  EXPECT_EQ(apart->delta, 1);
  EXPECT_FALSE(apart->delta_interval);
  EXPECT_LT(apart->p_value, 1e-6);
  EXPECT_NEAR(apart->shift, 1e6, 1);
  const auto same = rank_sum_test(a, a);
  EXPECT_NEAR(same->delta, 0, 1e-12);
  EXPECT_NEAR(same->p_value, 1, 1e-9);
  const std::vector<BlockedValue> zeros = [] {
    std::vector<BlockedValue> out;
    for (int i = 0; i < 64; ++i) out.push_back({0, i});
    return out;
  }();
  const auto nothing = signed_rank_test(zeros);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->p_value, 1);
  EXPECT_EQ(nothing->shift, 0);
}

struct Rates {
  double false_alarm = 0, shift_missed = 0, delta_missed = 0, found = 0;
};
// Two runs of one law, and one shifted by 0.25.
Rates rates(int n, double correlation, bool paired, int rounds) {
  Rates out;
  for (int round = 0; round < rounds; ++round) {
    core::Rng rng(23, static_cast<uint64_t>(round));
    const auto a = sample(rng, n, 0, correlation);
    auto b = sample(rng, n, 0, correlation);
    if (paired) {
      for (int i = 0; i < n; ++i) {
        b[static_cast<size_t>(i)].value = a[static_cast<size_t>(i)].value + 0.3 * rng.normal();
      }
    }
    const auto test = [&](double shift) {
      auto moved = b;
      for (auto& one : moved) one.value += shift;
      if (!paired) return *rank_sum_test(a, moved);
      for (int i = 0; i < n; ++i) {
        moved[static_cast<size_t>(i)].value -= a[static_cast<size_t>(i)].value;
      }
      return *signed_rank_test(moved);
    };
    const auto alike = test(0), shifted = test(0.25);
    out.false_alarm += alike.p_value < 0.05;
    out.delta_missed += alike.delta_interval->lower > 0 || alike.delta_interval->upper < 0;
    out.found += shifted.p_value < 0.05;
    out.shift_missed +=
        shifted.shift_interval->lower > 0.25 || shifted.shift_interval->upper < 0.25;
  }
  for (double* rate : {&out.false_alarm, &out.shift_missed, &out.delta_missed, &out.found}) {
    *rate /= rounds;
  }
  return out;
}

// 5 % asked; 500 rounds have a standard error of 1 %.
TEST(RankTests, FalseAlarmsAndShiftsFound) {
  for (const bool paired : {false, true}) {
    const auto independent = rates(400, 0, paired, 500);
    EXPECT_LE(independent.false_alarm, 0.08) << paired;
    EXPECT_LE(independent.delta_missed, 0.08) << paired;
    EXPECT_LE(independent.shift_missed, 0.08) << paired;
    EXPECT_GE(independent.found, 0.9) << paired;
    const auto dependent = rates(2000, 0.8, paired, 300);
    EXPECT_LE(dependent.false_alarm, 0.09) << paired;
    EXPECT_LE(dependent.shift_missed, 0.09) << paired;
  }
}

}  // namespace
}  // namespace prony::stats
