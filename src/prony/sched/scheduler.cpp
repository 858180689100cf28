#include "prony/sched/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/core/check.hpp"
#include "prony/sched/scheduler_state.hpp"

namespace prony::sched {
namespace {

Result<void> check_at_least(const char* name, int64_t found, int64_t least) {
  if (found >= least) return {};
  return invalid_argument(fmt::format("{}: found {}, expected at least {}", name, found, least));
}

Result<void> validate(const SchedulerOptions& options) {
  const struct {
    const char* name;
    int64_t found, least;
  } limits[] = {
      {"block_count", options.block_count, 1},
      {"max_sequences", options.max_sequences, 1},
      {"max_context", options.max_context, 2},
      {"depth", options.depth, 1},
      {"long_prefill_token_threshold", options.long_prefill_token_threshold, 0},
  };
  for (const auto& limit : limits) {
    const Result<void> checked = check_at_least(limit.name, limit.found, limit.least);
    if (!checked.ok()) return checked.error();
  }
  if (options.depth > SchedulerOptions::kMaxDepth) {
    return invalid_argument(fmt::format("depth: found {}, expected at most {}", options.depth,
                                        SchedulerOptions::kMaxDepth));
  }
  // Otherwise the last running requests would starve until the first ones end.
  if (options.max_tokens_per_step < options.max_sequences) {
    return invalid_argument(
        fmt::format("max_tokens_per_step: found {}, expected at least max_sequences, which is {}",
                    options.max_tokens_per_step, options.max_sequences));
  }
  if (!options.chunked_prefill && options.max_tokens_per_step < options.max_context) {
    return invalid_argument(fmt::format(
        "max_tokens_per_step: found {}, expected at least max_context, which is {}, because "
        "chunked_prefill is off",
        options.max_tokens_per_step, options.max_context));
  }
  if (!options.chunked_prefill && options.long_prefill_token_threshold > 0) {
    return invalid_argument(
        fmt::format("long_prefill_token_threshold: found {}, expected 0, because chunked_prefill "
                    "is off",
                    options.long_prefill_token_threshold));
  }
  if (!(options.watermark >= 0 && options.watermark < 1)) {
    return invalid_argument(
        fmt::format("watermark: found {}, expected 0 <= watermark < 1", options.watermark));
  }
  return {};
}

Result<void> validate(const RequestSpec& spec, const SchedulerOptions& options) {
  const struct {
    const char* name;
    int64_t found, least;
  } limits[] = {{"prompt_tokens", spec.prompt_tokens, 1},
                {"max_new_tokens", spec.max_new_tokens, 1},
                {"remote_tokens", spec.remote_tokens, 0}};
  for (const auto& limit : limits) {
    const Result<void> checked = check_at_least(limit.name, limit.found, limit.least);
    if (!checked.ok()) return checked.error();
  }
  const int64_t total = int64_t{spec.prompt_tokens} + spec.max_new_tokens;
  if (total > options.max_context) {
    return invalid_argument(fmt::format(
        "request of {} prompt and {} new tokens is longer than max_context, which is {}",
        spec.prompt_tokens, spec.max_new_tokens, options.max_context));
  }
  // The last output is never fed back, so its position needs no room.
  const int32_t blocks = blocks_for(static_cast<int32_t>(total - 1));
  if (blocks > options.block_count) {
    return invalid_argument(fmt::format(
        "request of {} prompt and {} new tokens needs {} KV blocks, the whole pool has {}",
        spec.prompt_tokens, spec.max_new_tokens, blocks, options.block_count));
  }
  if (spec.remote_tokens >= spec.prompt_tokens) {
    return invalid_argument(
        fmt::format("remote_tokens: found {}, expected less than prompt_tokens, "
                    "which is {}, because one token must be computed",
                    spec.remote_tokens, spec.prompt_tokens));
  }
  if (static_cast<int64_t>(spec.block_keys.size()) > total / kBlockTokens) {
    return invalid_argument(
        fmt::format("block_keys: found {}, expected at most {}, the full blocks "
                    "of {} tokens",
                    spec.block_keys.size(), total / kBlockTokens, total));
  }
  return {};
}

}  // namespace

SchedulerOptions options_for(const Executor& executor) {
  const Executor::Capacity capacity = executor.capacity();
  SchedulerOptions options;
  options.block_count = capacity.block_count;
  options.max_tokens_per_step = capacity.max_tokens_per_step;
  options.max_sequences = capacity.max_sequences;
  options.max_context = capacity.max_context;
  options.depth = executor.depth();
  return options;
}

Result<std::unique_ptr<Scheduler>> Scheduler::create(const SchedulerOptions& options) {
  const Result<void> checked = validate(options);
  if (!checked.ok()) return checked.error();
  return std::unique_ptr<Scheduler>(new Scheduler(options));
}

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(options),
      watermark_blocks_(static_cast<int32_t>(options.watermark * options.block_count)),
      pool_(options.block_count),
      waiting_(options.policy == Policy::kPriority),
      plans_(static_cast<size_t>(options.depth)) {
  const auto sequences = static_cast<size_t>(options.max_sequences);
  running_.reserve(sequences);
  leaving_.reserve(sequences * plans_.size());
  for (StepPlan& plan : plans_) {
    plan.rows.reserve(sequences);
    plan.preempted.reserve(sequences);
  }
  result_.finished.reserve(sequences);
  result_.released.reserve(sequences);
  base_rows_.reserve(sequences);
  by_residue_.resize(sequences);
  residue_begin_.resize(kBlockTokens + 1);
}

Scheduler::~Scheduler() = default;

Scheduler::Request& Scheduler::live(Handle handle) {
  PRONY_CHECK(handle < requests_.size() && requests_[handle].state != RequestState::kFree,
              "not a live request");
  return requests_[handle];
}
const Scheduler::Request& Scheduler::live(Handle handle) const {
  return const_cast<Scheduler*>(this)->live(handle);
}

Handle Scheduler::take_handle() {
  if (free_handles_.empty()) {
    requests_.emplace_back();
    // What else grows with the number of live requests grows here, not in some later step.
    free_handles_.reserve(requests_.capacity());
    waiting_.reserve(requests_.capacity());
    return static_cast<Handle>(requests_.size() - 1);
  }
  const Handle handle = free_handles_.back();
  free_handles_.pop_back();
  return handle;
}

Result<Handle> Scheduler::add(const RequestSpec& spec) {
  const Result<void> checked = validate(spec, options_);
  if (!checked.ok()) return checked.error();
  const Handle handle = take_handle();
  Request& request = requests_[handle];
  std::vector<BlockKey> keys = std::move(request.keys);  // its capacity is reused
  request = Request{};
  request.keys = std::move(keys);
  if (options_.prefix_caching) request.keys.assign(spec.block_keys.begin(), spec.block_keys.end());
  request.prompt = spec.prompt_tokens;
  request.max_new = spec.max_new_tokens;
  request.remote_tokens = spec.remote_tokens;
  request.rank = {.priority = spec.priority, .arrival = spec.arrival, .sequence = next_sequence_++};
  request.state = RequestState::kWaiting;
  waiting_.push(handle, request.rank);
  ++totals_.added;
  return handle;
}

void Scheduler::append_key(Handle handle, const BlockKey& key) {
  Request& request = live(handle);
  if (!options_.prefix_caching) return;
  const auto most = static_cast<size_t>((request.prompt + request.max_new) / kBlockTokens);
  PRONY_CHECK(request.keys.size() < most, "more keys than the request can have full blocks");
  request.keys.push_back(key);
  publish(request, shareable(request));
}

int32_t Scheduler::shareable(const Request& request) const {
  return options_.prefix_sharing == PrefixSharing::kPlanned ? request.computed : request.committed;
}

void Scheduler::publish(Request& request, int32_t computed) {
  const int32_t full = computed / kBlockTokens;
  while (request.published < full && static_cast<size_t>(request.published) < request.keys.size()) {
    pool_.publish(request.table[request.published],
                  request.keys[static_cast<size_t>(request.published)]);
    ++request.published;
  }
}

void Scheduler::take_table(Request& request) {
  if (free_tables_.empty()) {
    // Untouched memory costs nothing, so a chunk may be larger than what is needed now.
    constexpr size_t kChunk = 64;
    const auto blocks = static_cast<size_t>(blocks_for(options_.max_context));
    table_chunks_.push_back(std::make_unique_for_overwrite<int32_t[]>(kChunk * blocks));
    free_tables_.reserve(table_chunks_.size() * kChunk);  // so that giving back never allocates
    for (size_t i = kChunk; i-- > 0;) {
      free_tables_.push_back(table_chunks_.back().get() + i * blocks);
    }
  }
  request.table = free_tables_.back();
  free_tables_.pop_back();
}

void Scheduler::give_back_table(Request& request) {
  if (request.table != nullptr) free_tables_.push_back(request.table);
  request.table = nullptr;
}

void Scheduler::give_back_blocks(Request& request) {
  // From the tail, so that of one sequence the tail is overwritten first and its head, which more
  // other sequences share, last.
  for (int32_t i = request.block_count; i-- > 0;) pool_.release(request.table[i]);
  if (request.state == RequestState::kWaiting && request.block_count > 0) --waiting_holders_;
  request.block_count = 0;
}

void Scheduler::release(Handle handle) {
  Request& request = requests_[handle];
  give_back_blocks(request);
  give_back_table(request);
  request.keys.clear();
  request.state = RequestState::kFree;
  free_handles_.push_back(handle);
  // A preemption kept from an empty plan must not be taken for one of the handle's next owner.
  if (in_flight_ < options_.depth && slot(next_step_).empty()) {
    std::erase(slot(next_step_).preempted, handle);
  }
}

void Scheduler::finish(Handle handle, FinishReason reason) {
  Request& request = requests_[handle];
  result_.finished.push_back({.handle = handle, .reason = reason});
  ++totals_.finished;
  // A preempted request can finish by the token of a step that was in flight then.
  if (request.state == RequestState::kWaiting) waiting_.remove(handle);
  if (request.in_flight == 0) {
    release(handle);
    result_.released.push_back(handle);
  } else {
    request.state = RequestState::kLeaving;
    leaving_.push_back(handle);
  }
}

bool Scheduler::abort(Handle handle) {
  Request& request = live(handle);
  if (request.state == RequestState::kLeaving) return false;
  if (request.state == RequestState::kWaiting) waiting_.remove(handle);
  if (request.state == RequestState::kRemote) --remote_count_;
  if (request.state == RequestState::kRunning) {
    running_.erase(std::find(running_.begin(), running_.end(), handle));
  }
  ++totals_.aborted;
  if (request.in_flight == 0) {
    release(handle);
    return true;
  }
  request.state = RequestState::kLeaving;
  leaving_.push_back(handle);
  return false;
}

void Scheduler::resume_remote(Handle handle, int32_t tokens_ready) {
  Request& request = live(handle);
  PRONY_CHECK(request.state == RequestState::kRemote, "request waits for no remote load");
  PRONY_CHECK(tokens_ready >= 0 && tokens_ready <= request.remote_tokens,
              "more tokens ready than were asked for");
  request.computed = std::max(request.computed, tokens_ready);
  request.committed = request.computed;
  request.remote_tokens = 0;
  publish(request, request.committed);
  --remote_count_;
  ++waiting_holders_;
  request.state = RequestState::kWaiting;
  waiting_.push_front(handle, request.rank);
}

const CommitResult& Scheduler::commit(const StepOutcome& outcome) {
  PRONY_CHECK(in_flight_ > 0, "no step is in flight");
  const StepPlan& plan = slot(next_step_ - static_cast<uint64_t>(in_flight_));
  --in_flight_;
  result_.step = plan.step;
  result_.finished.clear();
  result_.released.clear();
  for (const Handle handle : outcome.finished) live(handle).stopped = true;
  size_t stopped = 0;
  for (const StepRow& row : plan.rows) {
    Request& request = requests_[row.handle];
    --request.in_flight;
    const bool stops = request.stopped;
    if (stops) {
      PRONY_CHECK(row.samples, "a request cannot stop in a step that samples nothing for it");
      request.stopped = false;
      ++stopped;
    }
    if (request.state == RequestState::kLeaving) {
      if (request.in_flight > 0) continue;
      leaving_.erase(std::find(leaving_.begin(), leaving_.end(), row.handle));
      release(row.handle);
      result_.released.push_back(row.handle);
      continue;
    }
    if (row.samples) ++request.outputs;
    if (request.state == RequestState::kRunning) {
      request.committed = row.first_position + row.token_count;
      if (options_.prefix_sharing == PrefixSharing::kCommitted) {
        publish(request, request.committed);
      }
    } else if (request.in_flight == 0) {
      // Preempted since: its blocks are gone, only the sampled token counts.
      give_back_table(request);
    }
    if (stops) {
      finish(row.handle, FinishReason::kStopped);
    } else if (request.outputs == request.max_new) {
      finish(row.handle, FinishReason::kLength);
    }
  }
  PRONY_CHECK(stopped == outcome.finished.size(),
              "a finished request is no row of the step, or was named twice");
  if (!result_.finished.empty()) {
    std::erase_if(running_, [this](Handle handle) {
      return requests_[handle].state != RequestState::kRunning;
    });
  }
  return result_;
}

bool Scheduler::idle() const noexcept {
  return free_handles_.size() == requests_.size();
}

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats = totals_;
  stats.running = static_cast<int32_t>(running_.size());
  stats.waiting = static_cast<int32_t>(waiting_.size());
  stats.remote = remote_count_;
  stats.leaving = static_cast<int32_t>(leaving_.size());
  stats.steps_in_flight = in_flight_;
  stats.block_count = pool_.block_count();
  stats.free_blocks = pool_.free_count();
  stats.cached_blocks = pool_.keyed_count();
  stats.evictions = pool_.evictions();
  return stats;
}

RequestState Scheduler::state(Handle handle) const {
  return handle < requests_.size() ? requests_[handle].state : RequestState::kFree;
}
int32_t Scheduler::output_tokens(Handle handle) const {
  return live(handle).outputs;
}
int32_t Scheduler::computed_tokens(Handle handle) const {
  return live(handle).computed;
}
int32_t Scheduler::preemptions(Handle handle) const {
  return live(handle).preemptions;
}
std::span<const int32_t> Scheduler::blocks(Handle handle) const {
  const Request& request = live(handle);
  return {request.table, static_cast<size_t>(request.block_count)};
}

}  // namespace prony::sched
