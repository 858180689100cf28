// Intervals for means, rates and fractions of series whose neighbours depend on each other: against
// tables, against a second computation, and by their coverage over many simulated series.
#include "prony/stats/batch_ratio.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "prony/core/math.hpp"
#include "prony/core/rng.hpp"
#include "prony/stats/binomial.hpp"
#include "prony/stats/bootstrap.hpp"
#include "prony/stats/student_t.hpp"

namespace prony::stats {
namespace {

TEST(StudentT, QuantilesOfTheTables) {
  // Abramowitz & Stegun, table 26.10 (two-sided 95 % and 99 %).
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.706, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 2), 4.303, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 7), 2.365, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 31), 2.040, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.995, 9), 3.250, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 1e6), core::inverse_normal_cdf(0.975), 1e-5);
  EXPECT_EQ(student_t_quantile(0.5, 3), 0);
  EXPECT_NEAR(student_t_two_sided(0.95, 1), 12.7062047, 1e-6);
  EXPECT_NEAR(student_t_two_sided(0.95, 10), 2.22813885, 1e-7);
  EXPECT_NEAR(student_t_two_sided(0.99, 5), 4.03214298, 1e-7);
  EXPECT_NEAR(student_t_two_sided(0.95, 1e7), 1.95996, 1e-4);
}

TEST(StudentT, CdfInClosedFormAndItsInverse) {
  for (const double t :
       {-30.0, -3.0, -2.0, -0.5, -0.3, 0.0, 0.1, 0.7, 1.0, 1.5, 7.0, 12.0, 100.0}) {
    // One degree of freedom is the Cauchy law, two have an algebraic cdf.
    EXPECT_NEAR(student_t_cdf(t, 1), 0.5 + std::atan(t) / 3.14159265358979323846, 1e-12);
    EXPECT_NEAR(student_t_cdf(t, 2), 0.5 + t / (2 * std::sqrt(2 + t * t)), 1e-12);
  }
  for (const double freedom : {1.0, 3.0, 8.0, 60.0}) {
    for (const double p : {0.001, 0.2, 0.6, 0.99}) {
      EXPECT_NEAR(student_t_cdf(student_t_quantile(p, freedom), freedom), p, 1e-11);
    }
  }
}

TEST(BatchRatio, KeepsSumsWhateverTheLength) {
  core::Rng rng(1);
  for (int64_t n : {1, 5, 63, 64, 65, 1000, 12'345}) {
    BatchRatio ratio;
    double numerator = 0, denominator = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double a = rng.uniform(), b = 1 + rng.uniform();
      ratio.add(a, b);
      numerator += a;
      denominator += b;
    }
    const auto batches = ratio.batches();
    EXPECT_LE(batches.size(), 64u);
    EXPECT_GE(batches.size(), std::min<size_t>(32, static_cast<size_t>(n)));
    double sum = 0;
    for (const auto& batch : batches) sum += batch.denominator;
    EXPECT_NEAR(sum, denominator, 1e-9 * denominator);
    EXPECT_NEAR(*ratio.estimate(), numerator / denominator, 1e-12);
    EXPECT_EQ(ratio.n(), n);
    EXPECT_EQ(ratio.interval().has_value(), n >= 5);
  }
  EXPECT_FALSE(BatchRatio().estimate().has_value());
}

TEST(BatchRatio, OfFewValuesIsStudentsInterval) {
  // Ten values, independent by their order: batches of one, the textbook interval.
  const double values[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  BatchRatio mean;
  double sum = 0, square = 0;
  for (const double v : values) {
    mean.add(v);
    sum += v;
  }
  for (const double v : values) square += (v - sum / 10) * (v - sum / 10);
  const double half = 2.2621571627982 * std::sqrt(square / 9 / 10);
  EXPECT_NEAR(mean.interval()->lower, sum / 10 - half, 1e-9);
  EXPECT_NEAR(mean.interval()->upper, sum / 10 + half, 1e-9);
  BatchRatio equal;
  for (int i = 0; i < 100; ++i) equal.add(7);
  EXPECT_EQ(*equal.interval(), (Interval{7, 7}));
}

// Share of series whose interval holds the true mean.
template <class Series>
double coverage(int rounds, int length, double truth, Series series) {
  int hit = 0;
  for (int round = 0; round < rounds; ++round) {
    core::Rng rng(static_cast<uint64_t>(round), 7);
    BatchRatio mean;
    series(rng, length, mean);
    const auto interval = mean.interval();
    hit += interval->lower <= truth && truth <= interval->upper;
  }
  return static_cast<double>(hit) / rounds;
}

TEST(BatchRatio, CoversTheMeanOfIndependentAndOfDependentSeries) {
  const auto skewed = [](core::Rng& rng, int n, BatchRatio& mean) {
    for (int i = 0; i < n; ++i) mean.add(rng.exponential());
  };
  EXPECT_NEAR(coverage(2000, 1000, 1, skewed), 0.95, 0.02);
  // First-order dependence: of 2000 values the mean is worth 2000 * 0.2 / 1.8 = 222.
  const auto dependent = [](core::Rng& rng, int n, BatchRatio& mean) {
    double x = rng.normal() / 0.6;  // stationary: variance 1 / (1 - 0.8^2)
    for (int i = 0; i < n; ++i) {
      x = 0.8 * x + rng.normal();
      mean.add(5 + x);
    }
  };
  const double found = coverage(2000, 2000, 5, dependent);
  EXPECT_GT(found, 0.92);
  EXPECT_LT(found, 0.98);
}

TEST(SeriesQuantile, CoversTheMedianOfADependentSeries) {
  int hit = 0, naive_hit = 0;
  constexpr int kRounds = 1000;
  for (uint64_t round = 0; round < kRounds; ++round) {
    core::Rng rng(round, 11);
    std::vector<double> series;
    double x = rng.normal() / 0.6;
    for (int i = 0; i < 1000; ++i) {
      x = 0.8 * x + rng.normal();
      series.push_back(x);
    }
    const auto found = series_quantile(series, 0.5);
    hit += found->interval.lower <= 0 && 0 <= found->interval.upper;
    std::sort(series.begin(), series.end());
    const auto naive = quantile_interval(series, 0.5);
    naive_hit += naive->lower <= 0 && 0 <= naive->upper;
  }
  EXPECT_GT(hit, 0.90 * kRounds);
  EXPECT_LT(naive_hit, 0.75 * kRounds);  // what is at stake
  EXPECT_FALSE(series_quantile({}, 0.5).has_value());
  const std::vector<double> three = {1, 2, 3};
  EXPECT_FALSE(series_quantile(three, 0.5).has_value());  // six are needed
}

TEST(Bootstrap, CoversARateAndRepeatsItsBits) {
  // Tokens of bursts over seconds of work, both random: a ratio, not a mean.
  int hit = 0;
  constexpr int kRounds = 1000;
  for (int round = 0; round < kRounds; ++round) {
    core::Rng rng(static_cast<uint64_t>(round), 9);
    std::vector<RatioBatch> batches;
    for (int i = 0; i < 32; ++i) {
      const double seconds = 0.5 + rng.uniform();
      batches.push_back({20 * seconds * rng.gamma(4) / 4, seconds});
    }
    const auto interval = bootstrap_ratio(batches);
    hit += interval->lower <= 20 && 20 <= interval->upper;
    if (round == 0) {
      EXPECT_EQ(*interval, *bootstrap_ratio(batches));
      EXPECT_NE(*interval, *bootstrap_ratio(batches, {.seed = 2}));
      const auto wide = bootstrap_ratio(batches, {.confidence = 0.99});
      EXPECT_LT(wide->lower, interval->lower);
      EXPECT_GT(wide->upper, interval->upper);
      const auto plain = ratio_interval(batches);
      EXPECT_NEAR(interval->lower, plain->lower, 0.3 * (plain->upper - plain->lower));
      EXPECT_NEAR(interval->upper, plain->upper, 0.3 * (plain->upper - plain->lower));
    }
  }
  EXPECT_GT(hit, 0.93 * kRounds);
  EXPECT_LT(hit, 0.975 * kRounds);
}

TEST(Bootstrap, KnowsWhatItCannotSay) {
  const std::vector<RatioBatch> four(4, {1, 1});
  EXPECT_FALSE(bootstrap_ratio(four).has_value());
  const std::vector<RatioBatch> equal(10, {3, 1});
  EXPECT_EQ(*bootstrap_ratio(equal), (Interval{3, 3}));
  const std::vector<RatioBatch> nothing(10, {3, 0});
  EXPECT_FALSE(bootstrap_ratio(nothing).has_value());
}

TEST(ClusteredProportion, IsExactWhereTrialsAreIndependentAndWiderWhereTheyCluster) {
  std::vector<RatioBatch> even(20, {9, 10});  // no more spread than chance would give
  const auto exact = proportion_interval(180, 200);
  EXPECT_EQ(clustered_proportion(180, 200, even), (Interval{exact.lower, exact.upper}));
  std::vector<RatioBatch> clustered(18, {10, 10});  // the twenty failures came together
  clustered.push_back({0, 10});
  clustered.push_back({0, 10});
  const auto wide = clustered_proportion(180, 200, clustered);
  EXPECT_LT(wide.lower, exact.lower - 0.05);
  EXPECT_GT(wide.upper, exact.upper);
  // Worth 200 / 10 = 20 trials or so: the design effect of groups that agree within themselves.
  const auto twenty = proportion_interval(18, 20);
  EXPECT_NEAR(wide.lower, twenty.lower, 0.02);
  EXPECT_EQ(clustered_proportion(0, 50, even).lower, 0);
  EXPECT_EQ(clustered_proportion(50, 50, {}).upper, 1);
}

}  // namespace
}  // namespace prony::stats
