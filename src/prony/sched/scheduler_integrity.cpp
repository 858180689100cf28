// Scheduler::check_integrity(): every invariant of docs/scheduler.md, from scratch.
#include <fmt/format.h>

#include <algorithm>

#include "prony/sched/scheduler.hpp"
#include "prony/sched/scheduler_state.hpp"

namespace prony::sched {

Result<void> Scheduler::check_integrity() const {
  Result<void> pool = pool_.check_integrity();
  if (!pool.ok()) return pool;
  if (!waiting_.consistent()) return failed("waiting queue: heap or positions are wrong");

  std::vector<int32_t> rows_in_flight(requests_.size(), 0);
  std::vector<int32_t> samples_in_flight(requests_.size(), 0);
  for (int32_t back = in_flight_; back >= 1; --back) {
    const StepPlan& plan = slot(next_step_ - static_cast<uint64_t>(back));
    int32_t tokens = 0;
    int32_t samples = 0;
    for (const StepRow& row : plan.rows) {
      ++rows_in_flight[row.handle];
      samples_in_flight[row.handle] += row.samples ? 1 : 0;
      tokens += row.token_count;
      samples += row.samples ? 1 : 0;
      if (row.token_count < 1 || static_cast<int32_t>(row.blocks.size()) * kBlockTokens <
                                     row.first_position + row.token_count) {
        return failed(fmt::format("step {}: row of request {} has {} tokens from {} in {} blocks",
                                  plan.step, row.handle, row.token_count, row.first_position,
                                  row.blocks.size()));
      }
    }
    if (plan.empty() || tokens != plan.token_count || samples != plan.sample_count ||
        tokens > options_.max_tokens_per_step ||
        plan.rows.size() > static_cast<size_t>(options_.max_sequences)) {
      return failed(fmt::format("step {}: {} rows, {} tokens counted as {}, {} samples as {}",
                                plan.step, plan.rows.size(), tokens, plan.token_count, samples,
                                plan.sample_count));
    }
  }

  std::vector<int32_t> holders(static_cast<size_t>(pool_.block_count()), 0);
  size_t counts[5] = {};  // by RequestState
  int32_t waiting_holders = 0;
  for (Handle handle = 0; handle < requests_.size(); ++handle) {
    const Request& request = requests_[handle];
    ++counts[static_cast<size_t>(request.state)];
    const Result<void> checked =
        check_request(handle, rows_in_flight[handle], samples_in_flight[handle]);
    if (!checked.ok()) return checked;
    if (request.state == RequestState::kWaiting && request.block_count > 0) ++waiting_holders;
    for (int32_t i = 0; i < request.block_count; ++i) {
      const int32_t block = request.table[i];
      if (block < 0 || block >= pool_.block_count()) {
        return failed(fmt::format("request {}: entry {} is block {}", handle, i, block));
      }
      ++holders[static_cast<size_t>(block)];
      // What is still to be written must be nobody else's.
      if (i >= request.computed / kBlockTokens && pool_.references(block) != 1) {
        return failed(fmt::format("request {}: block {} is written and has {} holders", handle,
                                  block, pool_.references(block)));
      }
    }
  }
  for (int32_t block = 0; block < pool_.block_count(); ++block) {
    const int32_t held = holders[static_cast<size_t>(block)];
    if (held != pool_.references(block)) {
      return failed(fmt::format("block {}: in {} tables, {} references", block, held,
                                pool_.references(block)));
    }
    if (held > 1 && !pool_.keyed(block)) {
      return failed(fmt::format("block {}: shared by {} and has no key", block, held));
    }
  }
  const auto count = [&](RequestState state) { return counts[static_cast<size_t>(state)]; };
  if (count(RequestState::kFree) != free_handles_.size() ||
      count(RequestState::kWaiting) != waiting_.size() ||
      count(RequestState::kRemote) != static_cast<size_t>(remote_count_) ||
      count(RequestState::kRunning) != running_.size() ||
      count(RequestState::kLeaving) != leaving_.size() || waiting_holders != waiting_holders_) {
    return failed(fmt::format(
        "counts: free {} of {}, waiting {} of {}, remote {} of {}, running {} of {}, leaving {} of "
        "{}, waiting with blocks {} of {}",
        free_handles_.size(), count(RequestState::kFree), waiting_.size(),
        count(RequestState::kWaiting), remote_count_, count(RequestState::kRemote), running_.size(),
        count(RequestState::kRunning), leaving_.size(), count(RequestState::kLeaving),
        waiting_holders_, waiting_holders));
  }
  for (const Handle handle : running_) {
    if (requests_[handle].state != RequestState::kRunning) {
      return failed(fmt::format("request {}: listed as running and is not", handle));
    }
  }
  if (running_.size() > static_cast<size_t>(options_.max_sequences)) {
    return failed(fmt::format("{} running, at most {}", running_.size(), options_.max_sequences));
  }
  return {};
}

Result<void> Scheduler::check_request(Handle handle, int32_t rows, int32_t samples) const {
  const Request& request = requests_[handle];
  const auto wrong = [&](const char* what) {
    return failed(fmt::format(
        "request {}: {} (state {}, computed {}, committed {}, known {}, blocks {}, published {}, "
        "keys {}, outputs {} of {} planned of {}, in flight {}, rows {})",
        handle, what, static_cast<int>(request.state), request.computed, request.committed,
        request.known(), request.block_count, request.published, request.keys.size(),
        request.outputs, request.planned_outputs, request.max_new, request.in_flight, rows));
  };
  const RequestState state = request.state;
  if (request.stopped) return wrong("stop mark is left over");
  if (state == RequestState::kFree) {
    return request.block_count == 0 && request.table == nullptr && rows == 0
               ? Result<void>{}
               : wrong("is free and owns something");
  }
  if (request.in_flight != rows) return wrong("rows in flight miscounted");
  if ((request.table != nullptr) != (request.block_count > 0 || rows > 0)) {
    return wrong("has a table without need, or none");
  }
  if (state == RequestState::kLeaving && rows == 0) return wrong("leaves and is in no step");
  if (state == RequestState::kRemote && (rows > 0 || request.remote_tokens == 0)) {
    return wrong("waits for a load that is not");
  }
  if ((state == RequestState::kWaiting) != waiting_.contains(handle)) {
    return wrong("state and waiting queue disagree");
  }
  if (request.outputs > request.planned_outputs || request.planned_outputs > request.max_new) {
    return wrong("output counts out of order");
  }
  // A leaving request's rows in flight are discarded, so its outputs stay behind.
  if (state != RequestState::kLeaving && request.outputs + samples != request.planned_outputs) {
    return wrong("planned outputs are not outputs and samples in flight");
  }
  if (request.committed > request.computed || request.computed > request.known()) {
    return wrong("token counts out of order");
  }
  if (request.block_count * kBlockTokens < request.computed) return wrong("positions lack blocks");
  if (request.published * kBlockTokens > request.computed ||
      static_cast<size_t>(request.published) > request.keys.size()) {
    return wrong("published what is not computed");
  }
  const auto publishable =
      std::min<size_t>(request.keys.size(), static_cast<size_t>(shareable(request) / kBlockTokens));
  if (request.block_count > 0 && static_cast<size_t>(request.published) < publishable) {
    return wrong("has computed blocks with keys and did not publish them");
  }
  return {};
}

}  // namespace prony::sched
