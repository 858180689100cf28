// BlockKey: 128-bit name of the content of one full KV block: everything that content depends on,
// which is the block's tokens, all tokens before it, and a salt (model, adapter, tenant). The
// scheduler only compares keys; it never sees tokens. Whoever adds a request makes them: a server
// by chain_key() from tokens, a simulator from its prefix groups.
// Thread safety: pure functions.
// Source: the hash chain {parent, tokens, extra} of vLLM's prefix cache, here with XXH3-128.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace prony::sched {

struct BlockKey {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const BlockKey&, const BlockKey&) = default;
};

/// The parent of a sequence's first block.
BlockKey root_key(uint64_t salt);

/// Key of the block that holds `tokens` and follows the block of key `parent`.
/// `tokens` is int32[kBlockTokens] (checked).
BlockKey chain_key(const BlockKey& parent, std::span<const int32_t> tokens);

/// Appends to `keys` the keys of all full blocks of `tokens` (int32[length]) that it does not hold
/// yet; keys[i] is the key of block i. Called again as a sequence grows, it hashes only what is
/// new.
void extend_keys(uint64_t salt, std::span<const int32_t> tokens, std::vector<BlockKey>& keys);

}  // namespace prony::sched
