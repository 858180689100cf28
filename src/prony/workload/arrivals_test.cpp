// Tests of arrivals: gaps against their law by Kolmogorov-Smirnov, moments, a rate without bias,
// and the flags. Seeds are fixed, so a test passes always or never; the bounds are those that a
// right sampler misses once in 10^3 seeds or more rarely.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "prony/stats/kolmogorov.hpp"
#include "prony/workload/arrivals.hpp"

namespace prony::workload {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ArrivalProcess process(const ArrivalOptions& options, uint64_t seed) {
  return ArrivalProcess::create(options, core::Rng(seed, 1)).value();
}

// The first `count` gaps, in units of the mean gap, sorted.
std::vector<double> sorted_gaps(const ArrivalOptions& options, uint64_t seed, int count) {
  auto arrivals = process(options, seed);
  std::vector<double> gaps;
  int64_t before = 0;
  for (int i = 0; i < count; ++i) {
    const int64_t now = arrivals.next_ns();
    gaps.push_back(static_cast<double>(now - before) * 1e-9 * options.rate_per_s);
    before = now;
  }
  std::sort(gaps.begin(), gaps.end());
  return gaps;
}

// Regularised lower incomplete gamma function by its power series (Abramowitz & Stegun 6.5.29).
double gamma_cdf(double shape, double x) {
  if (x <= 0) return 0;
  double term = 1 / shape, sum = term;
  for (int n = 1; n < 2000 && term > sum * 1e-15; ++n) {
    term *= x / (shape + n);
    sum += term;
  }
  return std::min(1.0, sum * std::exp(shape * std::log(x) - x - std::lgamma(shape)));
}

TEST(GammaCdf, KnownValues) {
  EXPECT_NEAR(gamma_cdf(1, 1), 1 - std::exp(-1), 1e-12);
  EXPECT_NEAR(gamma_cdf(0.5, 0.5), std::erf(std::sqrt(0.5)), 1e-12);
  EXPECT_NEAR(gamma_cdf(5, 40), 1, 1e-10);
}

TEST(Arrivals, PoissonGapsAreExponential) {
  const ArrivalOptions options{.kind = ArrivalKind::kPoisson, .rate_per_s = 7};
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const auto gaps = sorted_gaps(options, seed, 20'000);
    const auto ks = stats::ks_one_sample(gaps, [](double x) { return 1 - std::exp(-x); });
    EXPECT_GT(ks.p_value, 1e-3) << seed;
  }
}

TEST(Arrivals, GammaGapsHaveTheAskedShape) {
  // Not below 0.3: there gaps under a nanosecond, which the schedule rounds away, become common.
  for (const double burstiness : {0.3, 0.5, 1.0, 2.0, 5.0, 40.0}) {
    const ArrivalOptions options{
        .kind = ArrivalKind::kGamma, .rate_per_s = 3, .burstiness = burstiness};
    const auto gaps = sorted_gaps(options, 5, 20'000);
    const auto ks =
        stats::ks_one_sample(gaps, [&](double x) { return gamma_cdf(burstiness, x * burstiness); });
    EXPECT_GT(ks.p_value, 1e-3) << burstiness;
    // A wrong shape must fail the same test, or it says nothing.
    const auto wrong = stats::ks_one_sample(
        gaps, [&](double x) { return gamma_cdf(burstiness * 1.2, x * burstiness * 1.2); });
    EXPECT_LT(wrong.p_value, 1e-3) << burstiness;
  }
}

TEST(Arrivals, GapMomentsMatchTheBurstiness) {
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    const ArrivalOptions options{
        .kind = ArrivalKind::kGamma, .rate_per_s = 10, .burstiness = burstiness};
    constexpr int kCount = 200'000;
    const auto gaps = sorted_gaps(options, 9, kCount);
    double sum = 0, squares = 0;
    for (const double gap : gaps) sum += gap;
    const double mean = sum / kCount;
    for (const double gap : gaps) squares += (gap - mean) * (gap - mean);
    const double cv = std::sqrt(squares / (kCount - 1)) / mean;
    EXPECT_NEAR(mean, 1, 4 / std::sqrt(burstiness * kCount)) << burstiness;
    EXPECT_NEAR(cv, 1 / std::sqrt(burstiness), 0.02 / std::sqrt(burstiness)) << burstiness;
  }
}

TEST(Arrivals, TheRateHasNoBias) {
  // The n-th arrival averaged over seeds is n/rate, within four of its standard errors.
  constexpr int kSeeds = 400, kCount = 500;
  for (const ArrivalKind kind : {ArrivalKind::kPoisson, ArrivalKind::kGamma}) {
    const ArrivalOptions options{.kind = kind, .rate_per_s = 33.3, .burstiness = 0.3};
    const double cv = kind == ArrivalKind::kGamma ? 1 / std::sqrt(0.3) : 1;
    double sum = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      auto arrivals = process(options, seed);
      int64_t last = 0;
      for (int i = 0; i < kCount; ++i) last = arrivals.next_ns();
      sum += static_cast<double>(last) * 1e-9 * options.rate_per_s / kCount;
    }
    EXPECT_NEAR(sum / kSeeds, 1, 4 * cv / std::sqrt(double{kSeeds} * kCount));
  }
}

TEST(Arrivals, ConstantGapsNeverDrift) {
  // 3/s does not divide a second: every instant must still be the nearest nanosecond.
  auto arrivals = process({.kind = ArrivalKind::kConstant, .rate_per_s = 3}, 1);
  for (int64_t k = 1; k <= 1'000'000; ++k) {
    const int64_t thirds = 3 * arrivals.next_ns() - k * 1'000'000'000;
    ASSERT_LE(std::abs(thirds), 1) << k;
  }
}

TEST(Arrivals, InstantsNeverFall) {
  for (const double burstiness : {0.001, 0.01, 1.0, 1e6}) {
    auto arrivals =
        process({.kind = ArrivalKind::kGamma, .rate_per_s = 1e6, .burstiness = burstiness}, 3);
    int64_t before = 0;
    for (int i = 0; i < 20'000; ++i) {
      const int64_t now = arrivals.next_ns();
      ASSERT_GE(now, before);
      before = now;
    }
  }
}

TEST(Arrivals, RateInfStartsEverythingAtZero) {
  auto arrivals = process({.kind = ArrivalKind::kAtOnce}, 1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(arrivals.next_ns(), 0);
}

TEST(Arrivals, FlagsMeanWhatVllmMeans) {
  EXPECT_EQ(arrivals_from_flags("4")->kind, ArrivalKind::kPoisson);
  EXPECT_EQ(arrivals_from_flags("4.5")->rate_per_s, 4.5);
  EXPECT_EQ(arrivals_from_flags("inf")->kind, ArrivalKind::kAtOnce);
  EXPECT_EQ(arrivals_from_flags("inf", 0.5)->kind, ArrivalKind::kAtOnce);
  EXPECT_EQ(arrivals_from_flags("4", kInfinity)->kind, ArrivalKind::kConstant);
  const auto bursty = arrivals_from_flags("4", 0.5);
  EXPECT_EQ(bursty->kind, ArrivalKind::kGamma);
  EXPECT_EQ(bursty->burstiness, 0.5);
  for (const char* bad : {"", "0", "-1", "nan", "-inf", "x", "4x", " 4", "1e999"}) {
    const auto result = arrivals_from_flags(bad);
    ASSERT_FALSE(result.ok()) << bad;
    EXPECT_THAT(result.error().message, HasSubstr("--request-rate: found '" + std::string(bad)));
  }
  EXPECT_EQ(arrivals_from_flags("4", 0).error().message, "--burstiness: found 0, expected > 0");
  EXPECT_FALSE(arrivals_from_flags("4", std::nan("")).ok());
}

TEST(Arrivals, OptionsOutOfRangeAreRefused) {
  const auto refused = [](const ArrivalOptions& options) {
    return !ArrivalProcess::create(options, core::Rng(1)).ok();
  };
  EXPECT_TRUE(refused({.kind = ArrivalKind::kPoisson, .rate_per_s = 0}));
  EXPECT_TRUE(refused({.kind = ArrivalKind::kPoisson, .rate_per_s = kInfinity}));
  EXPECT_TRUE(refused({.kind = ArrivalKind::kGamma, .rate_per_s = 1, .burstiness = -1}));
  EXPECT_TRUE(refused({.kind = ArrivalKind::kTrace}));
}

TEST(Arrivals, DescribeSaysTheLaw) {
  EXPECT_EQ(describe({.kind = ArrivalKind::kPoisson, .rate_per_s = 0.5}),
            "Poisson arrivals at 0.5 requests/s");
  EXPECT_EQ(describe({.kind = ArrivalKind::kGamma, .rate_per_s = 4, .burstiness = 0.5}),
            "gamma arrivals at 4 requests/s, burstiness 0.5");
  EXPECT_EQ(describe({.kind = ArrivalKind::kConstant, .rate_per_s = 4}),
            "constant arrivals at 4 requests/s");
  EXPECT_EQ(describe({.kind = ArrivalKind::kAtOnce}), "all requests at once");
}

}  // namespace
}  // namespace prony::workload
