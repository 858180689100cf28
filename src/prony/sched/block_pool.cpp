#include "prony/sched/block_pool.hpp"

#include <fmt/format.h>

#include <bit>

#include "prony/core/check.hpp"

namespace prony::sched {

BlockPool::BlockPool(int32_t block_count) : block_count_(block_count), free_count_(block_count) {
  PRONY_CHECK(block_count >= 1, "a pool needs at least one block");
  const auto count = static_cast<size_t>(block_count);
  blocks_.resize(count + 1);
  buckets_.assign(std::bit_ceil(count), kNone);
  for (int32_t block = 0; block <= block_count; ++block) {
    at(block).previous = block == 0 ? block_count : block - 1;
    at(block).next = block == block_count ? 0 : block + 1;
  }
}

size_t BlockPool::bucket(const BlockKey& key) const noexcept {
  // Callers may use small numbers as keys, so the bits are mixed once more (Stafford's mix 13).
  uint64_t x = key.low ^ (key.high * 0x9E3779B97F4A7C15U);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return (x ^ (x >> 31)) & (buckets_.size() - 1);
}

void BlockPool::unlink(int32_t block) {
  Block& entry = at(block);
  at(entry.previous).next = entry.next;
  at(entry.next).previous = entry.previous;
  entry.previous = kNone;
  entry.next = kNone;
  --free_count_;
}

void BlockPool::push_young(int32_t block) {
  Block& sentinel = at(block_count_);
  Block& entry = at(block);
  entry.previous = sentinel.previous;
  entry.next = block_count_;
  at(sentinel.previous).next = block;
  sentinel.previous = block;
  ++free_count_;
}

int32_t BlockPool::allocate() {
  PRONY_CHECK(free_count_ > 0, "no free block");
  const int32_t block = at(block_count_).next;
  unlink(block);
  if (keyed(block)) {
    forget(block);
    ++evictions_;
  }
  at(block).references = 1;
  return block;
}

void BlockPool::share(int32_t block) {
  if (at(block).references == 0) unlink(block);
  ++at(block).references;
}

void BlockPool::release(int32_t block) {
  PRONY_CHECK(at(block).references > 0, "block is released more often than taken");
  if (--at(block).references == 0) push_young(block);
}

bool BlockPool::publish(int32_t block, const BlockKey& key) {
  PRONY_CHECK(at(block).references > 0, "only a held block can be published");
  if (keyed(block) || find(key) != kNone) return false;
  int32_t& head = buckets_[bucket(key)];
  at(block).key = key;
  at(block).hash_next = head;
  head = block;
  ++keyed_count_;
  return true;
}

int32_t BlockPool::find(const BlockKey& key) const noexcept {
  int32_t block = buckets_[bucket(key)];
  while (block != kNone && at(block).key != key) block = at(block).hash_next;
  return block;
}

void BlockPool::forget(int32_t block) {
  int32_t* link = &buckets_[bucket(at(block).key)];
  while (*link != block) link = &at(*link).hash_next;
  *link = at(block).hash_next;
  at(block).hash_next = kNotKeyed;
  --keyed_count_;
}

Result<void> BlockPool::check_integrity() const {
  int32_t queued = 0;
  int32_t previous = block_count_;
  for (int32_t block = at(block_count_).next; block != block_count_; block = at(block).next) {
    if (block < 0 || block > block_count_ || ++queued > block_count_) {
      return failed(fmt::format("free queue: broken after {} blocks", queued));
    }
    if (at(block).previous != previous || at(block).references != 0) {
      return failed(
          fmt::format("free queue: block {} has {} references, previous {}, expected 0, {}", block,
                      at(block).references, at(block).previous, previous));
    }
    previous = block;
  }
  int32_t held = 0;
  int32_t with_key = 0;
  for (int32_t block = 0; block < block_count_; ++block) {
    if (at(block).references < 0) {
      return failed(fmt::format("block {}: {} references", block, at(block).references));
    }
    held += at(block).references > 0 ? 1 : 0;
    with_key += keyed(block) ? 1 : 0;
    if (keyed(block) && find(at(block).key) != block) {
      return failed(fmt::format("block {}: has a key under which another block is found", block));
    }
  }
  if (queued != free_count_ || held + queued != block_count_) {
    return failed(fmt::format("blocks: {} queued, {} held, {} counted free, {} in all", queued,
                              held, free_count_, block_count_));
  }
  int32_t chained = 0;
  for (const int32_t head : buckets_) {
    for (int32_t block = head; block != kNone; block = at(block).hash_next) {
      if (block < 0 || ++chained > with_key) return failed("hash table: a chain is broken");
    }
  }
  if (chained != with_key || with_key != keyed_count_) {
    return failed(fmt::format("keys: {} chained, {} blocks with one, {} counted", chained, with_key,
                              keyed_count_));
  }
  return {};
}

}  // namespace prony::sched
