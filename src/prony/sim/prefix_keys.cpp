#include "prony/sim/prefix_keys.hpp"

#include "prony/sched/step_plan.hpp"

namespace prony::sim {
namespace {

// What a key names; in its high word with the place in it, so that kinds never meet.
enum class Of : uint64_t { kGroup = 1, kTrace = 2, kSession = 3 };

sched::BlockKey key(Of of, int64_t what, int64_t place) {
  return {static_cast<uint64_t>(what),
          static_cast<uint64_t>(of) << 60 | static_cast<uint64_t>(place)};
}

}  // namespace

std::span<const sched::BlockKey> PrefixKeys::of(const workload::ScheduleEntry& entry) {
  keys_.clear();
  const int64_t prompt_blocks = entry.input_tokens / sched::kBlockTokens;
  if (entry.block_count > 0) {
    const auto ids = schedule_.blocks_of(entry);
    for (int64_t i = 0; i < prompt_blocks; ++i) {
      // The block must lie in one of the trace's: its last token decides.
      const int64_t last = (i + 1) * sched::kBlockTokens - 1;
      const int64_t at = last / schedule_.block_tokens;
      if (at >= static_cast<int64_t>(ids.size())) break;
      keys_.push_back(key(Of::kTrace, ids[static_cast<size_t>(at)], i));
    }
    return keys_;
  }
  const int64_t shared = entry.prefix_group >= 0 ? entry.prefix_tokens / sched::kBlockTokens : 0;
  for (int64_t i = 0; i < shared; ++i) keys_.push_back(key(Of::kGroup, entry.prefix_group, i));
  if (entry.session < 0) return keys_;
  // A conversation's blocks, the answer's too: the next turn quotes it. Later turns begin with the
  // first one's shared prefix, which its session names as well.
  keys_.clear();
  const int64_t all = (int64_t{entry.input_tokens} + entry.output_tokens) / sched::kBlockTokens;
  for (int64_t i = 0; i < all; ++i) keys_.push_back(key(Of::kSession, entry.session, i));
  return keys_;
}

}  // namespace prony::sim
