// StepPlan: what one forward step computes, as the scheduler decided it: rows of (request, first
// position, token count) with their KV block tables. Decode, prefill chunk and full prefill are the
// same row; only the counts differ. Steps execute in the order of their plans: blocks taken from a
// preempted request may be written by the very next step. The plan holds numbers, never tokens: the
// executor owns those.
// A plan and its spans stay valid until the same Scheduler commits that step; plans are reused, so
// nothing is allocated in steady state.
// Thread safety: none for writing; an Executor may read the plan from its own thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace prony::sched {

/// Dense index of a live request, given by Scheduler::add() and reused after the request has left
/// every step in flight. Executors index their own tables with it.
using Handle = uint32_t;

/// Tokens a KV block holds.
inline constexpr int32_t kBlockTokens = 16;

struct StepRow {
  Handle handle = 0;
  int32_t first_position = 0;  // tokens already in the KV cache: position of the row's first token
  int32_t token_count = 0;     // tokens computed in this step, >= 1
  bool samples = false;        // the row reaches the last known token, so it emits one token
  std::span<const int32_t> blocks;  // KV block of position p is blocks[p / kBlockTokens]
};

struct StepPlan {
  uint64_t step = 0;              // counts from 0
  std::vector<StepRow> rows;      // running order
  int32_t token_count = 0;        // sum of the rows
  int32_t sample_count = 0;       // rows with samples
  std::vector<Handle> preempted;  // lost their blocks before this step; will be recomputed
  /// Requests set aside in this plan until their KV has come from elsewhere: tokens first_position
  /// .. first_position + token_count - 1 are to be written into `blocks`. Not rows of the step.
  std::vector<StepRow> loads;
  bool empty() const noexcept { return rows.empty(); }
};

}  // namespace prony::sched
