// What Scheduler keeps per request, and its verdict on an admission. Private to scheduler*.cpp.
// Thread safety: none.
#pragma once
#include <cstdint>
#include <vector>

#include "prony/sched/scheduler.hpp"

namespace prony::sched {

/// Blocks that hold `tokens` tokens.
constexpr int32_t blocks_for(int32_t tokens) {
  return (tokens + kBlockTokens - 1) / kBlockTokens;
}

struct Scheduler::Request {
  int32_t* table = nullptr;  // int32[blocks of max_context] while it has blocks or rows in flight
  int32_t block_count = 0;   // entries of `table` in use
  int32_t prompt = 0;        // tokens
  int32_t max_new = 0;       // outputs at most
  int32_t planned_outputs = 0;  // sampled by planned steps, committed or not
  int32_t outputs = 0;          // of committed steps
  int32_t computed = 0;         // tokens computed by planned steps since the last preemption
  int32_t committed = 0;        // tokens computed by committed steps since the last preemption
  int32_t published = 0;        // leading blocks whose key went to the pool
  int32_t remote_tokens = 0;    // still to come from elsewhere
  int32_t in_flight = 0;        // rows in steps in flight
  int32_t preemptions = 0;
  RequestState state = RequestState::kFree;
  bool stopped = false;  // named by the outcome being committed
  WaitingQueue::Rank rank;
  std::vector<BlockKey> keys;  // [block]

  /// Tokens that exist or will by the time the next step runs.
  int32_t known() const { return prompt + planned_outputs; }
  /// Tokens the next row could compute; 0 once every output is planned.
  int32_t wanted() const { return planned_outputs == max_new ? 0 : known() - computed; }
  /// Decode: one token, and not the first output.
  bool decodes() const { return planned_outputs > 0 && wanted() <= 1; }
};

struct Scheduler::Admission {
  enum class Kind { kNone, kRow, kLoad };
  Kind kind = Kind::kNone;
  int32_t hit_blocks = 0;   // found in the cache; the request holds none yet then
  int32_t start = 0;        // first token to compute or load
  int32_t token_count = 0;  // of the row or the load
  int32_t new_blocks = 0;   // to allocate
};

}  // namespace prony::sched
