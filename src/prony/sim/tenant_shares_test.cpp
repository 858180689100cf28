// Shares of tenants by hand and their laws over random histories; slices; fairness.
#include "prony/sim/tenant_shares.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "prony/core/rng.hpp"

namespace prony::sim {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;

TenantShares two(int32_t a, int32_t b, TenantSharesOptions options = {}) {
  return TenantShares::create({{"a", a, 1000, 1}, {"b", b, 1000, 1}}, options).value();
}

TEST(TenantShares, GuaranteesComeFirstAndWhatIsIdleIsLent) {
  TenantShares shares = two(600, 200);
  shares.set_demand(1, 1000, 0);
  EXPECT_NEAR(shares.share(1), 1000, 1e-9);  // alone: all of it
  shares.set_demand(0, 1000, 0);
  EXPECT_NEAR(shares.share(0), 700, 1e-9);  // 600 and 200, and half of the 200 that are left
  EXPECT_NEAR(shares.share(1), 300, 1e-9);
  shares.set_demand(0, 300, 0);
  EXPECT_NEAR(shares.share(0), 300, 1e-9);
  EXPECT_NEAR(shares.share(1), 700, 1e-9);
}

TEST(TenantShares, PriorityWeighsAndBurstBounds) {
  auto shares =
      TenantShares::create({{"a", 100, 1000, 3}, {"b", 100, 1000, 1}, {"c", 0, 50, 1000}});
  ASSERT_TRUE(shares.ok());
  for (size_t t = 0; t < 3; ++t) shares->set_demand(t, 1000, 0);
  EXPECT_NEAR(shares->share(2), 50, 1e-9);
  EXPECT_NEAR(shares->share(0), 100 + 750 * 0.75, 1e-9);
  EXPECT_NEAR(shares->share(1), 100 + 750 * 0.25, 1e-9);
}

// A tenant that has lived above its guarantee weighs less than one that was away; when the debt has
// faded they are equal again.
TEST(TenantShares, DebtDecaysTheWeightAndFades) {
  TenantShares shares = two(0, 0, {.half_life_ns = 10 * kSecond, .debt_half = 5});
  shares.set_demand(0, 1000, 0);
  shares.advance_to(10 * kSecond);
  // Growing by 1 a second and halved every 10: 10/ln 2 (1 - 1/2).
  EXPECT_NEAR(shares.debt_s(0), 10 / 0.6931471805599453 * 0.5, 1e-9);
  shares.set_demand(1, 1000, 10 * kSecond);
  EXPECT_LT(shares.share(0), 300);
  EXPECT_NEAR(shares.share(0) + shares.share(1), 1000, 1e-9);
  EXPECT_NEAR(shares.used_s(0), 10, 1e-9);
  for (int64_t s = 11; s < 400; ++s) shares.advance_to(s * kSecond);
  EXPECT_NEAR(shares.share(0), 500, 1);
  shares.set_demand(0, 0, 400 * kSecond);
  shares.set_demand(1, 0, 400 * kSecond);
  shares.advance_to(700 * kSecond);
  EXPECT_LT(shares.debt_s(0), 1e-6);
}

// Whatever the others do: nobody has less than min(demand, guarantee), nobody more than demand or
// burst, the whole is never exceeded, and nothing is idle while somebody may use it.
TEST(TenantShares, LawsHoldOverRandomHistories) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    core::Rng rng(seed);
    std::vector<TenantPolicy> policies;
    int32_t left = kWholeShare;
    const auto n = static_cast<size_t>(1 + rng.below(8));
    for (size_t i = 0; i < n; ++i) {
      TenantPolicy policy{"t" + std::to_string(i), 0, 0, 1};
      policy.guaranteed = static_cast<int32_t>(rng.below(static_cast<uint64_t>(left) / 2 + 1));
      left -= policy.guaranteed;
      policy.burst =
          policy.guaranteed +
          static_cast<int32_t>(rng.below(static_cast<uint64_t>(1001 - policy.guaranteed)));
      policy.priority = 1 + static_cast<int32_t>(rng.below(9));
      policies.push_back(policy);
    }
    auto shares = TenantShares::create(policies, {.half_life_ns = 7 * kSecond, .debt_half = 2});
    ASSERT_TRUE(shares.ok()) << shares.error().message;
    std::vector<int32_t> demand(n, 0);
    int64_t now = 0;
    double whole_seconds = 0;
    for (int event = 0; event < 200; ++event) {
      const auto t = static_cast<size_t>(rng.below(n));
      demand[t] = rng.below(3) == 0 ? 0 : static_cast<int32_t>(rng.below(1001));
      const auto gap = static_cast<int64_t>(rng.below(5 * kSecond));
      for (size_t i = 0; i < n; ++i) {
        whole_seconds += shares->share(i) / kWholeShare * static_cast<double>(gap) * 1e-9;
      }
      now += gap;
      shares->set_demand(t, demand[t], now);
      double sum = 0;
      bool hungry = false;
      for (size_t i = 0; i < n; ++i) {
        const double share = shares->share(i);
        const int32_t bound = std::min(demand[i], policies[i].burst);
        EXPECT_GE(share, std::min(demand[i], policies[i].guaranteed) - 1e-9);
        EXPECT_LE(share, bound + 1e-9);
        EXPECT_GE(shares->debt_s(i), 0);
        hungry = hungry || share < bound - 1e-6;
        sum += share;
      }
      EXPECT_LE(sum, kWholeShare + 1e-6);
      if (hungry) {
        EXPECT_NEAR(sum, kWholeShare, 1e-6) << "seed " << seed;
      }
    }
    double used = 0;
    for (size_t i = 0; i < n; ++i) used += shares->used_s(i);
    EXPECT_NEAR(used, whole_seconds, 1e-6);
  }
}

// One that wants everything all the time does not take the guarantee of one that comes and goes.
TEST(TenantShares, ANoisyNeighbourLeavesTheGuaranteeAlone) {
  TenantShares shares = two(300, 300);
  shares.set_demand(1, 1000, 0);
  for (int64_t s = 1; s < 100; ++s) {
    shares.set_demand(0, s % 2 == 0 ? 0 : 250, s * kSecond);
    EXPECT_NEAR(shares.share(0), s % 2 == 0 ? 0 : 250, 1e-9);
  }
}

TEST(TenantShares, RefusesPromisesItCannotKeep) {
  const auto message = [](std::vector<TenantPolicy> tenants) {
    return TenantShares::create(std::move(tenants)).error().message;
  };
  EXPECT_THAT(message({}), HasSubstr("found none"));
  EXPECT_THAT(message({{"a", 600, 1000, 1}, {"b", 500, 1000, 1}}),
              HasSubstr("tenant b: guarantees up to it sum to 1100, expected at most 1000"));
  EXPECT_THAT(message({{"a", 600, 500, 1}}), HasSubstr("found guaranteed 600 and burst 500"));
  EXPECT_THAT(message({{"a", 0, 500, 0}}), HasSubstr("found priority 0, expected 1 to 1000"));
  EXPECT_THAT(message({{"a", 0, 500, 1}, {"a", 0, 500, 1}}), HasSubstr("tenant a: found twice"));
}

TEST(Fairness, JainsIndexIsOneForEqualsAndOneOverNForOne) {
  EXPECT_NEAR(jain_index(std::vector<double>{3, 3, 3}).value(), 1, 1e-12);
  EXPECT_NEAR(jain_index(std::vector<double>{5, 0, 0, 0}).value(), 0.25, 1e-12);
  EXPECT_NEAR(jain_index(std::vector<double>{1, 2, 3}).value(), 36.0 / (3 * 14), 1e-12);
  EXPECT_FALSE(jain_index(std::vector<double>{0, 0}).has_value());
  EXPECT_FALSE(jain_index({}).has_value());
}

TEST(SliceBook, HandsOutSeventhsOfComputeAndEighthsOfMemory) {
  catalog::HardwareSpec hardware;
  hardware.id = "h100-sxm";
  hardware.slices = {{"1g.10gb", 0.142857, 0.125},
                     {"1g.20gb", 0.142857, 0.25},
                     {"3g.40gb", 0.428571, 0.5},
                     {"4g.40gb", 0.571429, 0.5},
                     {"7g.80gb", 1, 1}};
  SliceBook book(hardware);
  const auto three = book.take("3g.40gb");
  const auto four = book.take("4g.40gb");
  ASSERT_TRUE(three.ok() && four.ok());
  EXPECT_EQ(book.compute_left(), 0);
  EXPECT_EQ(book.memory_left(), 0);
  const auto none = book.take("1g.10gb");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kFailed);
  EXPECT_THAT(none.error().message, HasSubstr("0 and 0 are left"));
  book.give_back(*four);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(book.take("1g.20gb").ok()) << i;
  EXPECT_FALSE(book.take("1g.10gb").ok());  // compute is left, memory is not
  EXPECT_EQ(book.compute_left(), 2);
  EXPECT_THAT(book.take("9g.1gb").error().message,
              HasSubstr("found slice 9g.1gb, expected one of"));
  catalog::HardwareSpec whole;
  whole.id = "l4";
  EXPECT_THAT(SliceBook(whole).take("1g.10gb").error().message, HasSubstr("cannot be sliced"));
  SliceBook sevenths(hardware);
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(sevenths.take("1g.10gb").ok()) << i;
  EXPECT_FALSE(sevenths.take("1g.10gb").ok());
}

}  // namespace
}  // namespace prony::sim
