// The random world of scheduler_testing.hpp, and nothing that runs by itself.
#include <fmt/format.h>

#include <algorithm>

#include "prony/core/check.hpp"
#include "prony/sched/scheduler_testing.hpp"

namespace prony::sched::testing {
namespace {

/// The history one token longer, by the token that a greedy model would sample.
uint64_t next_history(uint64_t history) {
  return mix(history, 0x67656E);
}

BlockKey key_of(const std::vector<uint64_t>& history, int32_t block) {
  return {.low = history[static_cast<size_t>((block + 1) * kBlockTokens - 1)], .high = 1};
}

}  // namespace

World::World(const WorldOptions& options, uint64_t seed) : options_(options), rng_(seed) {
  auto scheduler = Scheduler::create(options.scheduler);
  PRONY_CHECK(scheduler.ok(), scheduler.ok() ? "" : scheduler.error().message.c_str());
  scheduler_ = std::move(*scheduler);
  cells_.resize(static_cast<size_t>(options.scheduler.block_count) * kBlockTokens, 0);
}

void World::fail(const std::string& what) {
  if (!failure_.empty()) return;
  failure_ = what;
  if (!in_flight_.empty()) failure_ += "; newest " + describe(*in_flight_.back());
}

World::Live& World::at(Handle handle) {
  if (handle >= live_.size()) live_.resize(handle + 1);
  return live_[handle];
}

void World::run(int64_t plans) {
  for (int64_t i = 0; i < plans && failure_.empty(); ++i) {
    const bool adds = chance(options_.add);
    for (int32_t j = 0; adds && j < options_.adds; ++j) {
      const int64_t live = static_cast<int64_t>(added_) - finished_ - aborted_;
      if (live < options_.live_max) add();
    }
    if (chance(options_.abort)) abort_one();
    if (chance(40)) resume_one();
    const auto depth = static_cast<size_t>(options_.scheduler.depth);
    if (in_flight_.size() == depth || (!in_flight_.empty() && chance(30))) {
      commit_oldest();
    } else {
      make_plan();
    }
    // An asynchronous executor may be ahead of or behind the scheduler.
    while (executed_ < in_flight_.size() && chance(50)) execute_oldest();
    if (chance(options_.audit)) audit();
  }
}

void World::drain() {
  const SchedulerOptions& limits = options_.scheduler;
  int32_t chunk = limits.max_tokens_per_step;
  const int32_t cap = limits.long_prefill_token_threshold;
  if (cap > 0) chunk = std::min(chunk, cap);
  // First come first served: the oldest running request moves on in every step and is never
  // preempted, so each costs at most its own chunks and outputs, and a pipeline to drain. Otherwise
  // all requests together may run between two of its steps.
  int64_t bound = 16;
  int64_t live = 1;
  for (const Live& request : live_) {
    if (request.phase == Phase::kNone) continue;
    ++live;
    bound += (request.prompt + request.max_new) / chunk + request.max_new + 4 + 2 * limits.depth;
  }
  const bool simple = limits.policy == Policy::kFcfs &&
                      limits.batching != Batching::kPrefillFirst && options_.remote == 0;
  if (!simple) bound *= live;
  int64_t steps = 0;
  while (failure_.empty() && !scheduler_->idle()) {
    resume_one();
    const size_t before = in_flight_.size();
    if (before < static_cast<size_t>(limits.depth)) make_plan();
    if (in_flight_.size() == before || in_flight_.size() == static_cast<size_t>(limits.depth)) {
      if (!in_flight_.empty()) commit_oldest();
    }
    audit();
    if (++steps > bound) fail(fmt::format("no end after {} steps, livelock?", steps));
  }
  if (!failure_.empty()) return;
  const SchedulerStats stats = scheduler_->stats();
  if (stats.free_blocks != stats.block_count) {
    fail(fmt::format("{} of {} blocks free at the end", stats.free_blocks, stats.block_count));
  }
  if (stats.finished != finished_ || stats.aborted != aborted_ ||
      stats.added != finished_ + aborted_ || static_cast<uint64_t>(stats.added) != added_) {
    fail(fmt::format("{} added, {} finished, {} aborted; counted {} {} {}", added_, finished_,
                     aborted_, stats.added, stats.finished, stats.aborted));
  }
}

void World::add() {
  const SchedulerOptions& limits = options_.scheduler;
  Live request;
  request.prompt = 1 + static_cast<int32_t>(rng_.below(static_cast<uint64_t>(options_.prompt_max)));
  request.max_new =
      1 + static_cast<int32_t>(rng_.below(static_cast<uint64_t>(options_.output_max)));
  // A later turn of a conversation, or a new prompt of a family that shares its first half.
  if (!past_.empty() && chance(25)) request.history = past_[rng_.below(past_.size())];
  const auto prompt = static_cast<size_t>(request.prompt);
  if (request.history.size() > prompt) request.history.resize(prompt);
  const uint64_t family = rng_.below(static_cast<uint64_t>(options_.families));
  const uint64_t own = chance(30) ? 0 : added_ + 1;
  while (request.history.size() < prompt) {
    const size_t position = request.history.size();
    const bool shared = position < static_cast<size_t>(options_.prompt_max) / 2;
    const uint64_t parent = position == 0 ? family : request.history.back();
    request.history.push_back(mix(parent, shared ? family : own));
  }
  std::vector<uint64_t> whole = request.history;
  const auto total = static_cast<size_t>(request.prompt + request.max_new);
  while (whole.size() < total) whole.push_back(next_history(whole.back()));
  std::vector<BlockKey> keys;
  const size_t known = chance(options_.keys_ahead) ? total : prompt;
  for (size_t block = 0; block < known / kBlockTokens; ++block) {
    keys.push_back(key_of(whole, static_cast<int32_t>(block)));
  }
  if (chance(10)) keys.resize(rng_.below(keys.size() + 1));  // callers need not give all
  request.keys = static_cast<int32_t>(keys.size());

  RequestSpec spec;
  spec.prompt_tokens = request.prompt;
  spec.max_new_tokens = request.max_new;
  spec.priority = static_cast<int32_t>(rng_.below(3));
  spec.arrival = static_cast<int64_t>(rng_.below(4));
  spec.block_keys = keys;
  if (request.prompt > 1 && chance(options_.remote)) {
    spec.remote_tokens = 1 + static_cast<int32_t>(rng_.below(prompt - 1));
  }
  const Result<Handle> handle = scheduler_->add(spec);
  const auto blocks = (static_cast<int32_t>(total) - 1 + kBlockTokens - 1) / kBlockTokens;
  const bool fits =
      static_cast<int32_t>(total) <= limits.max_context && blocks <= limits.block_count;
  if (handle.ok() != fits) return fail("refusal and size of a request disagree");
  if (!handle.ok()) {
    ++refused_;
    return;
  }
  if (at(*handle).phase != Phase::kNone) return fail(fmt::format("handle {} given twice", *handle));
  request.phase = Phase::kWaiting;
  request.rank = {.priority = spec.priority, .arrival = spec.arrival, .sequence = added_};
  at(*handle) = std::move(request);
  queue_.push_back(*handle);
  ++added_;
}

void World::abort_one() {
  std::vector<Handle> candidates;
  for (Handle handle = 0; handle < live_.size(); ++handle) {
    if (live_[handle].phase != Phase::kNone) candidates.push_back(handle);
  }
  if (candidates.empty()) return;
  const Handle handle = candidates[rng_.below(candidates.size())];
  Live& request = live_[handle];
  const bool released = scheduler_->abort(handle);
  if (released != (request.in_flight == 0)) return fail("abort released at the wrong time");
  if (request.phase == Phase::kLeaving) return;
  ++aborted_;
  std::erase(running_, handle);
  std::erase(queue_, handle);
  request.phase = Phase::kLeaving;
  if (released) forget(handle);
}

void World::resume_one() {
  for (Handle handle = 0; handle < live_.size(); ++handle) {
    Live& request = live_[handle];
    if (request.phase != Phase::kRemote) continue;
    const int32_t last = request.remote_from + request.remote_count;
    int32_t ready = last;
    if (chance(30)) ready = static_cast<int32_t>(rng_.below(static_cast<uint64_t>(last) + 1));
    if (ready > request.remote_from && !request.remote_written) {
      write_cells(request, request.remote_from, ready - request.remote_from, request.remote_blocks);
    }
    scheduler_->resume_remote(handle, ready);
    request.resumed_at = std::max(ready, request.remote_from);
    request.phase = Phase::kWaiting;
    queue_.push_front(handle);
    return;
  }
}

void World::make_plan() {
  const StepPlan& plan = scheduler_->plan();
  stream_hash_ = mix(stream_hash_, hash_plan(plan));
  // Prefill first means just that: decode, and what it preempts, comes after the admissions.
  const bool prefill_first = options_.scheduler.batching == Batching::kPrefillFirst;
  if (prefill_first) check_admissions(plan);
  take_preempted(plan);
  if (!prefill_first) check_admissions(plan);
  int32_t tokens = 0;
  int32_t samples = 0;
  std::set<Handle> seen;
  bool admitted = false;
  for (const StepRow& row : plan.loads) {
    Live& request = at(row.handle);
    request.phase = Phase::kRemote;
    request.remote_from = row.first_position;
    request.remote_count = row.token_count;
    request.remote_blocks.assign(row.blocks.begin(), row.blocks.end());
    // The load may write at once, while older steps still run, or just before it is resumed.
    if (chance(50)) {
      write_cells(request, row.first_position, row.token_count, request.remote_blocks);
      request.remote_written = true;
    }
    ++loads_;
  }
  for (const StepRow& row : plan.rows) {
    if (!seen.insert(row.handle).second) fail("two rows of one request");
    take_row(row, admitted);
    tokens += row.token_count;
    samples += row.samples ? 1 : 0;
  }
  const SchedulerOptions& limits = options_.scheduler;
  if (tokens != plan.token_count || samples != plan.sample_count) fail("sums of the plan");
  if (tokens > limits.max_tokens_per_step) fail("budget exceeded");
  if (running_.size() > static_cast<size_t>(limits.max_sequences)) fail("too many sequences");
  if (!plan.empty()) {
    carried_.clear();
    in_flight_.push_back(&plan);
    if (plan.step + 1 != static_cast<uint64_t>(scheduler_->stats().steps)) fail("step number");
  }
}

void World::take_preempted(const StepPlan& plan) {
  for (const Handle handle : carried_) {
    if (std::find(plan.preempted.begin(), plan.preempted.end(), handle) == plan.preempted.end()) {
      fail("a preemption in an empty plan was not told again");
    }
  }
  for (const Handle handle : plan.preempted) {
    if (carried_.contains(handle)) continue;
    if (plan.empty()) carried_.insert(handle);
    Live& request = at(handle);
    if (request.phase == Phase::kWaiting) {  // back from a load, lost its blocks again
      if (request.resumed_at < 0) fail("preempted a request that holds nothing");
      request.resumed_at = -1;
      continue;
    }
    if (request.phase != Phase::kRunning) return fail("preempted a request that does not run");
    const bool by_rank = options_.scheduler.policy == Policy::kPriority;
    const auto worst =
        std::max_element(running_.begin(), running_.end(),
                         [this](Handle a, Handle b) { return live_[a].rank < live_[b].rank; });
    if (handle != (by_rank ? *worst : running_.back())) fail("wrong victim");
    std::erase(running_, handle);
    queue_.push_front(handle);
    request.phase = Phase::kWaiting;
    request.computed = 0;
    request.resumed_at = -1;
  }
}

/// Rows of new requests and loads left the queue in its order; which of both lists came first at
/// each point is not told, so they are merged.
void World::check_admissions(const StepPlan& plan) {
  std::deque<Handle> rows;
  std::deque<Handle> loads;
  for (const StepRow& row : plan.rows) {
    if (at(row.handle).phase != Phase::kRunning) rows.push_back(row.handle);
  }
  for (const StepRow& row : plan.loads) loads.push_back(row.handle);
  while (!rows.empty() || !loads.empty()) {
    if (queue_.empty()) return fail("admitted more than waited");
    auto expected = queue_.begin();
    if (options_.scheduler.policy == Policy::kPriority) {
      expected = std::min_element(queue_.begin(), queue_.end(), [this](Handle a, Handle b) {
        return live_[a].rank < live_[b].rank;
      });
    }
    std::deque<Handle>& list = !rows.empty() && rows.front() == *expected ? rows : loads;
    if (list.empty() || list.front() != *expected) {
      return fail(fmt::format("request {} was overtaken", *expected));
    }
    list.pop_front();
    queue_.erase(expected);
  }
}

void World::take_row(const StepRow& row, bool& admitted_before) {
  Live& request = at(row.handle);
  if (request.phase == Phase::kRunning) {
    if (row.first_position != request.computed) fail("row does not continue where it was");
    if (admitted_before && options_.scheduler.batching != Batching::kPrefillFirst) {
      fail("a running request behind an admitted one");
    }
  } else {
    if (request.phase != Phase::kWaiting) fail("admitted a request that does not wait");
    admitted_before = true;
    const bool aligned = row.first_position % kBlockTokens == 0;
    if (request.resumed_at >= 0 ? row.first_position != request.resumed_at : !aligned) {
      fail("admitted at a position that nobody computed");
    }
    if (request.in_flight > 0) fail("admitted while its last token is in flight");
    request.resumed_at = -1;
    request.phase = Phase::kRunning;
    running_.push_back(row.handle);
  }
  const int32_t known = request.prompt + request.planned_outputs;
  const int32_t end = row.first_position + row.token_count;
  if (row.token_count < 1 || end > known) fail("row computes unknown tokens");
  if (row.samples != (end == known)) fail("row samples at the wrong place");
  if (request.planned_outputs >= request.max_new) fail("row beyond max_new_tokens");
  const int32_t cap = options_.scheduler.long_prefill_token_threshold;
  if (cap > 0 && row.token_count > cap) fail("chunk above the threshold");
  if (!options_.scheduler.chunked_prefill && end != known) fail("chunk although chunking is off");
  request.computed = end;
  request.planned_outputs += row.samples ? 1 : 0;
  ++request.in_flight;
}

void World::write_cells(const Live& request, int32_t first, int32_t count,
                        std::span<const int32_t> blocks) {
  for (int32_t p = first; p < first + count; ++p) {
    const auto block = static_cast<size_t>(blocks[static_cast<size_t>(p / kBlockTokens)]);
    cells_[block * kBlockTokens + static_cast<size_t>(p % kBlockTokens)] =
        request.history[static_cast<size_t>(p)];
  }
}

void World::read_cells(const StepRow& row) {
  const Live& request = live_[row.handle];
  for (int32_t p = 0; p < row.first_position + row.token_count; ++p) {
    const auto block = static_cast<size_t>(row.blocks[static_cast<size_t>(p / kBlockTokens)]);
    const uint64_t found = cells_[block * kBlockTokens + static_cast<size_t>(p % kBlockTokens)];
    if (found != request.history[static_cast<size_t>(p)]) {
      return fail(fmt::format("request {} reads foreign content at position {}, block {}",
                              row.handle, p, block));
    }
  }
}

/// The executor. Where sharing waits for the commit, rows run one after the other in the worst
/// order; else all rows write before any reads, as PrefixSharing::kPlanned asks.
void World::execute_oldest() {
  const StepPlan& plan = *in_flight_[executed_++];
  const auto write = [&](const StepRow& row) {
    write_cells(live_[row.handle], row.first_position, row.token_count, row.blocks);
  };
  if (options_.scheduler.prefix_sharing == PrefixSharing::kCommitted) {
    for (size_t i = plan.rows.size(); i-- > 0;) {
      write(plan.rows[i]);
      read_cells(plan.rows[i]);
    }
  } else {
    for (const StepRow& row : plan.rows) write(row);
    for (const StepRow& row : plan.rows) read_cells(row);
  }
  for (const StepRow& row : plan.rows) {
    std::vector<uint64_t>& history = live_[row.handle].history;
    if (row.samples) history.push_back(next_history(history.back()));
  }
}

void World::commit_oldest() {
  while (executed_ == 0) execute_oldest();
  const StepPlan& plan = *in_flight_.front();
  std::vector<Handle> stopped;
  for (const StepRow& row : plan.rows) {
    if (row.samples && chance(options_.stop)) stopped.push_back(row.handle);
  }
  std::vector<CommitResult::Finished> expected;
  std::vector<Handle> released;
  const std::vector<StepRow> rows = plan.rows;  // the plan ends with its commit
  const uint64_t step = plan.step;
  const CommitResult& result = scheduler_->commit({.finished = stopped});
  in_flight_.pop_front();
  --executed_;
  if (result.step != step) fail("committed another step");
  for (const StepRow& row : rows) {
    Live& request = live_[row.handle];
    --request.in_flight;
    if (request.phase != Phase::kLeaving) {
      request.outputs += row.samples ? 1 : 0;
      const bool stops = std::find(stopped.begin(), stopped.end(), row.handle) != stopped.end();
      if (stops || request.outputs == request.max_new) {
        expected.push_back({.handle = row.handle,
                            .reason = stops ? FinishReason::kStopped : FinishReason::kLength});
        ++finished_;
        finished_preempted_ += request.phase == Phase::kWaiting ? 1 : 0;
        std::erase(running_, row.handle);
        std::erase(queue_, row.handle);
        request.phase = Phase::kLeaving;
      }
    }
    if (request.phase == Phase::kLeaving && request.in_flight == 0) {
      released.push_back(row.handle);
    }
  }
  const auto same = [](const CommitResult::Finished& a, const CommitResult::Finished& b) {
    return a.handle == b.handle && a.reason == b.reason;
  };
  if (!std::equal(expected.begin(), expected.end(), result.finished.begin(), result.finished.end(),
                  same)) {
    fail("finished requests differ");
  }
  if (released != result.released) fail("released handles differ");
  for (const Handle handle : released) forget(handle);
  for (const StepRow& row : rows) {
    if (live_[row.handle].phase != Phase::kNone && !chance(10)) give_keys(row.handle);
  }
}

void World::give_keys(Handle handle) {
  Live& request = live_[handle];
  while ((request.keys + 1) * kBlockTokens <= request.prompt + request.outputs) {
    scheduler_->append_key(handle, key_of(request.history, request.keys++));
  }
}

void World::forget(Handle handle) {
  Live& request = live_[handle];
  request.phase = Phase::kNone;
  if (scheduler_->state(handle) != RequestState::kFree) fail("released handle is not free");
  carried_.erase(handle);
  request.history.resize(static_cast<size_t>(request.prompt + request.outputs));
  if (past_.size() < 8) {
    past_.push_back(request.history);
  } else {
    past_[rng_.below(past_.size())] = request.history;
  }
}

void World::audit() {
  const Result<void> sound = scheduler_->check_integrity();
  if (!sound.ok()) fail(sound.error().message);
}

}  // namespace prony::sched::testing
