// How long plans repeat, and jumping over repeated plans. In pure decode a step differs from the
// one before only by one position a row, until a row needs a block the pool does not have, ends, or
// the queue's head can be admitted. Between such events only multiples of kBlockTokens matter:
// there a row takes its next block and may publish the one before. Rows are sorted by position
// modulo kBlockTokens once, and each step touches just the rows at such a boundary, in the order in
// which single steps would have touched them, so that every block gets the same owner.
#include <algorithm>
#include <limits>

#include "prony/core/check.hpp"
#include "prony/sched/scheduler.hpp"
#include "prony/sched/scheduler_state.hpp"

namespace prony::sched {
namespace {

constexpr int32_t kEndless = std::numeric_limits<int32_t>::max();

/// Steps from `position` until a row at that position computes the last token of a block.
int32_t steps_to_block_end(int32_t position) {
  return kBlockTokens - 1 - position % kBlockTokens;
}

/// x mod kBlockTokens in [0, kBlockTokens) for any sign.
size_t residue(int32_t x) {
  return static_cast<size_t>(((x % kBlockTokens) + kBlockTokens) % kBlockTokens);
}

}  // namespace

int32_t Scheduler::horizon() const {
  if (in_flight_ == 0 || running_.empty() || !plans_repeat()) return 0;
  int32_t steps = kEndless;
  for (const Handle handle : running_) {
    const Request& request = requests_[handle];
    steps = std::min(steps, request.max_new - request.planned_outputs);
  }
  if (steps > 0) steps = std::min(steps, steps_before_admission());
  if (steps > 0) steps = std::min(steps, steps_with_free_blocks());
  return steps;
}

/// True if all plans in flight hold exactly the running requests as decode rows, so that each plan
/// repeats the one before.
bool Scheduler::plans_repeat() const {
  for (int32_t back = 1; back <= in_flight_; ++back) {
    const StepPlan& plan = slot(next_step_ - static_cast<uint64_t>(back));
    if (plan.rows.size() != running_.size()) return false;
    for (size_t i = 0; i < plan.rows.size(); ++i) {
      const StepRow& row = plan.rows[i];
      if (row.handle != running_[i] || row.token_count != 1 || !row.samples) return false;
      // Its next row must be this one moved on, or the request was preempted in between.
      if (row.first_position + back != requests_[row.handle].computed) return false;
    }
  }
  return true;
}

/// Further steps for which the queue's head cannot be admitted.
int32_t Scheduler::steps_before_admission() const {
  const auto rows = static_cast<int32_t>(running_.size());
  if (waiting_.empty() || rows == options_.max_sequences) return kEndless;
  if (options_.batching == Batching::kStatic) return kEndless;
  const bool prefill_first = options_.batching == Batching::kPrefillFirst;
  const int32_t budget = options_.max_tokens_per_step - (prefill_first ? 0 : rows);
  if (budget == 0) return kEndless;
  const Handle head = waiting_.front();
  // These obstacles go away when the steps in flight are committed.
  if (requests_[head].in_flight > 0 || steps_use_freed_blocks()) return 0;
  if (consider(head, budget, prefill_first).kind != Admission::Kind::kNone) return 0;
  // It lacks blocks. Decode only takes blocks and evicts cached ones, so nothing improves for it
  // until a row publishes a block, which might be a longer prefix hit.
  return steps_before_publication();
}

int32_t Scheduler::steps_before_publication() const {
  const bool at_commit = options_.prefix_sharing == PrefixSharing::kCommitted;
  int32_t steps = kEndless;
  for (const StepRow& row : slot(next_step_ - 1).rows) {
    // Of the oldest step in flight, whose commit precedes the next plan; or of the next plan
    // itself.
    const int32_t position =
        at_commit ? row.first_position - (in_flight_ - 1) : row.first_position + 1;
    const int32_t distance = steps_to_block_end(position);
    const auto block = static_cast<size_t>((position + distance) / kBlockTokens);
    if (block < requests_[row.handle].keys.size()) steps = std::min(steps, distance);
  }
  return steps;
}

/// Further steps that the free blocks allow. A decode row's table has no spare blocks: what a load
/// took in advance is less than the prompt.
int32_t Scheduler::steps_with_free_blocks() const {
  int32_t first_needs[kBlockTokens] = {};  // [k] rows whose next block is needed k + 1 steps on
  for (const StepRow& row : slot(next_step_ - 1).rows) {
    ++first_needs[(steps_to_block_end(row.first_position + 1) + 1) % kBlockTokens];
  }
  const auto rows = static_cast<int32_t>(running_.size());
  const int64_t cycles = pool_.free_count() / rows;  // of kBlockTokens steps, a block each for all
  int32_t left = pool_.free_count() % rows;
  int64_t steps = cycles * kBlockTokens;
  for (const int32_t needs : first_needs) {
    if (needs > left) break;
    left -= needs;
    ++steps;
  }
  return static_cast<int32_t>(std::min<int64_t>(steps, kEndless));
}

const CommitResult& Scheduler::commit_many(int32_t n, const StepOutcome& last) {
  PRONY_CHECK(n >= 1 && (n == 1 || n - 1 <= horizon()), "beyond the horizon");
  if (n > 1) fast_forward(n - 1);
  return commit(last);
}

/// `steps` pairs of commit() and plan(). The commit() that must follow sets Request::committed.
void Scheduler::fast_forward(int32_t steps) {
  const uint64_t newest = next_step_ - 1;
  base_rows_ = slot(newest).rows;
  sort_rows_by_residue();
  const bool at_commit = options_.prefix_sharing == PrefixSharing::kCommitted;
  // Calls visit(row) for the rows whose position in the newest plan is congruent to `position`.
  const auto for_rows_at = [this](int32_t position, const auto& visit) {
    const size_t r = residue(position);
    for (size_t i = residue_begin_[r]; i < residue_begin_[r + 1]; ++i) {
      visit(base_rows_[by_residue_[i]]);
    }
  };
  for (int32_t i = 1; i <= steps; ++i) {
    // Step newest + i is planned when step newest + i - in_flight_ is committed.
    const int32_t lag = i - in_flight_;
    if (at_commit) {
      for_rows_at(-1 - lag, [&](const StepRow& row) {
        publish(requests_[row.handle], row.first_position + lag + 1);
      });
    }
    for_rows_at(-i, [&](const StepRow& row) { take_blocks(requests_[row.handle], 1); });
    if (!at_commit) {
      for_rows_at(-1 - i, [&](const StepRow& row) {
        publish(requests_[row.handle], row.first_position + i + 1);
      });
    }
  }
  for (const StepRow& row : base_rows_) {
    Request& request = requests_[row.handle];
    request.planned_outputs += steps;
    request.outputs += steps;
    request.computed += steps;
  }
  next_step_ += static_cast<uint64_t>(steps);
  totals_.steps += steps;
  totals_.scheduled_tokens += int64_t{steps} * static_cast<int64_t>(base_rows_.size());
  move_plans_on(newest, steps);
}

/// Counting sort of base_rows_ by position modulo kBlockTokens; stable, so in row order.
void Scheduler::sort_rows_by_residue() {
  std::fill(residue_begin_.begin(), residue_begin_.end(), 0);
  for (const StepRow& row : base_rows_) ++residue_begin_[residue(row.first_position) + 1];
  for (size_t r = 0; r < kBlockTokens; ++r) residue_begin_[r + 1] += residue_begin_[r];
  size_t next[kBlockTokens];
  std::copy_n(residue_begin_.begin(), kBlockTokens, next);
  for (size_t i = 0; i < base_rows_.size(); ++i) {
    by_residue_[next[residue(base_rows_[i].first_position)]++] = i;
  }
}

/// Rewrites the plans in flight after `steps` more were planned than `newest`; base_rows_ are the
/// rows of `newest`. Those up to `newest` are as they were planned.
void Scheduler::move_plans_on(uint64_t newest, int32_t steps) {
  for (int32_t ahead = std::max(1, steps - in_flight_ + 1); ahead <= steps; ++ahead) {
    StepPlan& plan = slot(newest + static_cast<uint64_t>(ahead));
    plan.step = newest + static_cast<uint64_t>(ahead);
    plan.rows = base_rows_;
    plan.token_count = static_cast<int32_t>(base_rows_.size());
    plan.sample_count = plan.token_count;
    plan.preempted.clear();
    plan.loads.clear();
    for (StepRow& row : plan.rows) {
      row.first_position += ahead;
      const auto needed = static_cast<size_t>(blocks_for(row.first_position + 1));
      row.blocks = {requests_[row.handle].table, needed};
    }
  }
}

}  // namespace prony::sched
