// Kde, gamma_cdf and spearman against closed forms, plain sums and properties.
#include "prony/stats/kde.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "prony/core/math.hpp"
#include "prony/stats/gamma_law.hpp"
#include "prony/stats/kolmogorov.hpp"
#include "prony/stats/moments.hpp"
#include "prony/stats/rank_correlation.hpp"

namespace prony::stats {
namespace {

// Lengths with a mass near the bound and a long tail.
std::vector<double> lengths(int n, uint64_t seed) {
  core::Rng rng(seed);
  std::vector<double> out;
  for (int i = 0; i < n; ++i) {
    const double x = std::floor(200 * std::exp(1.2 * rng.normal()) + 0.5);
    out.push_back(std::max(1.0, x));
  }
  return out;
}

// The folded estimate by its definition.
double plain_cdf(const std::vector<double>& samples, double h, double lower, double x) {
  if (x < lower) return 0;
  double sum = 0;
  for (const double s : samples) {
    sum += core::normal_cdf((x - s) / h) - core::normal_cdf((2 * lower - x - s) / h);
  }
  return sum / static_cast<double>(samples.size());
}

TEST(Kde, CdfIsTheSumOfFoldedKernels) {
  const auto samples = lengths(300, 1);
  for (const double h : {0.5, 20.0, 512.0}) {
    const auto kde = Kde::create(samples, {.bandwidth = h, .log = false, .lower = 1}).value();
    EXPECT_EQ(kde.bandwidth(), h);
    EXPECT_EQ(kde.cdf(0.999), 0);
    for (const double x : {1.0, 1.5, 7.0, 100.0, 512.0, 3000.0, 1e6}) {
      EXPECT_NEAR(kde.cdf(x), plain_cdf(samples, h, 1, x), 1e-11) << h << " " << x;
    }
  }
}

TEST(Kde, LogIsAnEstimateOfTheLogarithms) {
  auto samples = lengths(300, 2);
  const auto kde = Kde::create(samples, {.bandwidth = 0.3, .log = true, .lower = 1}).value();
  for (double& x : samples) x = std::log(x);
  for (const double x : {1.0, 3.0, 50.0, 4000.0}) {
    EXPECT_NEAR(kde.cdf(x), plain_cdf(samples, 0.3, 0, std::log(x)), 1e-11);
  }
  EXPECT_EQ(kde.cdf(-1), 0);
}

TEST(Kde, QuantileInvertsTheCdfAndNeverFalls) {
  for (const bool log : {false, true}) {
    const auto kde = Kde::create(lengths(500, 3), {.bandwidth = 0, .log = log, .lower = 1}).value();
    double before = 0;
    for (int i = 0; i <= 1000; ++i) {
      const double p = i / 1000.0;
      const double x = kde.quantile(p);
      EXPECT_GE(x, before);
      EXPECT_GE(x, 1 - 1e-12);
      EXPECT_NEAR(kde.cdf(x), p, 2.4e-4) << log << " " << p;
      before = x;
    }
    EXPECT_TRUE(std::isfinite(kde.quantile(1)));
  }
}

TEST(Kde, DrawsFollowTheEstimate) {
  for (const KdeOptions& options : {KdeOptions{.bandwidth = 512, .log = false, .lower = 1},
                                    KdeOptions{.bandwidth = 0, .log = true, .lower = 1}}) {
    const auto kde = Kde::create(lengths(400, 4), options).value();
    core::Rng rng(9, 1);
    std::vector<double> drawn(20'000);
    for (double& x : drawn) x = kde.sample(rng);
    std::sort(drawn.begin(), drawn.end());
    EXPECT_GE(drawn.front(), 1);
    const auto ks = ks_one_sample(drawn, [&](double x) { return kde.cdf(x); });
    EXPECT_GT(ks.p_value, 1e-3) << ks.distance;
  }
}

TEST(Kde, FoldingKeepsTheMassThatAPlainEstimateLosesAtTheBound) {
  const auto kde =
      Kde::create(std::vector<double>(50, 1.0), {.bandwidth = 10, .log = false, .lower = 1})
          .value();
  // Half a normal of deviation 10 on top of 1: median at 0.6745 deviations.
  EXPECT_NEAR(kde.quantile(0.5), 1 + 6.744897501960817, 4e-3);
  EXPECT_NEAR(kde.cdf(1e9), 1, 1e-12);
}

TEST(Kde, SilvermanIsItsFormula) {
  std::vector<double> sorted;
  for (int i = 1; i <= 101; ++i) sorted.push_back(i);
  const double sd = std::sqrt(101.0 * 102 / 12), iqr = 50;
  EXPECT_NEAR(silverman_bandwidth(sorted), 0.9 * std::min(sd, iqr / 1.34) * std::pow(101, -0.2),
              1e-12);
  // More than half alike: the quartile distance is 0, the deviation is not.
  std::vector<double> mostly(90, 5.0);
  mostly.resize(100, 50.0);
  EXPECT_GT(silverman_bandwidth(mostly), 1);
}

TEST(Kde, EqualSamplesGiveThemselves) {
  const auto kde = Kde::create({7, 7, 7}, {}).value();
  EXPECT_EQ(kde.bandwidth(), 0);
  core::Rng rng(1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(kde.sample(rng), 7);
  EXPECT_EQ(kde.cdf(6.9), 0);
  EXPECT_EQ(kde.cdf(7), 1);
}

TEST(Kde, RefusesWhatHasNoDensity) {
  EXPECT_FALSE(Kde::create({}, {}).ok());
  EXPECT_FALSE(Kde::create({0.5}, {}).ok());
  EXPECT_FALSE(Kde::create({std::nan("")}, {}).ok());
  EXPECT_FALSE(Kde::create({5}, {.bandwidth = -1, .log = false, .lower = 1}).ok());
  EXPECT_FALSE(Kde::create({5}, {.bandwidth = 1, .log = true, .lower = 0}).ok());
}

// Golden: portable math gives these very doubles everywhere.
TEST(Kde, GoldenDraws) {
  const auto kde =
      Kde::create({3, 10, 10, 400}, {.bandwidth = 5, .log = false, .lower = 1}).value();
  core::Rng rng(42, 7);
  std::vector<int64_t> drawn;
  for (int i = 0; i < 6; ++i) drawn.push_back(static_cast<int64_t>(kde.sample(rng) * 1e6));
  EXPECT_EQ(drawn, (std::vector<int64_t>{8620118, 8962959, 401159771, 11861946, 3730561, 7380991}));
}

TEST(PairKde, KeepsTheRankCorrelationAndTheMarginals) {
  const int n = 3000;
  core::Rng rng(5);
  std::vector<double> a, b;
  for (int i = 0; i < n; ++i) {
    const double z = rng.normal(), w = 0.6 * z + 0.8 * rng.normal();
    a.push_back(std::max(1.0, std::floor(500 * std::exp(z))));
    b.push_back(std::max(1.0, std::floor(100 * std::exp(0.7 * w))));
  }
  const KdeOptions log{.bandwidth = 0, .log = true, .lower = 1};
  const auto pair = PairKde::create(a, b, log, log).value();
  core::Rng draws(6);
  std::vector<double> x, y;
  for (int i = 0; i < n; ++i) {
    const auto [first, second] = pair.sample(draws);
    x.push_back(first);
    y.push_back(second);
  }
  const double rho = *spearman(a, b), drawn = *spearman(x, y);
  EXPECT_NEAR(drawn, rho, 0.06);
  EXPECT_GT(rho, 0.5);
  for (auto* list : {&a, &b, &x, &y}) std::sort(list->begin(), list->end());
  EXPECT_LT(ks_two_sample(a, x).distance, 0.05);
  EXPECT_LT(ks_two_sample(b, y).distance, 0.05);
  EXPECT_FALSE(PairKde::create({1, 2}, {1}, {}, {}).ok());
}

TEST(GammaCdf, ClosedForms) {
  for (const double x : {1e-6, 0.1, 1.0, 2.5, 10.0, 50.0}) {
    EXPECT_NEAR(gamma_cdf(x, 1), 1 - std::exp(-x), 1e-13) << x;
    EXPECT_NEAR(gamma_cdf(x, 0.5), std::erf(std::sqrt(x)), 1e-13) << x;
    EXPECT_NEAR(gamma_cdf(x, 3), 1 - std::exp(-x) * (1 + x + x * x / 2), 1e-13) << x;
  }
  EXPECT_EQ(gamma_cdf(0, 2), 0);
  EXPECT_EQ(gamma_cdf(INFINITY, 2), 1);
  // Large shapes: near a normal, by Wilson and Hilferty's cube root.
  const double k = 10'000, x = 10'100;
  const double z = (std::cbrt(x / k) - (1 - 1 / (9 * k))) * std::sqrt(9 * k);
  EXPECT_NEAR(gamma_cdf(x, k), core::normal_cdf(z), 1e-5);
}

TEST(GammaCdf, DrawsOfTheRngFollowIt) {
  for (const double shape : {0.3, 1.0, 4.0}) {
    core::Rng rng(11);
    std::vector<double> drawn(20'000);
    for (double& x : drawn) x = rng.gamma(shape);
    std::sort(drawn.begin(), drawn.end());
    EXPECT_GT(ks_one_sample(drawn, [&](double x) { return gamma_cdf(x, shape); }).p_value, 1e-3);
  }
}

TEST(Spearman, HandCounted) {
  EXPECT_EQ(spearman(std::vector<double>{1, 2, 3}, std::vector<double>{10, 100, 1000}), 1.0);
  EXPECT_EQ(spearman(std::vector<double>{1, 2, 3}, std::vector<double>{3, 2, 1}), -1.0);
  // Ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3: cov 4.5, variances 4.5 and 5.
  EXPECT_NEAR(*spearman(std::vector<double>{1, 2, 2, 3}, std::vector<double>{1, 2, 3, 4}),
              4.5 / std::sqrt(4.5 * 5), 1e-15);
  EXPECT_FALSE(spearman(std::vector<double>{1, 1}, std::vector<double>{1, 2}).has_value());
  EXPECT_FALSE(spearman(std::vector<double>{1}, std::vector<double>{1}).has_value());
  EXPECT_NEAR(*spearman_difference_p(0.5, 100, 0.5, 100), 1, 1e-12);
  EXPECT_LT(*spearman_difference_p(0.6, 5000, 0.5, 5000), 1e-6);
  EXPECT_FALSE(spearman_difference_p(0.6, 5, 0.5, 5000).has_value());
}

}  // namespace
}  // namespace prony::stats
