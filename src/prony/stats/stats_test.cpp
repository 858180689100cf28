// Tests of moments, Kolmogorov-Smirnov and steady state: against naive forms, published values and
// the behaviour on series whose answer is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/stats/kolmogorov.hpp"
#include "prony/stats/moments.hpp"
#include "prony/stats/steady_state.hpp"

namespace prony::stats {
namespace {

TEST(Moments, AgreesWithTwoPasses) {
  core::Rng rng(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<double> values(2 + rng.below(500));
    for (auto& value : values) value = 1e9 + rng.normal();  // mean large against the spread
    Moments moments;
    long double sum = 0, square = 0;
    for (const double value : values) {
      moments.add(value);
      sum += value;
    }
    const long double mean = sum / static_cast<long double>(values.size());
    for (const double value : values) square += (value - mean) * (value - mean);
    const auto variance = static_cast<double>(square / static_cast<long double>(values.size() - 1));
    EXPECT_NEAR(*moments.mean(), static_cast<double>(mean), 1e-6);
    EXPECT_NEAR(*moments.sd(), std::sqrt(variance), 1e-6 * std::sqrt(variance) + 1e-7);
    EXPECT_EQ(*moments.min(), *std::min_element(values.begin(), values.end()));
    EXPECT_EQ(*moments.max(), *std::max_element(values.begin(), values.end()));
  }
}

TEST(Moments, FewSamplesGiveNoDeviation) {
  Moments moments;
  EXPECT_FALSE(moments.mean() || moments.min() || moments.max() || moments.sd());
  moments.add(4);
  EXPECT_EQ(*moments.mean(), 4);
  EXPECT_FALSE(moments.sd().has_value());
  moments.add(6);
  EXPECT_NEAR(*moments.sd(), std::sqrt(2.0), 1e-15);
}

TEST(Moments, MergeAndWeightsEqualSingleAdds) {
  core::Rng rng(2);
  Moments all, left, right, weighted, single;
  for (int i = 0; i < 1'000; ++i) {
    const double value = rng.exponential();
    const auto times = static_cast<int64_t>(rng.below(4));
    all.add(value);
    (rng.below(2) == 0 ? left : right).add(value);
    weighted.add(value, times);
    for (int64_t k = 0; k < times; ++k) single.add(value);
  }
  left.merge(right);
  left.merge(Moments());
  EXPECT_EQ(left.n(), all.n());
  EXPECT_NEAR(*left.mean(), *all.mean(), 1e-12);
  EXPECT_NEAR(*left.sd(), *all.sd(), 1e-12);
  EXPECT_EQ(weighted.n(), single.n());
  EXPECT_NEAR(*weighted.mean(), *single.mean(), 1e-12);
  EXPECT_NEAR(*weighted.sd(), *single.sd(), 1e-12);
}

TEST(Kolmogorov, CriticalValues) {
  // Tables of the limit distribution.
  EXPECT_NEAR(kolmogorov_tail(1.2238), 0.10, 1e-4);
  EXPECT_NEAR(kolmogorov_tail(1.3581), 0.05, 1e-4);
  EXPECT_NEAR(kolmogorov_tail(1.6276), 0.01, 1e-4);
  EXPECT_NEAR(kolmogorov_tail(0.8276), 0.50, 1e-4);
  EXPECT_NEAR(kolmogorov_tail(0.4410), 0.99, 1e-4);
  // Both series meet at 1.
  EXPECT_NEAR(kolmogorov_tail(1 - 1e-9), kolmogorov_tail(1), 1e-8);
  EXPECT_EQ(kolmogorov_tail(0), 1);
  EXPECT_GE(kolmogorov_tail(0.05), 1 - 1e-12);
  EXPECT_LT(kolmogorov_tail(5), 1e-20);
}

TEST(Kolmogorov, OneSampleByHand) {
  const std::vector<double> values = {0.1, 0.4, 0.7};
  // Against uniform: gaps 1/3-0.1, 2/3-0.4, 1-0.7 above, 0.7-2/3 below: largest 0.3.
  EXPECT_NEAR(ks_one_sample(values, [](double x) { return x; }).distance, 0.3, 1e-15);
}

TEST(Kolmogorov, TwoSampleAgreesWithBruteForceUnderTies) {
  core::Rng rng(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<double> a(1 + rng.below(30)), b(1 + rng.below(30));
    for (auto& value : a) value = static_cast<double>(rng.below(10));
    for (auto& value : b) value = static_cast<double>(rng.below(12));
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    double expected = 0;
    for (int x = -1; x <= 12; ++x) {
      const auto share = [&](const std::vector<double>& values) {
        return static_cast<double>(std::upper_bound(values.begin(), values.end(), x) -
                                   values.begin()) /
               static_cast<double>(values.size());
      };
      expected = std::max(expected, std::fabs(share(a) - share(b)));
    }
    ASSERT_NEAR(ks_two_sample(a, b).distance, expected, 1e-15);
  }
}

TEST(Kolmogorov, PValuesAreUniformUnderTheNullAndSmallOtherwise) {
  core::Rng rng(4);
  constexpr int kRounds = 2'000;
  int below_5_percent = 0, below_half = 0, detected = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> values(50), shifted(50);
    for (auto& value : values) value = rng.uniform();
    for (auto& value : shifted) value = std::min(1.0, 1.4 * rng.uniform());
    std::sort(values.begin(), values.end());
    std::sort(shifted.begin(), shifted.end());
    const auto cdf = [](double x) { return x; };
    const double p = ks_one_sample(values, cdf).p_value;
    below_5_percent += p < 0.05;
    below_half += p < 0.5;
    detected += ks_one_sample(shifted, cdf).p_value < 0.05;
  }
  EXPECT_NEAR(below_5_percent, 0.05 * kRounds, 5 * std::sqrt(0.05 * 0.95 * kRounds));
  EXPECT_NEAR(below_half, 0.5 * kRounds, 5 * std::sqrt(0.25 * kRounds));
  EXPECT_GT(detected, 0.8 * kRounds);
}

std::vector<double> noisy(core::Rng& rng, size_t n, double level, double drift_per_step) {
  std::vector<double> out(n);
  for (size_t i = 0; i < n; ++i) {
    out[i] = level + drift_per_step * static_cast<double>(i) + 0.3 * level * rng.normal();
  }
  return out;
}

TEST(SteadyState, Mser5FindsTheEndOfAWarmUp) {
  core::Rng rng(5);
  for (int round = 0; round < 50; ++round) {
    auto series = noisy(rng, 1000, 10, 0);
    for (size_t i = 0; i < 200; ++i) series[i] += 100;
    const auto truncation = mser5_truncation(series);
    EXPECT_GE(truncation, 200);
    EXPECT_LE(truncation, 500);
    EXPECT_EQ(truncation % 5, 0);
    const auto state = assess_steady_state(series);
    EXPECT_TRUE(state->steady) << state->p_value << " " << state->change;
  }
  EXPECT_EQ(mser5_truncation(std::vector<double>(9, 1.0)), 0);
  EXPECT_EQ(mser5_truncation(std::vector<double>(100, 1.0)),
            0);  // nothing gained: nothing left out
}

TEST(SteadyState, CallsDriftAndForgivesNoise) {
  core::Rng rng(6);
  constexpr int kRounds = 200;
  int false_alarms = 0, drifts_found = 0;
  for (int round = 0; round < kRounds; ++round) {
    false_alarms += !assess_steady_state(noisy(rng, 400, 10, 0))->steady;
    // An overloaded open loop: latency doubles over the run.
    drifts_found += !assess_steady_state(noisy(rng, 400, 10, 10.0 / 400))->steady;
  }
  EXPECT_LE(false_alarms, kRounds * 4 / 100);  // nominal 1 %
  EXPECT_GE(drifts_found, kRounds * 95 / 100);
}

TEST(SteadyState, EdgeCases) {
  EXPECT_FALSE(assess_steady_state(std::vector<double>(99, 1.0)).has_value());
  const auto flat = assess_steady_state(std::vector<double>(100, 2.0));
  EXPECT_TRUE(flat->steady);
  EXPECT_EQ(flat->change, 0);
  std::vector<double> step(200, 1.0);
  std::fill(step.begin() + 150, step.end(), 3.0);
  EXPECT_FALSE(assess_steady_state(step)->steady);
}

}  // namespace
}  // namespace prony::stats
