// MessageFeed: every message once, ahead of time where the budget allows, never waited for.
#include "prony/load/message_feed.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include <set>

namespace prony::load {
namespace {

std::string message_of(int64_t index) {
  return std::string(100, 'a') + std::to_string(index);
}

TEST(MessageFeed, AllAheadIfTheyFit) {
  MessageFeed feed(1000, message_of, {.budget_bytes = 1 << 20});
  ASSERT_TRUE(feed.wait_ready(10 * core::kNanosPerSecond));
  for (int64_t i = 999; i >= 0; --i) {  // any order
    bool late = true;
    EXPECT_EQ(feed.take(i, late), message_of(i));
    EXPECT_FALSE(late);
  }
}

TEST(MessageFeed, StaysWithinTheBudgetAndAhead) {
  std::atomic<int64_t> made{0};
  const auto make = [&made](int64_t index) {
    ++made;
    return message_of(index);
  };
  MessageFeed feed(2000, make, {.budget_bytes = 5000});  // about fifty messages
  ASSERT_TRUE(feed.wait_ready(10 * core::kNanosPerSecond));
  EXPECT_LE(made, 52);
  for (int64_t i = 0; i < 2000; ++i) {
    bool late = false;
    EXPECT_EQ(feed.take(i, late), message_of(i));
    EXPECT_LE(made, i + 110);  // never far ahead
  }
}

TEST(MessageFeed, ALateOneIsMadeOnTheSpot) {
  // The maker is slow, the taker begins at the end: nobody waits for anybody.
  const auto slow = [](int64_t index) {
    core::MonotonicClock().sleep_until(core::monotonic_ns() + core::kNanosPerMilli);
    return message_of(index);
  };
  MessageFeed feed(40, slow, {});
  int late_count = 0;
  for (int64_t i = 39; i >= 0; --i) {
    bool late = false;
    EXPECT_EQ(feed.take(i, late), message_of(i));
    late_count += late ? 1 : 0;
  }
  EXPECT_GT(late_count, 0);
}

TEST(MessageFeed, EndsWhileThereIsWork) {
  MessageFeed feed(1'000'000, message_of, {.budget_bytes = 1000});
  bool late = false;
  (void)feed.take(0, late);
}  // the destructor does not wait for the rest

TEST(MessageFeed, ADroppedMessageMakesRoomForTheNext) {
  constexpr int64_t kCount = 10;
  std::atomic<int64_t> made{0};
  const auto counted = [&made](int64_t index) {
    ++made;
    return message_of(index);
  };
  MessageFeed feed(kCount, counted, {.budget_bytes = 1});  // one at a time
  const auto give_up = core::monotonic_ns() + 20 * core::kNanosPerSecond;
  for (int64_t i = 0; i < kCount; ++i) {
    while (made <= i && core::monotonic_ns() < give_up) {
      core::MonotonicClock().sleep_until(core::monotonic_ns() + core::kNanosPerMilli);
    }
    ASSERT_EQ(made, i + 1);
    feed.drop(i);
  }
}

TEST(MessageFeed, NothingToMake) {
  MessageFeed feed(0, message_of, {});
  EXPECT_TRUE(feed.wait_ready(10 * core::kNanosPerSecond));
}

}  // namespace
}  // namespace prony::load
