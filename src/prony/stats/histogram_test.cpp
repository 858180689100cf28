// Tests of Histogram: the error bound on every kind of value, ranks against sorted samples,
// merging.
#include "prony/stats/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "prony/core/math.hpp"
#include "prony/core/rng.hpp"
#include "prony/stats/quantile.hpp"

namespace prony::stats {
namespace {

// A value of any magnitude up to `max`: the exponent is uniform, so small and large are both drawn.
uint64_t any_value(core::Rng& rng, uint64_t max) {
  const int bits =
      1 + static_cast<int>(rng.below(static_cast<uint64_t>(64 - std::countl_zero(max))));
  const uint64_t value = rng.next_u64() >> (64 - bits);
  return std::min(value, max);
}

TEST(Histogram, RelativeErrorIsBoundedAndNeverEarly) {
  for (int precision = 1; precision <= 14; ++precision) {
    const uint64_t max = precision % 2 == 0 ? UINT64_MAX : 3'600'000'000'000;
    const auto histogram =
        Histogram::create({.value_max = max, .precision_bits = precision}).value();
    core::Rng rng(7, static_cast<uint64_t>(precision));
    for (int i = 0; i < 20'000; ++i) {
      const uint64_t value = any_value(rng, max);
      const uint64_t reported = histogram.reported(value);
      ASSERT_GE(reported, value);
      // (reported - value) * 2^p <= value, without overflow.
      ASSERT_LE(reported - value, value >> precision) << value << " at " << precision;
    }
  }
}

TEST(Histogram, BucketsAreContiguous) {
  const auto histogram = Histogram::create({.value_max = 1 << 20, .precision_bits = 4}).value();
  for (uint64_t value = 0; value < 1 << 20; ++value) {
    const uint64_t here = histogram.reported(value), next = histogram.reported(value + 1);
    // Either the same bucket, or this value closes its bucket.
    ASSERT_TRUE(here == next || here == value) << value;
  }
}

TEST(Histogram, DefaultPrecisionIsATenthOfAPercent) {
  const auto histogram = Histogram::create({}).value();
  EXPECT_EQ(histogram.options().precision_bits, 10);
  core::Rng rng(11);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t value = any_value(rng, histogram.options().value_max);
    ASSERT_LE(static_cast<double>(histogram.reported(value) - value),
              0.001 * static_cast<double>(value));
  }
}

TEST(Histogram, RanksAgreeWithSortedSamples) {
  core::Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    auto histogram = Histogram::create({.value_max = 1'000'000, .precision_bits = 6}).value();
    std::vector<uint64_t> values(1 + rng.below(300));
    for (auto& value : values) {
      value = any_value(rng, 1'200'000);
      histogram.record(value);
    }
    std::sort(values.begin(), values.end());
    uint64_t overflow = 0;
    for (size_t rank = 1; rank <= values.size(); ++rank) {
      const uint64_t exact = values[rank - 1];
      const auto found = histogram.value_at_rank(rank);
      if (exact > 1'000'000) {
        ++overflow;
        ASSERT_FALSE(found.has_value());
      } else {
        ASSERT_EQ(*found, histogram.reported(exact));
        const auto below = std::count_if(values.begin(), values.end(), [&](uint64_t other) {
          return other <= 1'000'000 && histogram.reported(other) <= histogram.reported(exact);
        });
        ASSERT_EQ(histogram.count_at_or_below(exact), static_cast<uint64_t>(below));
      }
    }
    ASSERT_EQ(histogram.overflow(), overflow);
    ASSERT_EQ(histogram.count(), values.size());
  }
}

TEST(Histogram, QuantileIsNearestRank) {
  auto histogram = Histogram::create({.value_max = 1000, .precision_bits = 10}).value();
  EXPECT_FALSE(histogram.quantile(0.5).has_value());
  for (uint64_t value = 1; value <= 100; ++value) histogram.record(value);
  EXPECT_EQ(histogram.quantile(0.0), 1U);
  EXPECT_EQ(histogram.quantile(0.07), 7U);  // 0.07 * 100 rounds above 7 in binary
  EXPECT_EQ(histogram.quantile(0.5), 50U);
  EXPECT_EQ(histogram.quantile(0.501), 51U);
  EXPECT_EQ(histogram.quantile(1.0), 100U);
  histogram.record(1001);
  EXPECT_EQ(histogram.overflow(), 1U);
  EXPECT_FALSE(histogram.quantile(1.0).has_value());
  EXPECT_EQ(histogram.quantile(0.99), 100U);
}

TEST(Histogram, MergeEqualsRecordingEverythingInOne) {
  core::Rng rng(5);
  auto all = Histogram::create({}).value();
  auto parts = std::vector<Histogram>(3, Histogram::create({}).value());
  for (int i = 0; i < 30'000; ++i) {
    const uint64_t value = any_value(rng, 4'000'000'000'000), times = rng.below(3);
    all.record(value, times);
    parts[rng.below(3)].record(value, times);
  }
  auto merged = Histogram::create({}).value();
  for (const size_t i : {size_t{2}, size_t{0}, size_t{1}}) merged.merge(parts[i]);
  EXPECT_EQ(merged.count(), all.count());
  EXPECT_EQ(merged.overflow(), all.overflow());
  for (uint64_t rank = 1; rank <= all.count(); rank += 97) {
    ASSERT_EQ(merged.value_at_rank(rank), all.value_at_rank(rank));
  }
  merged.clear();
  EXPECT_EQ(merged.count(), 0U);
  EXPECT_FALSE(merged.quantile(0.5).has_value());
}

TEST(Histogram, RefusesBadOptionsAndBadMerges) {
  EXPECT_EQ(Histogram::create({.value_max = 10, .precision_bits = 15}).error().message,
            "histogram precision_bits: found 15, expected 1 to 14");
  EXPECT_FALSE(Histogram::create({.value_max = 0}).ok());
  auto a = Histogram::create({.value_max = 10}).value();
  const auto b = Histogram::create({.value_max = 11}).value();
  EXPECT_DEATH(a.merge(b), "different options");
}

}  // namespace
}  // namespace prony::stats
