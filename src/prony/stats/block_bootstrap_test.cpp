#include "prony/stats/block_bootstrap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "prony/core/math.hpp"
#include "prony/core/rng.hpp"
#include "prony/stats/holm.hpp"

namespace prony::stats {
namespace {

std::vector<BlockedValue> sorted_by_value(std::vector<BlockedValue> sample) {
  std::stable_sort(sample.begin(), sample.end(),
                   [](const auto& a, const auto& b) { return a.value < b.value; });
  return sample;
}

// Exponential, with a first-order correlation of its logarithm's normal score.
std::vector<BlockedValue> series(core::Rng& rng, int n, double correlation, double scale = 1) {
  std::vector<BlockedValue> out;
  double normal = rng.normal();
  const int blocks = std::min(n, kBlocksMax);
  for (int i = 0; i < n; ++i) {
    const double fresh = std::sqrt(1 - correlation * correlation);
    if (i > 0) normal = correlation * normal + fresh * rng.normal();
    const double uniform = std::clamp(core::normal_cdf(normal), 1e-12, 1 - 1e-12);
    out.push_back({-scale * std::log(1 - uniform), static_cast<int32_t>(i * blocks / n)});
  }
  return out;
}

TEST(BlockDraws, DrawAsManyBlocksAsThereAre) {
  const BlockDraws draws(13, 200, 7, 1), same(13, 200, 7, 1), other(13, 200, 7, 2);
  bool differs = false;
  for (int i = 0; i < 200; ++i) {
    int sum = 0;
    for (const auto weight : draws.weights(i)) sum += weight;
    EXPECT_EQ(sum, 13);
    EXPECT_TRUE(std::ranges::equal(draws.weights(i), same.weights(i)));
    differs = differs || !std::ranges::equal(draws.weights(i), other.weights(i));
  }
  EXPECT_TRUE(differs);
}

// The redraw written out value by value is the reference.
double brute_quantile(const std::vector<BlockedValue>& sample, double q,
                      std::span<const uint8_t> weights) {
  std::vector<double> all;
  for (const auto& one : sample) {
    all.insert(all.end(), weights[static_cast<size_t>(one.block)], one.value);
  }
  std::sort(all.begin(), all.end());
  return all.empty() ? std::nan("") : quantile_linear(all, q);
}

TEST(QuantileReplicates, AreThoseOfTheWrittenOutRedraws) {
  core::Rng rng(3);
  for (int round = 0; round < 40; ++round) {
    const int n = 1 + static_cast<int>(rng.below(500));
    const int blocks = 1 + static_cast<int>(rng.below(64));
    std::vector<BlockedValue> sample;
    for (int i = 0; i < n; ++i) {  // ties, and blocks without a value
      sample.push_back({static_cast<double>(rng.below(50)),
                        static_cast<int32_t>(rng.below(static_cast<uint64_t>(blocks)))});
    }
    const BlockDraws draws(blocks, 50, 11, static_cast<uint64_t>(round));
    for (const double q : {0.0, 0.5, 0.9, 0.99, 1.0}) {
      const auto found = quantile_replicates(sorted_by_value(sample), q, draws);
      for (int i = 0; i < draws.replicates(); ++i) {
        const double expected = brute_quantile(sample, q, draws.weights(i));
        const double got = found[static_cast<size_t>(i)];
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(got));
        } else {
          EXPECT_NEAR(got, expected, 1e-12) << n << ' ' << blocks << ' ' << q;
        }
      }
    }
  }
}

TEST(QuantileReplicates, OfManyValuesAreNearlyThose) {
  core::Rng rng(4);
  const auto sample = series(rng, 20'000, 0.9);
  const BlockDraws draws(kBlocksMax, 100, 5, 0);
  for (const double q : {0.5, 0.9, 0.99}) {
    const auto found = quantile_replicates(sorted_by_value(sample), q, draws);
    for (int i = 0; i < draws.replicates(); ++i) {
      const double expected = brute_quantile(sample, q, draws.weights(i));
      // The redraws themselves differ by some 10 %.
      EXPECT_NEAR(found[static_cast<size_t>(i)] / expected, 1, 5e-3) << q;
    }
  }
}

TEST(RatioReplicates, AreSumsOverSums) {
  const std::vector<RatioBatch> batches = {{1, 2}, {3, 4}, {5, 0}};
  const BlockDraws draws(3, 20, 1, 0);
  const auto found = ratio_replicates(batches, draws);
  for (int i = 0; i < 20; ++i) {
    const auto w = draws.weights(i);
    const double below = w[0] * 2.0 + w[1] * 4.0;
    const double got = found[static_cast<size_t>(i)];
    if (below == 0) {
      EXPECT_TRUE(std::isnan(got));
    } else {
      EXPECT_DOUBLE_EQ(got, (w[0] * 1.0 + w[1] * 3.0 + w[2] * 5.0) / below);
    }
  }
}

TEST(Joining, NeighboursThatCorrelateAreJoined) {
  std::vector<RatioBatch> slow;
  for (int i = 0; i < 64; ++i) slow.push_back({std::sin(i / 10.0) + 2, 1});
  EXPECT_EQ(joining_level(slow), 3);  // down to eight
  EXPECT_EQ(joined(slow, 3).size(), 8u);
  core::Rng rng(1);
  std::vector<RatioBatch> quick;
  for (int i = 0; i < 50; ++i) quick.push_back({rng.uniform(), 1});
  EXPECT_EQ(joining_level(quick), 0);
  const auto pairs = joined(std::vector<RatioBatch>(5, RatioBatch{1, 2}), 1);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[1].denominator, 4);
  EXPECT_EQ(pairs[2].denominator, 2);
}

TEST(ReplicateLaw, KnowsNothingOfFewBlocksOrManyHoles) {
  const std::vector<double> some(100, 1.0), holes(100, std::nan(""));
  EXPECT_FALSE(ReplicateLaw(some, 1, kBlocksMin - 1).known());
  EXPECT_FALSE(ReplicateLaw(holes, 1, 64).known());
  EXPECT_FALSE(ReplicateLaw(some, std::nan(""), 64).known());
  const ReplicateLaw constant(std::vector<double>(100, 0.0), 0, 64);
  ASSERT_TRUE(constant.known());
  EXPECT_EQ(constant.interval(0.95), (Interval{0, 0}));
  EXPECT_DOUBLE_EQ(constant.p_value(), 1);
}

TEST(ReplicateLaw, NormalReplicatesGiveStudentsT) {
  std::vector<double> replicates;
  for (int i = 1; i < 10'000; ++i) replicates.push_back(3 + core::inverse_normal_cdf(i / 1e4));
  const ReplicateLaw law(replicates, 3, 9);
  // t(0.975, 8) = 2.306, expanded by sqrt(9 / 8).
  EXPECT_NEAR(law.interval(0.95).lower, 3 - 2.306 * std::sqrt(9.0 / 8), 0.01);
  EXPECT_NEAR(law.interval(0.95).upper, 3 + 2.306 * std::sqrt(9.0 / 8), 0.01);
  EXPECT_NEAR(law.interval(0.9999).upper, 3 + 7.120 * std::sqrt(9.0 / 8), 0.05);
  // P(|T| > 3 sqrt(8 / 9)) with eight degrees of freedom.
  EXPECT_NEAR(law.p_value(), 0.0223, 0.002);
}

// Share of 95 % intervals of the difference of two runs of one law that miss 0.
double miss_rate(double q, int n, double correlation, bool paired, int rounds) {
  int missed = 0, known = 0;
  for (int round = 0; round < rounds; ++round) {
    core::Rng rng(17, static_cast<uint64_t>(round));
    const auto a = series(rng, n, correlation);
    auto b = series(rng, n, correlation);
    if (paired) {  // the same work, and noise of its own
      for (int i = 0; i < n; ++i) {
        b[static_cast<size_t>(i)].value =
            a[static_cast<size_t>(i)].value * (0.9 + 0.2 * rng.uniform());
      }
    }
    std::vector<double> all_a;
    for (const auto& one : a) all_a.push_back(one.value);
    std::sort(all_a.begin(), all_a.end());
    const double cut = quantile_linear(all_a, q);
    std::vector<RatioBatch> below(kBlocksMax);
    for (const auto& one : a) {
      below[static_cast<size_t>(one.block)].numerator += one.value <= cut;
      below[static_cast<size_t>(one.block)].denominator += 1;
    }
    const int level = joining_level(below);
    const int blocks = ((kBlocksMax - 1) >> level) + 1;
    const BlockDraws of_a(blocks, 399, 1, 0), of_b(blocks, 399, 1, paired ? 0 : 1);
    const auto coarse = [&](std::vector<BlockedValue> sample) {
      for (auto& one : sample) one.block >>= level;
      return sorted_by_value(std::move(sample));
    };
    const auto replicates_a = quantile_replicates(coarse(a), q, of_a);
    const auto replicates_b = quantile_replicates(coarse(b), q, of_b);
    std::vector<double> differences;
    for (size_t i = 0; i < replicates_a.size(); ++i) {
      differences.push_back(std::log(replicates_b[i] / replicates_a[i]));
    }
    const ReplicateLaw law(std::move(differences), 0, blocks);
    if (!law.known()) continue;
    ++known;
    const auto interval = law.interval(0.95);
    missed += !(interval.lower <= 0 && 0 <= interval.upper);
  }
  EXPECT_EQ(known, rounds);
  return static_cast<double>(missed) / known;
}

// 5 % asked; 400 rounds have a standard error of 1.1 %.
TEST(Coverage, IndependentRequests) {
  EXPECT_LE(miss_rate(0.5, 400, 0, false, 400), 0.08);
  EXPECT_LE(miss_rate(0.9, 400, 0, false, 400), 0.08);
  EXPECT_LE(miss_rate(0.99, 2000, 0, false, 300), 0.08);
}
TEST(Coverage, RequestsThatResembleTheirNeighbours) {
  EXPECT_LE(miss_rate(0.5, 2000, 0.8, false, 300), 0.09);
  EXPECT_LE(miss_rate(0.9, 2000, 0.8, false, 300), 0.09);
}
TEST(Coverage, TheSameRequestsTwice) {
  EXPECT_LE(miss_rate(0.5, 400, 0, true, 400), 0.08);
  EXPECT_LE(miss_rate(0.9, 400, 0.5, true, 400), 0.08);
}

TEST(Holm, StepsDown) {
  const std::vector<double> p = {0.01, 0.04, 0.03, 0.005};
  const std::vector<double> expected = {0.03, 0.06, 0.06, 0.02};
  const auto found = holm_adjusted(p);
  for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12);
  EXPECT_EQ(holm_adjusted(std::vector<double>{0.9, 0.8}), (std::vector<double>{1, 1}));
  EXPECT_TRUE(holm_adjusted({}).empty());
}

}  // namespace
}  // namespace prony::stats
