#include "prony/sched/block_key.hpp"

#include <xxhash.h>

#include <cstring>

#include "prony/core/check.hpp"
#include "prony/sched/step_plan.hpp"

namespace prony::sched {
namespace {

constexpr size_t kTokens = kBlockTokens;

BlockKey to_key(const XXH128_hash_t& hash) {
  return {.low = hash.low64, .high = hash.high64};
}

}  // namespace

BlockKey root_key(uint64_t salt) {
  return to_key(XXH3_128bits(&salt, sizeof salt));
}

BlockKey chain_key(const BlockKey& parent, std::span<const int32_t> tokens) {
  PRONY_CHECK(tokens.size() == kTokens, "a block key names exactly one full block");
  unsigned char buffer[sizeof(uint64_t) * 2 + sizeof(int32_t) * kTokens];
  std::memcpy(buffer, &parent.low, sizeof parent.low);
  std::memcpy(buffer + sizeof parent.low, &parent.high, sizeof parent.high);
  std::memcpy(buffer + sizeof(uint64_t) * 2, tokens.data(), tokens.size_bytes());
  return to_key(XXH3_128bits(buffer, sizeof buffer));
}

void extend_keys(uint64_t salt, std::span<const int32_t> tokens, std::vector<BlockKey>& keys) {
  const size_t blocks = tokens.size() / kTokens;
  BlockKey parent = keys.empty() ? root_key(salt) : keys.back();
  for (size_t block = keys.size(); block < blocks; ++block) {
    parent = chain_key(parent, tokens.subspan(block * kTokens, kTokens));
    keys.push_back(parent);
  }
}

}  // namespace prony::sched
