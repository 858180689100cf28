// WakeSpin: it learns the lateness of a host, forgets it when the host changes, and never polls for
// more than its share of the time.
#include "prony/net/wake_spin.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "prony/core/rng.hpp"

namespace prony::net {
namespace {

using core::Nanos;

// `n` wakes, late by `low_ns` to `high_ns`, even; the share of them that the lead did not cover.
double uncovered(WakeSpin& spin, core::Rng& rng, int n, Nanos low_ns, Nanos high_ns) {
  int missed = 0;
  for (int i = 0; i < n; ++i) {
    const Nanos late =
        low_ns + static_cast<Nanos>(rng.uniform() * static_cast<double>(high_ns - low_ns));
    missed += late > spin.lead_ns();
    spin.woke(late);
  }
  return static_cast<double>(missed) / n;
}

TEST(WakeSpin, CoversNearlyEveryWakeOfAHost) {
  core::Rng rng(7, 0);
  for (const auto& [low, high] :
       {std::pair<Nanos, Nanos>{2'000, 8'000}, {50'000, 90'000}, {20'000, 300'000}}) {
    WakeSpin spin(-1);
    for (int i = 0; i < 500; ++i) spin.gap(20 * core::kNanosPerMilli);
    uncovered(spin, rng, 20'000, low, high);
    EXPECT_LT(uncovered(spin, rng, 20'000, low, high), 0.02) << low << " to " << high;
    EXPECT_LT(spin.lead_ns(), 2 * high + WakeSpin::kLeastNs) << low << " to " << high;
  }
}

TEST(WakeSpin, FollowsAHostThatChanges) {
  core::Rng rng(8, 0);
  WakeSpin spin(-1);
  for (int i = 0; i < 500; ++i) spin.gap(20 * core::kNanosPerMilli);
  uncovered(spin, rng, 5'000, 200'000, 210'000);
  EXPECT_GT(spin.lead_ns(), 210'000);
  uncovered(spin, rng, 10'000, 5'000, 6'000);
  EXPECT_LT(spin.lead_ns(), 15'000);
}

TEST(WakeSpin, OneStallDoesNotMakeItPollForEver) {
  WakeSpin spin(-1);
  for (int i = 0; i < 1000; ++i) spin.woke(5'000);
  const Nanos before = spin.lead_ns();
  spin.woke(30 * core::kNanosPerMilli);
  EXPECT_LE(spin.lead_ns(), before + 5'001);
}

TEST(WakeSpin, NeverTakesMoreThanItsShare) {
  WakeSpin spin(-1);
  for (int i = 0; i < 10'000; ++i) spin.woke(400'000);
  for (const Nanos gap : {Nanos{20'000}, Nanos{200'000}, Nanos{1'000'000}}) {
    for (int i = 0; i < 1000; ++i) spin.gap(gap);
    EXPECT_LE(static_cast<double>(spin.lead_ns()),
              WakeSpin::kShareMax * 1.01 * static_cast<double>(gap))
        << gap;
  }
  for (int i = 0; i < 1000; ++i) spin.gap(core::kNanosPerSecond);
  EXPECT_EQ(spin.lead_ns(), WakeSpin::kMostNs);
}

TEST(WakeSpin, AFixedLeadStays) {
  WakeSpin none(0), some(70'000);
  for (int i = 0; i < 1000; ++i) {
    none.woke(90'000);
    some.woke(200'000);
    some.gap(1'000);
  }
  EXPECT_EQ(none.lead_ns(), 0);
  EXPECT_EQ(some.lead_ns(), 70'000);
}

}  // namespace
}  // namespace prony::net
