// Tests of the waiting queue against plain reference orders.
#include "prony/sched/waiting_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "prony/core/rng.hpp"

namespace prony::sched {
namespace {

TEST(WaitingQueue, FirstComeFirstServedWithAFrontDoor) {
  WaitingQueue queue(false);
  for (Handle handle : {5U, 1U, 3U}) queue.push(handle, {.priority = -static_cast<int>(handle)});
  queue.push_front(9, {});
  queue.push_front(8, {});
  queue.push(0, {});
  for (Handle expected : {8U, 9U, 5U, 1U, 3U, 0U}) {
    ASSERT_EQ(queue.front(), expected);
    queue.pop();
  }
  EXPECT_TRUE(queue.empty());
}

TEST(WaitingQueue, RankIsPriorityThenArrivalThenOrder) {
  WaitingQueue queue(true);
  queue.push(0, {.priority = 1, .arrival = 5, .sequence = 0});
  queue.push(1, {.priority = 1, .arrival = 4, .sequence = 1});
  queue.push(2, {.priority = -1, .arrival = 9, .sequence = 2});
  queue.push(3, {.priority = 1, .arrival = 4, .sequence = 3});
  queue.push_front(4, {.priority = 2, .arrival = 0, .sequence = 4});  // the rank decides
  for (Handle expected : {2U, 1U, 3U, 0U, 4U}) {
    ASSERT_EQ(queue.front(), expected);
    queue.pop();
  }
}

TEST(WaitingQueue, LastWhereFindsTheLastInOrder) {
  WaitingQueue queue(false);
  for (Handle handle = 0; handle < 10; ++handle) queue.push(handle, {});
  Handle found = 99;
  EXPECT_TRUE(queue.last_where([](Handle handle) { return handle % 4 == 1; }, found));
  EXPECT_EQ(found, 9U);
  queue.remove(9);
  EXPECT_TRUE(queue.last_where([](Handle handle) { return handle % 4 == 1; }, found));
  EXPECT_EQ(found, 5U);
  EXPECT_FALSE(queue.last_where([](Handle) { return false; }, found));
}

TEST(WaitingQueueDeathTest, RefusesDoubleEntryAndStrangers) {
  WaitingQueue queue(false);
  queue.push(2, {});
  EXPECT_DEATH(queue.push(2, {}), "waits already");
  EXPECT_DEATH(queue.remove(1), "does not wait");
}

TEST(WaitingQueue, RandomFcfsAgainstADeque) {
  core::Rng rng(1);
  WaitingQueue queue(false);
  std::deque<Handle> reference;
  for (int i = 0; i < 100'000; ++i) {
    const Handle handle = static_cast<Handle>(rng.below(64));
    const auto at = std::find(reference.begin(), reference.end(), handle);
    ASSERT_EQ(queue.contains(handle), at != reference.end());
    if (at != reference.end()) {
      reference.erase(at);
      queue.remove(handle);
    } else if (rng.below(2) == 0) {
      reference.push_back(handle);
      queue.push(handle, {});
    } else {
      reference.push_front(handle);
      queue.push_front(handle, {});
    }
    ASSERT_EQ(queue.size(), reference.size());
    if (!reference.empty()) {
      ASSERT_EQ(queue.front(), reference.front());
    }
    if (i % 64 == 0) {
      ASSERT_TRUE(queue.consistent());
    }
  }
}

TEST(WaitingQueue, RandomRankAgainstAMap) {
  core::Rng rng(2);
  WaitingQueue queue(true);
  std::map<WaitingQueue::Rank, Handle> reference;
  std::map<Handle, WaitingQueue::Rank> ranks;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const Handle handle = static_cast<Handle>(rng.below(64));
    if (ranks.contains(handle)) {
      reference.erase(ranks[handle]);
      ranks.erase(handle);
      queue.remove(handle);
    } else {
      const WaitingQueue::Rank rank = {.priority = static_cast<int64_t>(rng.below(3)),
                                       .arrival = static_cast<int64_t>(rng.below(3)),
                                       .sequence = i};
      reference[rank] = handle;
      ranks[handle] = rank;
      queue.push(handle, rank);
    }
    if (!reference.empty()) {
      ASSERT_EQ(queue.front(), reference.begin()->second);
    }
    if (i % 64 == 0) {
      ASSERT_TRUE(queue.consistent());
    }
  }
}

}  // namespace
}  // namespace prony::sched
