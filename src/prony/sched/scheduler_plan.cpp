// How one step is planned. The rules are numbered as in docs/scheduler.md.
#include <algorithm>

#include "prony/core/check.hpp"
#include "prony/sched/scheduler.hpp"
#include "prony/sched/scheduler_state.hpp"

namespace prony::sched {

const StepPlan& Scheduler::plan() {
  PRONY_CHECK(in_flight_ < options_.depth, "too many steps in flight; commit one first");
  StepPlan& plan = open_plan();
  if (options_.batching == Batching::kPrefillFirst) {
    plan_prefill_first(plan);
  } else {
    plan_continuous(plan);
  }
  if (!plan.empty()) {
    ++in_flight_;
    ++next_step_;
    ++totals_.steps;
    totals_.scheduled_tokens += plan.token_count;
  } else {
    PRONY_CHECK(in_flight_ > 0 || remote_count_ > 0 || (running_.empty() && waiting_.empty()),
                "locked up: requests are left and nothing can run");
  }
  return plan;
}

StepPlan& Scheduler::open_plan() {
  StepPlan& plan = slot(next_step_);
  // An empty plan was never executed, so its preemptions are still news for the next one.
  if (!plan.empty()) plan.preempted.clear();
  plan.step = next_step_;
  plan.rows.clear();
  plan.loads.clear();
  plan.token_count = 0;
  plan.sample_count = 0;
  budget_ = options_.max_tokens_per_step;
  blocked_ = false;
  return plan;
}

void Scheduler::plan_continuous(StepPlan& plan) {
  const bool admits = options_.batching != Batching::kStatic || running_.empty();
  const size_t preempted = plan.preempted.size();
  plan_running(plan, Select::kAll, true);
  publish_rows(plan);
  // Rule 4: whoever just lost blocks must not see a newcomer take them.
  if (admits && !blocked_ && plan.preempted.size() == preempted) admit_waiting(plan);
}

void Scheduler::plan_prefill_first(StepPlan& plan) {
  plan_running(plan, Select::kPrefill, false);
  publish_rows(plan);
  if (!blocked_) admit_waiting(plan);
  // No prefill can run. If decode cannot either, a half-done prefill must be allowed to preempt.
  for (const Select select : {Select::kDecode, Select::kAll}) {
    if (!plan.empty()) return;
    blocked_ = false;
    plan_running(plan, select, true);
    publish_rows(plan);
  }
}

void Scheduler::plan_running(StepPlan& plan, Select select, bool may_preempt) {
  for (size_t i = 0; i < running_.size() && budget_ > 0;) {
    const Handle handle = running_[i];
    Request& request = requests_[handle];
    int32_t count = request.wanted();
    const bool selected =
        select == Select::kAll || (select == Select::kDecode) == request.decodes();
    if (count == 0 || !selected) {
      ++i;
      continue;
    }
    const int32_t cap = options_.long_prefill_token_threshold;
    if (cap > 0) count = std::min(count, cap);
    count = std::min(count, budget_);
    const int32_t blocks = blocks_for(request.computed + count) - request.block_count;
    if (blocks > 0) {
      // Once somebody waits for blocks that will return, nobody behind may take free ones.
      Room room = blocked_ ? Room::kBlocked : Room::kEnough;
      if (room == Room::kEnough && blocks > pool_.free_count()) {
        room = may_preempt ? make_room(plan, i, blocks) : Room::kBlocked;
      }
      if (room == Room::kSelfPreempted) continue;
      if (room == Room::kBlocked) {
        blocked_ = true;
        ++i;
        continue;
      }
      take_blocks(request, blocks);
    }
    append_row(plan, handle, count);
    ++i;
  }
}

/// Frees at least `blocks` for running_[index] (rule 3), moving `index` along with its request.
Scheduler::Room Scheduler::make_room(StepPlan& plan, size_t& index, int32_t blocks) {
  while (pool_.free_count() < blocks) {
    if (blocks_will_return(blocks - pool_.free_count())) return Room::kBlocked;
    if (running_.size() == 1) {
      // Alone it fits (add() saw to that) but for blocks of loads; its own work is never dropped.
      if (reclaim_waiting_blocks(plan, running_[index])) continue;
      PRONY_CHECK(remote_count_ > 0 || in_flight_ > 0, "the only running request finds no room");
      return Room::kBlocked;
    }
    const size_t victim = choose_victim();
    preempt(plan, victim);
    if (victim == index) return Room::kSelfPreempted;
    if (victim < index) --index;
  }
  return Room::kEnough;
}

/// True if committing the steps in flight is sure to return so many blocks: of requests that have
/// left, and of those whose last output is planned.
bool Scheduler::blocks_will_return(int32_t blocks) const {
  if (in_flight_ == 0) return false;
  int32_t returning = 0;
  const auto count = [&](const Request& request) {
    for (int32_t i = 0; i < request.block_count; ++i) {
      returning += pool_.references(request.table[i]) == 1 ? 1 : 0;
    }
  };
  for (const Handle handle : leaving_) count(requests_[handle]);
  for (const Handle handle : running_) {
    if (requests_[handle].planned_outputs == requests_[handle].max_new) count(requests_[handle]);
  }
  return returning >= blocks;
}

size_t Scheduler::choose_victim() const {
  if (options_.policy == Policy::kFcfs) return running_.size() - 1;
  const auto largest = std::max_element(
      running_.begin(), running_.end(),
      [this](Handle a, Handle b) { return requests_[a].rank < requests_[b].rank; });
  return static_cast<size_t>(largest - running_.begin());
}

void Scheduler::preempt(StepPlan& plan, size_t victim_index) {
  const Handle handle = running_[victim_index];
  remove_row(plan, handle);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(victim_index));
  forget_computation(plan, handle);
  requests_[handle].state = RequestState::kWaiting;
  waiting_.push_front(handle, requests_[handle].rank);
}

/// Takes all blocks of `handle`; it will be recomputed.
void Scheduler::forget_computation(StepPlan& plan, Handle handle) {
  Request& request = requests_[handle];
  give_back_blocks(request);
  if (request.in_flight > 0) freed_in_flight_ = next_step_;
  request.computed = 0;
  request.committed = 0;
  request.published = 0;
  request.remote_tokens = 0;
  if (request.in_flight == 0) give_back_table(request);
  ++request.preemptions;
  ++totals_.preemptions;
  plan.preempted.push_back(handle);
}

/// Undoes append_row(), if the plan has a row of `handle`: under kPriority a victim may stand
/// before the request that needs its blocks. Its blocks are not published yet.
void Scheduler::remove_row(StepPlan& plan, Handle handle) {
  const auto row = std::find_if(plan.rows.begin(), plan.rows.end(),
                                [&](const StepRow& r) { return r.handle == handle; });
  if (row == plan.rows.end()) return;
  Request& request = requests_[handle];
  if (row->samples) {
    --request.planned_outputs;
    --plan.sample_count;
  }
  --request.in_flight;
  plan.token_count -= row->token_count;
  budget_ += row->token_count;
  plan.rows.erase(row);
}

/// Takes the blocks of the last in the queue that holds any, `keep` excepted. Such a request came
/// back from a remote load and was not admitted yet; without this it could lock up the pool.
bool Scheduler::reclaim_waiting_blocks(StepPlan& plan, Handle keep) {
  if (waiting_holders_ == 0) return false;
  Handle holder = 0;
  const auto holds = [&](Handle handle) {
    return handle != keep && requests_[handle].block_count > 0;
  };
  if (!waiting_.last_where(holds, holder)) return false;
  forget_computation(plan, holder);
  return true;
}

void Scheduler::admit_waiting(StepPlan& plan) {
  while (!waiting_.empty() && budget_ > 0 &&
         running_.size() < static_cast<size_t>(options_.max_sequences)) {
    const Handle head = waiting_.front();
    const Admission admission = consider(head, budget_, plan.empty());
    if (admission.kind != Admission::Kind::kNone) {
      admit(plan, head, admission);
      continue;
    }
    const bool nothing_else_helps = plan.empty() && running_.empty() && in_flight_ == 0;
    if (nothing_else_helps && reclaim_waiting_blocks(plan, head)) continue;
    return;  // rule 5: nobody overtakes the head
  }
}

/// True if a step in flight was planned before blocks it uses were freed by preemption. Later steps
/// may have these blocks, because steps run in order; a load, which runs beside them, may not.
bool Scheduler::steps_use_freed_blocks() const {
  return in_flight_ > 0 && next_step_ - static_cast<uint64_t>(in_flight_) < freed_in_flight_;
}

/// What would happen if `head` were admitted now into a step with `budget` tokens left.
Scheduler::Admission Scheduler::consider(Handle head, int32_t budget, bool step_empty) const {
  const Request& request = requests_[head];
  // A preempted request waits until its last token is known, so that no executor has to recompute
  // from tokens that are still in flight, and no step in flight sees its table rewritten.
  if (request.in_flight > 0) return {};
  Admission admission;
  int32_t held = request.block_count;
  int32_t free_hits = 0;
  if (held == 0) {
    // Rule 4: only full blocks, and at least one token is left to compute.
    const auto most =
        std::min(request.keys.size(), static_cast<size_t>((request.known() - 1) / kBlockTokens));
    while (static_cast<size_t>(held) < most) {
      const int32_t block = pool_.find(request.keys[static_cast<size_t>(held)]);
      if (block == BlockPool::kNone) break;
      free_hits += pool_.references(block) == 0 ? 1 : 0;
      ++held;
    }
    admission.hit_blocks = held;
    admission.start = held * kBlockTokens;
  } else {
    admission.start = request.computed;
  }
  if (request.remote_tokens > admission.start) {
    if (steps_use_freed_blocks()) return {};
    admission.kind = Admission::Kind::kLoad;
    admission.token_count = request.remote_tokens - admission.start;
  } else {
    admission.kind = Admission::Kind::kRow;
    admission.token_count = request.known() - admission.start;
    const int32_t cap = options_.long_prefill_token_threshold;
    if (cap > 0) admission.token_count = std::min(admission.token_count, cap);
    if (!options_.chunked_prefill && admission.token_count > budget) return {};
    admission.token_count = std::min(admission.token_count, budget);
  }
  const int32_t end = admission.start + admission.token_count;
  admission.new_blocks = std::max(0, blocks_for(end) - held);
  // Rule 6.
  int32_t room = admission.new_blocks;
  if (options_.reserve_full_input) room = std::max(room, blocks_for(request.known()) - held);
  if (!step_empty) room += watermark_blocks_;
  if (room + free_hits > pool_.free_count()) return {};
  return admission;
}

void Scheduler::admit(StepPlan& plan, Handle head, const Admission& admission) {
  Request& request = requests_[head];
  waiting_.pop();
  if (request.block_count > 0) {
    --waiting_holders_;
  } else {
    take_table(request);
    for (int32_t i = 0; i < admission.hit_blocks; ++i) {
      const int32_t block = pool_.find(request.keys[static_cast<size_t>(i)]);
      pool_.share(block);
      request.table[i] = block;
    }
    request.block_count = admission.hit_blocks;
    request.published = admission.hit_blocks;
    request.computed = admission.start;
    request.committed = admission.start;
    if (options_.prefix_caching) {
      const bool again = request.preemptions > 0;
      (again ? totals_.recompute_query_tokens : totals_.prefix_query_tokens) += request.known();
      (again ? totals_.recompute_hit_tokens : totals_.prefix_hit_tokens) += admission.start;
    }
  }
  take_blocks(request, admission.new_blocks);
  if (admission.kind == Admission::Kind::kLoad) {
    request.state = RequestState::kRemote;
    ++remote_count_;
    plan.loads.push_back({.handle = head,
                          .first_position = admission.start,
                          .token_count = admission.token_count,
                          .blocks = blocks(head)});
    return;
  }
  request.remote_tokens = 0;
  request.state = RequestState::kRunning;
  running_.push_back(head);
  append_row(plan, head, admission.token_count);
  if (options_.prefix_sharing == PrefixSharing::kPlanned) publish(request, request.computed);
}

void Scheduler::take_blocks(Request& request, int32_t count) {
  for (int32_t i = 0; i < count; ++i) request.table[request.block_count++] = pool_.allocate();
}

void Scheduler::append_row(StepPlan& plan, Handle handle, int32_t token_count) {
  Request& request = requests_[handle];
  const bool samples = request.computed + token_count == request.known();
  plan.rows.push_back({.handle = handle,
                       .first_position = request.computed,
                       .token_count = token_count,
                       .samples = samples,
                       .blocks = {request.table, static_cast<size_t>(request.block_count)}});
  plan.token_count += token_count;
  budget_ -= token_count;
  request.computed += token_count;
  ++request.in_flight;
  if (samples) {
    ++request.planned_outputs;
    ++plan.sample_count;
  }
}

/// Only once no row can be taken out of the plan any more.
void Scheduler::publish_rows(const StepPlan& plan) {
  if (options_.prefix_sharing != PrefixSharing::kPlanned) return;
  for (const StepRow& row : plan.rows) {
    Request& request = requests_[row.handle];
    publish(request, request.computed);
  }
}

}  // namespace prony::sched
