// Tests of the block pool: order of reuse, the cache, and a random run against a plain model.
#include "prony/sched/block_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "prony/core/rng.hpp"

namespace prony::sched {
namespace {

BlockKey key(uint64_t name) {
  return {.low = name, .high = 0};
}

TEST(BlockPool, ReusesTheLeastRecentlyFreed) {
  BlockPool pool(4);
  for (int32_t block = 0; block < 4; ++block) EXPECT_EQ(pool.allocate(), block);
  EXPECT_EQ(pool.free_count(), 0);
  for (int32_t block : {2, 0, 3}) pool.release(block);
  for (int32_t block : {2, 0, 3}) EXPECT_EQ(pool.allocate(), block);
}

TEST(BlockPool, FreeContentIsFoundUntilOverwritten) {
  BlockPool pool(2);
  const int32_t block = pool.allocate();
  EXPECT_EQ(pool.find(key(1)), BlockPool::kNone);
  EXPECT_TRUE(pool.publish(block, key(1)));
  pool.release(block);
  EXPECT_EQ(pool.find(key(1)), block);
  EXPECT_EQ(pool.free_count(), 2);
  pool.share(block);  // back from the queue
  EXPECT_EQ(pool.free_count(), 1);
  pool.share(block);
  EXPECT_EQ(pool.references(block), 2);
  pool.release(block);
  pool.release(block);
  EXPECT_EQ(pool.allocate(), 1);  // never used, older in the queue
  EXPECT_EQ(pool.evictions(), 0);
  EXPECT_EQ(pool.allocate(), block);
  EXPECT_EQ(pool.evictions(), 1);
  EXPECT_EQ(pool.find(key(1)), BlockPool::kNone);
  EXPECT_EQ(pool.keyed_count(), 0);
}

TEST(BlockPool, TheFirstBlockWithAContentIsFound) {
  BlockPool pool(2);
  EXPECT_TRUE(pool.publish(pool.allocate(), key(1)));
  EXPECT_FALSE(pool.publish(pool.allocate(), key(1)));
  EXPECT_FALSE(pool.publish(0, key(2)));  // it has a key already
  EXPECT_EQ(pool.find(key(1)), 0);
  EXPECT_FALSE(pool.keyed(1));
}

// Small numbers as keys, all in few buckets without mixing; and keys that differ in `high` only.
TEST(BlockPool, WeakKeysAreToldApart) {
  BlockPool pool(512);
  for (uint64_t i = 0; i < 256; ++i) {
    EXPECT_TRUE(pool.publish(pool.allocate(), {.low = i << 32, .high = 0}));
    EXPECT_TRUE(pool.publish(pool.allocate(), {.low = 0, .high = (i + 1) << 32}));
  }
  for (uint64_t i = 0; i < 256; ++i) {
    EXPECT_EQ(pool.find({.low = i << 32, .high = 0}), static_cast<int32_t>(2 * i));
    EXPECT_EQ(pool.find({.low = 0, .high = (i + 1) << 32}), static_cast<int32_t>(2 * i + 1));
  }
  EXPECT_TRUE(pool.check_integrity().ok());
}

TEST(BlockPoolDeathTest, MisuseIsABug) {
  BlockPool pool(1);
  EXPECT_DEATH(pool.release(0), "more often than taken");
  EXPECT_DEATH(pool.publish(0, key(1)), "only a held block");
  pool.allocate();
  EXPECT_DEATH(pool.allocate(), "no free block");
}

// The same operations on lists and maps, one per thing the pool promises.
class PoolModel {
 public:
  explicit PoolModel(int32_t count) : references_(static_cast<size_t>(count), 0) {
    for (int32_t block = 0; block < count; ++block) queue_.push_back(block);
  }
  int32_t allocate() {
    const int32_t block = queue_.front();
    queue_.pop_front();
    std::erase_if(content_, [&](const auto& entry) { return entry.second == block; });
    references_[static_cast<size_t>(block)] = 1;
    return block;
  }
  void share(int32_t block) {
    std::erase(queue_, block);
    ++references_[static_cast<size_t>(block)];
  }
  void release(int32_t block) {
    if (--references_[static_cast<size_t>(block)] == 0) queue_.push_back(block);
  }
  void publish(int32_t block, uint64_t name) {
    const bool has_one = std::any_of(content_.begin(), content_.end(),
                                     [&](const auto& entry) { return entry.second == block; });
    if (!has_one) content_.emplace(name, block);
  }
  int32_t find(uint64_t name) const {
    const auto found = content_.find(name);
    return found == content_.end() ? BlockPool::kNone : found->second;
  }
  size_t free_count() const { return queue_.size(); }
  int references(int32_t block) const { return references_[static_cast<size_t>(block)]; }

 private:
  std::deque<int32_t> queue_;
  std::vector<int> references_;
  std::map<uint64_t, int32_t> content_;
};

TEST(BlockPool, RandomRunEqualsTheModel) {
  constexpr int32_t kBlocks = 13;
  core::Rng rng(3);
  BlockPool pool(kBlocks);
  PoolModel model(kBlocks);
  for (int i = 0; i < 200'000; ++i) {
    const auto block = static_cast<int32_t>(rng.below(kBlocks));
    const uint64_t name = rng.below(20);
    switch (rng.below(4)) {
      case 0:
        if (model.free_count() > 0) {
          ASSERT_EQ(pool.allocate(), model.allocate());
        }
        break;
      case 1:
        if (model.references(block) > 0) {
          pool.release(block);
          model.release(block);
        }
        break;
      case 2:
        if (model.references(block) > 0) {
          pool.publish(block, key(name));
          model.publish(block, name);
        }
        break;
      default:
        ASSERT_EQ(pool.find(key(name)), model.find(name));
        if (model.find(name) != BlockPool::kNone) {
          pool.share(model.find(name));
          model.share(model.find(name));
        }
    }
    ASSERT_EQ(static_cast<size_t>(pool.free_count()), model.free_count());
    if (i % 16 == 0) {
      const Result<void> sound = pool.check_integrity();
      ASSERT_TRUE(sound.ok()) << sound.error().message;
    }
  }
}

}  // namespace
}  // namespace prony::sched
