// BlockPool: who owns which KV block, and which content can be found again. Blocks are counted
// references; a block nobody holds lies in a queue in the order it was given back and keeps its
// content, findable by key, until it is taken for something else (least recently used first).
// Nothing is allocated after construction.
// Thread safety: none.
// Source: vLLM V1's block pool and free queue; hash table with chains threaded through the blocks.
#pragma once
#include <cstdint>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/sched/block_key.hpp"

namespace prony::sched {

class BlockPool {
 public:
  static constexpr int32_t kNone = -1;

  /// Requires block_count >= 1 (checked).
  explicit BlockPool(int32_t block_count);

  int32_t block_count() const noexcept { return block_count_; }
  int32_t free_count() const noexcept { return free_count_; }
  int32_t keyed_count() const noexcept { return keyed_count_; }
  int64_t evictions() const noexcept { return evictions_; }

  /// Takes the least recently freed block; its old content is forgotten. Requires free_count() > 0.
  int32_t allocate();
  /// One more holder of `block`, which may be free (then it leaves the queue).
  void share(int32_t block);
  /// One holder less; without holders the block goes to the young end of the queue.
  void release(int32_t block);

  /// Makes the content of a held block findable. False, and nothing changes, if the block or the
  /// key is known already: the first block with a content stays the one that is found.
  bool publish(int32_t block, const BlockKey& key);
  /// Block with this content, or kNone.
  int32_t find(const BlockKey& key) const noexcept;

  int32_t references(int32_t block) const { return at(block).references; }
  bool keyed(int32_t block) const { return at(block).hash_next != kNotKeyed; }

  /// Audits queue, hash table and counters against each other. Error: kFailed, what is wrong.
  Result<void> check_integrity() const;

 private:
  static constexpr int32_t kNotKeyed = -2;
  struct Block {
    BlockKey key;
    int32_t references = 0;
    int32_t previous = kNone;  // free queue; entry block_count is its sentinel
    int32_t next = kNone;
    int32_t hash_next = kNotKeyed;  // next block of the same hash bucket, kNone at the end
  };

  const Block& at(int32_t block) const { return blocks_[static_cast<size_t>(block)]; }
  Block& at(int32_t block) { return blocks_[static_cast<size_t>(block)]; }
  size_t bucket(const BlockKey& key) const noexcept;
  void forget(int32_t block);
  void unlink(int32_t block);
  void push_young(int32_t block);

  int32_t block_count_;
  int32_t free_count_;
  int32_t keyed_count_ = 0;
  int64_t evictions_ = 0;
  std::vector<Block> blocks_;     // [block_count + 1]
  std::vector<int32_t> buckets_;  // [power of two >= block_count]: first block of the chain
};

}  // namespace prony::sched
