// Tests of block keys: what they depend on, incremental growth, known answers.
#include "prony/sched/block_key.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "prony/sched/step_plan.hpp"

namespace prony::sched {
namespace {

std::vector<int32_t> tokens_from(int32_t first, int32_t count) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

TEST(BlockKey, DependsOnSaltParentAndEveryToken) {
  std::set<std::pair<uint64_t, uint64_t>> seen;
  const auto fresh = [&](const BlockKey& key) { return seen.insert({key.low, key.high}).second; };
  const std::vector<int32_t> tokens = tokens_from(1, kBlockTokens);
  EXPECT_TRUE(fresh(root_key(0)));
  EXPECT_TRUE(fresh(root_key(1)));
  EXPECT_TRUE(fresh(chain_key(root_key(0), tokens)));
  EXPECT_TRUE(fresh(chain_key(root_key(1), tokens)));
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::vector<int32_t> changed = tokens;
    changed[i] ^= 1 << 30;
    EXPECT_TRUE(fresh(chain_key(root_key(0), changed))) << "token " << i;
  }
  // The second block of equal tokens after different first blocks.
  EXPECT_TRUE(fresh(chain_key(chain_key(root_key(0), tokens), tokens)));
  EXPECT_TRUE(fresh(chain_key(chain_key(root_key(1), tokens), tokens)));
}

TEST(BlockKey, GrowsBlockByBlock) {
  const std::vector<int32_t> tokens = tokens_from(-5, 5 * kBlockTokens + 3);
  std::vector<BlockKey> whole;
  extend_keys(7, tokens, whole);
  ASSERT_EQ(whole.size(), 5U);
  std::vector<BlockKey> grown;
  for (size_t length = 0; length <= tokens.size(); ++length) {
    extend_keys(7, std::span(tokens).first(length), grown);
    ASSERT_EQ(grown.size(), length / kBlockTokens);
  }
  EXPECT_EQ(grown, whole);
  // A common prefix gives common keys, up to the block that differs.
  std::vector<int32_t> other = tokens;
  other[2 * kBlockTokens] += 1;
  std::vector<BlockKey> others;
  extend_keys(7, other, others);
  EXPECT_TRUE(std::equal(whole.begin(), whole.begin() + 2, others.begin()));
  for (size_t block = 2; block < 5; ++block) EXPECT_NE(whole[block], others[block]);
}

// Keys are written nowhere, but two versions of a server that share a cache must agree on them.
TEST(BlockKey, KnownAnswers) {
  EXPECT_EQ(root_key(0), (BlockKey{.low = 0x45c3b49d035665b2, .high = 0x2c0a8a99dc147d54}));
  EXPECT_EQ(chain_key(root_key(0), tokens_from(0, kBlockTokens)),
            (BlockKey{.low = 0xef0c1cbef908700c, .high = 0xa41547d561959a87}));
}

TEST(BlockKeyDeathTest, WantsAFullBlock) {
  EXPECT_DEATH(chain_key(root_key(0), tokens_from(0, kBlockTokens - 1)), "full block");
}

}  // namespace
}  // namespace prony::sched
