#include "prony/compare/change_law.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "prony/core/rng.hpp"

namespace prony::compare {
namespace {

// Reference values: Welch's test of R's t.test on these numbers.
TEST(ChangeLaw, RunsByWelch) {
  const std::vector<double> a = {10, 11, 12}, b = {13, 15, 14, 18};
  const auto law = runs_difference(a, b);
  ASSERT_TRUE(law);
  EXPECT_DOUBLE_EQ(law->value, 4);
  // Variances 1 and 14/3: standard error sqrt(1/3 + 7/6), freedom 4.5 by Welch.
  const double se = std::sqrt(1.0 / 3 + 7.0 / 6);
  const double freedom =
      std::pow(1.0 / 3 + 7.0 / 6, 2) / (std::pow(1.0 / 3, 2) / 2 + std::pow(7.0 / 6, 2) / 3);
  EXPECT_NEAR(freedom, 4.418, 1e-3);
  const auto interval = law->interval(0.95);
  EXPECT_NEAR((interval.upper - interval.lower) / 2 / se, 2.674, 0.01);  // t(0.975, 4.42)
  EXPECT_NEAR(law->p, 0.0268, 0.001);
}

TEST(ChangeLaw, OneRunVariesLikeTheOthers) {
  const std::vector<double> one = {10}, more = {11, 12, 13};
  const auto law = runs_difference(one, more);
  ASSERT_TRUE(law);
  // Pooled variance 1, standard error sqrt(1 + 1/3), two degrees of freedom: t = 4.303.
  EXPECT_NEAR(law->interval(0.95).upper, 2 + 4.303 * std::sqrt(4.0 / 3), 1e-3);
  EXPECT_FALSE(runs_difference(one, one));
  EXPECT_FALSE(runs_difference(std::vector<double>{3, 3}, std::vector<double>{3, 3}));
}

TEST(ChangeLaw, PairsOfRunsCancelTheirSchedules) {
  const std::vector<double> a = {10, 20, 40}, b = {11, 22, 44.1};
  const auto paired = paired_runs_relative(a, b), apart = runs_relative(a, b);
  ASSERT_TRUE(paired && apart);
  EXPECT_NEAR(paired->value, 0.1008, 1e-3);
  EXPECT_NEAR(paired->value, apart->value, 1e-12);
  EXPECT_LT(paired->p, 0.001);
  EXPECT_GT(apart->p, 0.5);
  EXPECT_FALSE(runs_relative(std::vector<double>{0, 1}, a));
}

Share share(core::Rng& rng, int n, double p) {
  Share out;
  out.batches.resize(64);
  for (int i = 0; i < n; ++i) {
    auto& batch = out.batches[static_cast<size_t>(i * 64 / n)];
    batch.numerator += rng.uniform() < p;
    batch.denominator += 1;
  }
  return out;
}

TEST(ChangeLaw, SharesCoverTheirDifference) {
  int missed = 0, alarms = 0, found = 0;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    core::Rng rng(9, static_cast<uint64_t>(round));
    const auto law = share_law(share(rng, 800, 0.03), share(rng, 800, 0.08));
    const auto interval = law->interval(0.95);
    missed += interval.lower > 0.05 || interval.upper < 0.05;
    found += law->p < 0.05;
    alarms += share_law(share(rng, 800, 0.03), share(rng, 800, 0.03))->p < 0.05;
    // p and interval are one method.
    EXPECT_EQ(law->p<0.05, interval.lower> 0 || interval.upper < 0);
  }
  EXPECT_LE(missed, kRounds * 7 / 100);
  EXPECT_LE(alarms, kRounds * 7 / 100);
  EXPECT_GE(found, kRounds * 85 / 100);
}

TEST(ChangeLaw, SharesOfNothing) {
  core::Rng rng(1);
  const auto none = share_law(share(rng, 400, 0), share(rng, 400, 0));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->value, 0);
  EXPECT_EQ(none->p, 1);
  EXPECT_LT(none->interval(0.95).lower, -0.005);  // no failure in 400 does not mean none ever
  EXPECT_GT(none->interval(0.95).upper, 0.005);
  EXPECT_FALSE(share_law(Share{}, share(rng, 10, 0)));
}

}  // namespace
}  // namespace prony::compare
