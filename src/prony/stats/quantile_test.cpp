// Tests of quantiles and their intervals: known values of numpy, exact coverage by enumeration and
// by simulation, and the effective sample size of grouped data.
#include "prony/stats/quantile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/stats/binomial.hpp"

namespace prony::stats {
namespace {

TEST(Binomial, AgreesWithEnumeration) {
  for (const double p : {0.01, 0.1, 0.5, 0.9, 0.999}) {
    for (const int64_t n : {1, 2, 7, 30, 200}) {
      // long double, since 0.001^200 is far below the smallest double.
      long double term = std::pow(1 - static_cast<long double>(p), n), sum = 0;
      for (int64_t k = 0; k <= n; ++k) {
        sum += term;
        ASSERT_NEAR(binomial_cdf(k, n, p), static_cast<double>(sum), 1e-12)
            << k << " of " << n << " at " << p;
        term *= static_cast<long double>(n - k) / static_cast<long double>(k + 1) * p / (1 - p);
      }
    }
  }
  EXPECT_EQ(binomial_cdf(-1, 5, 0.5), 0);
  EXPECT_EQ(binomial_cdf(5, 5, 0.5), 1);
  EXPECT_EQ(binomial_cdf(0, 5, 0), 1);
  EXPECT_EQ(binomial_cdf(4, 5, 1), 0);
}

TEST(Binomial, FarTailsKeepTheirRelativeError) {
  // P(X <= 0) of Binomial(900, 0.5) = 2^-900; P(X <= 1) = 901 * 2^-900.
  EXPECT_NEAR(binomial_cdf(0, 900, 0.5) / std::ldexp(1, -900), 1, 1e-10);
  EXPECT_NEAR(binomial_cdf(1, 900, 0.5) / (901 * std::ldexp(1, -900)), 1, 1e-10);
  EXPECT_EQ(binomial_cdf(0, 1000, 0.5), 0);  // below the cut-off
}

TEST(Binomial, LargeNAgreesWithTheNormalLimit) {
  const int64_t n = 100'000'000;
  // Mean 5e7, sd 5000; with continuity correction the normal law is good to about 1e-6 here.
  EXPECT_NEAR(binomial_cdf(50'000'000 - 9800, n, 0.5),
              0.5 * std::erfc(9799.5 / 5000 / std::sqrt(2)), 1e-6);
}

TEST(Binomial, QuantileInvertsTheCdf) {
  core::Rng rng(1);
  for (int i = 0; i < 2'000; ++i) {
    const auto n = static_cast<int64_t>(1 + rng.below(2'000));
    const double p = rng.uniform_open(), probability = rng.uniform_open();
    const int64_t k = binomial_quantile(probability, n, p);
    ASSERT_GE(binomial_cdf(k, n, p), probability * (1 - 1e-12));
    if (k > 0) {
      ASSERT_LT(binomial_cdf(k - 1, n, p), probability * (1 + 1e-12));
    }
  }
}

TEST(Binomial, ClopperPearsonKnownIntervals) {
  // R: binom.test(8, 20)$conf.int
  const auto a = proportion_interval(8, 20);
  EXPECT_NEAR(a.lower, 0.1911901, 1e-7);
  EXPECT_NEAR(a.upper, 0.6394574, 1e-7);
  // No success: lower 0, upper 1 - 0.025^(1/n); by symmetry for all successes.
  const auto none = proportion_interval(0, 50), all = proportion_interval(50, 50);
  EXPECT_EQ(none.lower, 0);
  EXPECT_NEAR(none.upper, 1 - std::pow(0.025, 1.0 / 50), 1e-12);
  EXPECT_NEAR(all.lower, std::pow(0.025, 1.0 / 50), 1e-12);
  EXPECT_EQ(all.upper, 1);
}

TEST(Quantile, LinearAgreesWithNumpy) {
  const std::vector<double> values = {1, 2, 4, 8, 16};
  EXPECT_DOUBLE_EQ(quantile_linear(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile_linear(values, 0.5), 4);
  EXPECT_DOUBLE_EQ(quantile_linear(values, 0.9), 12.8);  // numpy.quantile(values, .9)
  EXPECT_DOUBLE_EQ(quantile_linear(values, 0.3), 2.4);   // position 1.2
  EXPECT_DOUBLE_EQ(quantile_linear(values, 0.99), 15.68);
  EXPECT_DOUBLE_EQ(quantile_linear(values, 1), 16);
  const std::vector<double> one = {3};
  for (const double q : {0.0, 0.3, 1.0}) EXPECT_EQ(quantile_linear(one, q), 3);
}

TEST(Quantile, StaysBetweenItsNeighboursAndIsMonotone) {
  core::Rng rng(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> values(1 + rng.below(40));
    for (auto& value : values) value = std::exp(20 * rng.uniform());
    std::sort(values.begin(), values.end());
    double last = values.front();
    for (int i = 0; i <= 1000; ++i) {
      const double q = i / 1000.0, found = quantile_linear(values, q);
      ASSERT_GE(found, last);
      last = found;
      const double rank_value = quantile_nearest_rank(values, q);
      ASSERT_TRUE(std::binary_search(values.begin(), values.end(), rank_value));
    }
    ASSERT_EQ(last, values.back());
  }
}

TEST(Quantile, NearestRankHasNoRoundingError) {
  EXPECT_EQ(nearest_rank(0.07, 100), 7);
  EXPECT_EQ(nearest_rank(0.99, 100), 99);
  EXPECT_EQ(nearest_rank(0.999, 1'000'000'000), 999'000'000);
  EXPECT_EQ(nearest_rank(0, 5), 1);
  EXPECT_EQ(nearest_rank(1, 5), 5);
  EXPECT_EQ(nearest_rank(0.5, 5), 3);
}

TEST(Interval, RanksHaveAtLeastTheirCoverageAndNoRankToSpare) {
  for (const double q : {0.5, 0.9, 0.99}) {
    for (int64_t n = 1; n <= 1500; n += 1 + n / 20) {
      const auto ranks = quantile_ranks(n, q);
      if (!ranks) {
        // Not even the extremes bound the quantile with 2.5 % in each tail.
        const double none_below = std::pow(1 - q, static_cast<double>(n));
        const double all_below = std::pow(q, static_cast<double>(n));
        ASSERT_TRUE(none_below > 0.025 || all_below > 0.025) << n << " " << q;
        continue;
      }
      const double miss_low = binomial_cdf(ranks->lower - 1, n, q);
      const double miss_high = 1 - binomial_cdf(ranks->upper - 1, n, q);
      ASSERT_LE(miss_low, 0.025 + 1e-12);
      ASSERT_LE(miss_high, 0.025 + 1e-12);
      ASSERT_GT(binomial_cdf(ranks->lower, n, q), 0.025);          // one rank higher would miss
      ASSERT_GT(1 - binomial_cdf(ranks->upper - 2, n, q), 0.025);  // one rank lower would miss
    }
  }
}

TEST(Interval, KnownRanks) {
  EXPECT_EQ(quantile_ranks(5, 0.5), std::nullopt);  // 2 * 0.5^5 = 6.25 %
  EXPECT_EQ(quantile_ranks(6, 0.5), (RankInterval{1, 6}));
  EXPECT_EQ(quantile_ranks(100, 0.5), (RankInterval{40, 61}));  // tables of the sign test
  EXPECT_EQ(quantile_ranks(367, 0.99), std::nullopt);           // 0.99^367 = 2.500004 %
  EXPECT_TRUE(quantile_ranks(368, 0.99).has_value());
  EXPECT_EQ(quantile_ranks(0, 0.5), std::nullopt);
}

TEST(Interval, CoversTheTrueQuantileOfExponentialSamples) {
  core::Rng rng(9);
  constexpr int kRounds = 2'000;
  int covered = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> values(400);
    for (auto& value : values) value = rng.exponential();
    std::sort(values.begin(), values.end());
    const auto interval = quantile_interval(values, 0.9);
    ASSERT_TRUE(interval.has_value());
    const double truth = std::log(10.0);
    covered += interval->lower <= truth && truth <= interval->upper;
  }
  // Nominal at least 95 %; exact for n = 400 is 95.6 %. Five standard errors are 2.4 %.
  EXPECT_GE(covered, static_cast<int>(0.932 * kRounds));
  EXPECT_LE(covered, static_cast<int>(0.985 * kRounds));
}

TEST(Interval, EffectiveRanksWidenAndEqualThePlainOnesAtFullSize) {
  for (const int64_t n : {50, 1000, 12'345}) {
    for (const double q : {0.5, 0.9}) {
      EXPECT_EQ(quantile_ranks_effective(n, static_cast<double>(n), q), quantile_ranks(n, q));
      auto last = *quantile_ranks(n, q);
      for (double share = 0.9; share > 0; share -= 0.2) {
        const auto ranks = quantile_ranks_effective(n, share * static_cast<double>(n), q);
        if (!ranks) break;
        EXPECT_LE(ranks->upper, n);
        EXPECT_GE(ranks->lower, 1);
        EXPECT_GE(ranks->upper - ranks->lower, (last.upper - last.lower) * 95 / 100);
        last = *ranks;
      }
    }
  }
  EXPECT_EQ(quantile_ranks_effective(1000, 4.0, 0.5), std::nullopt);
}

// Streams whose gaps share a level: the plain interval is far too narrow, the grouped one holds.
TEST(Interval, GroupedSamplesKeepTheirCoverage) {
  core::Rng rng(13);
  constexpr int kRounds = 400, kGroups = 60, kSize = 50;
  int plain_covered = 0, grouped_covered = 0;
  // level + noise, both uniform on (0, 1): median exactly 1.
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> values;
    for (int group = 0; group < kGroups; ++group) {
      const double level = rng.uniform();
      for (int i = 0; i < kSize; ++i) values.push_back(level + rng.uniform());
    }
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const double median = quantile_linear(sorted, 0.5);
    GroupedProportion grouped(0.5);
    for (int group = 0; group < kGroups; ++group) {
      const auto begin = values.begin() + group * kSize;
      grouped.add(kSize,
                  std::count_if(begin, begin + kSize, [&](double v) { return v <= median; }));
    }
    const auto n = static_cast<int64_t>(sorted.size());
    const auto holds = [&](const std::optional<RankInterval>& ranks) {
      return ranks && sorted[static_cast<size_t>(ranks->lower - 1)] <= 1 &&
             sorted[static_cast<size_t>(ranks->upper - 1)] >= 1;
    };
    plain_covered += holds(quantile_ranks(n, 0.5));
    grouped_covered += holds(quantile_ranks_effective(n, *grouped.effective_n(), 0.5));
  }
  EXPECT_LT(plain_covered, kRounds / 2);
  EXPECT_GE(grouped_covered, kRounds * 92 / 100);
  EXPECT_LE(grouped_covered, kRounds);
}

TEST(GroupedProportion, IndependentAndFullyDependentGroups) {
  GroupedProportion single(0.5);
  single.add(10, 5);
  single.add(0, 0);
  EXPECT_FALSE(single.effective_n().has_value());
  // Each group all below or all above: 40 groups of 25 are worth about 40 values, not 1000.
  GroupedProportion dependent(0.5);
  for (int i = 0; i < 40; ++i) dependent.add(25, i % 2 == 0 ? 25 : 0);
  EXPECT_NEAR(*dependent.effective_n(), 39, 1e-9);
  // No spread between groups: never worth more than the values themselves.
  GroupedProportion even(0.5);
  for (int i = 0; i < 40; ++i) even.add(10, 5);
  EXPECT_DOUBLE_EQ(*even.effective_n(), 400);
}

}  // namespace
}  // namespace prony::stats
