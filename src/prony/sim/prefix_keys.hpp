// PrefixKeys: the names of the KV blocks of a request's prompt, from the numbers of its schedule
// entry: a shared prefix, the blocks of a trace, the history of a conversation. No token is ever
// made. Thread safety: none; one each run.
#pragma once
#include <span>
#include <vector>

#include "prony/sched/block_key.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::sim {

class PrefixKeys {
 public:
  /// `schedule` outlives it.
  explicit PrefixKeys(const workload::Schedule& schedule) : schedule_(schedule) {}
  /// Of blocks of sched::kBlockTokens tokens, from the first on; valid until the next call. Empty
  /// for a prompt that shares nothing.
  std::span<const sched::BlockKey> of(const workload::ScheduleEntry& entry);

 private:
  const workload::Schedule& schedule_;
  std::vector<sched::BlockKey> keys_;
};

}  // namespace prony::sim
