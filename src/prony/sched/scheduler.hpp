// Scheduler: decides what each forward step computes: continuous batching under one token budget,
// chunked prefill, paged KV blocks with a prefix cache, preemption by recompute. A pure state
// machine without clock, thread or tokens: equal calls give equal plans, so the same object serves
// (over an Executor) and simulates (over a duration model). docs/scheduler.md is its manual.
//
// The loop:  plan() -> run the step -> commit(who finished) -> ...   with up to `depth` steps
// planned and not yet committed. Steps must execute in the order in which they were planned: a
// block freed by preemption may be written by the very next plan.
//
// Thread safety: one caller thread. A StepPlan and the tables its spans point to may be read from
// another thread until that step is committed.
// Source: the scheduling rules of vLLM V1 (vllm/v1/core/sched/scheduler.py, kv_cache_manager.py);
// deviations are listed in docs/scheduler.md.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/sched/block_key.hpp"
#include "prony/sched/block_pool.hpp"
#include "prony/sched/executor.hpp"
#include "prony/sched/step_plan.hpp"
#include "prony/sched/waiting_queue.hpp"

namespace prony::sched {

/// Order of the waiting queue, and who is preempted.
enum class Policy {
  kFcfs,      // first come, first served; the latest admitted is preempted and goes to the front
  kPriority,  // smallest (priority, arrival) first; the largest running one is preempted
};

/// What may share a step.
enum class Batching {
  kContinuous,    // running requests first, then new ones: decode and prefill mix
  kPrefillFirst,  // a step with prefill holds no decode: new requests delay all running ones
  kStatic,        // new requests only when nothing runs: a batch lives until its last member ends
};

/// From when on a prefix hit may use a block.
enum class PrefixSharing {
  kCommitted,  // when the step that computes it is committed: safe for every executor
  kPlanned,    // when that step is planned, even within the same step, as vLLM does: the executor
               // must store the keys and values of all rows of a layer before any row attends
};

struct SchedulerOptions {
  int32_t block_count = 0;             // KV blocks of kBlockTokens tokens; ids 0 .. block_count - 1
  int32_t max_tokens_per_step = 2048;  // budget of a step, all rows together
  int32_t max_sequences = 256;         // running requests, which is rows of a step
  int32_t max_context = 4096;          // tokens of a request, prompt and output together
  int32_t depth = 1;                   // steps planned and not yet committed, 1 .. kMaxDepth
  Policy policy = Policy::kFcfs;
  Batching batching = Batching::kContinuous;
  bool chunked_prefill = true;               // false needs max_tokens_per_step >= max_context
  int32_t long_prefill_token_threshold = 0;  // most prefill tokens of one row; 0: no limit
  bool prefix_caching = true;
  PrefixSharing prefix_sharing = PrefixSharing::kCommitted;
  /// Admit only if the blocks of the whole input are free, not only those of its first chunk.
  bool reserve_full_input = true;
  /// Share of the blocks that an admission must leave free, in [0, 1). Not applied while a step is
  /// empty, so that it cannot lock up an idle pool.
  double watermark = 0;

  static constexpr int32_t kMaxDepth = 64;
};

/// Options with the limits of `executor` filled in.
SchedulerOptions options_for(const Executor& executor);

struct RequestSpec {
  int32_t prompt_tokens = 0;   // >= 1
  int32_t max_new_tokens = 0;  // >= 1; the request finishes at this many outputs at the latest
  int32_t priority = 0;        // smaller is more urgent; kPriority only
  int64_t arrival = 0;         // breaks ties of priority, smaller first; then the order of add()
  /// keys[i] names block i; from the first block on, without a gap, may be empty or short. May
  /// reach beyond the prompt if the caller knows the output (a simulator does). Copied.
  std::span<const BlockKey> block_keys;
  /// Prompt tokens whose KV comes from elsewhere, at most prompt_tokens - 1; 0: none. When the
  /// request's turn comes, plan() allocates its blocks, lists it in StepPlan::loads, and sets it
  /// aside until resume_remote().
  int32_t remote_tokens = 0;
};

/// What the execution of a step brought.
struct StepOutcome {
  /// Requests whose token of this step was their last (stop token, stop string, client gone). Each
  /// must be a sampling row of the step (checked). Reaching max_new_tokens need not be said.
  std::span<const Handle> finished;
};

enum class FinishReason : uint8_t {
  kStopped,  // named in StepOutcome::finished
  kLength,   // max_new_tokens reached
};

struct CommitResult {
  struct Finished {
    Handle handle = 0;
    FinishReason reason = FinishReason::kStopped;
  };
  uint64_t step = 0;
  std::vector<Finished> finished;  // with this step, row order
  /// Handles that are in no step any more and are no longer valid: tell Executor::finish() before
  /// the next add(), which may give the same handle again.
  std::vector<Handle> released;
};

enum class RequestState : uint8_t {
  kFree,     // not a live handle
  kWaiting,  // in the queue: new, preempted, or back from a remote load
  kRemote,   // holds blocks, waits for resume_remote()
  kRunning,
  kLeaving,  // finished or aborted, still a row of a step in flight
};

struct SchedulerStats {
  // Now.
  int32_t running = 0;
  int32_t waiting = 0;  // without those waiting for remote KV
  int32_t remote = 0;
  int32_t leaving = 0;
  int32_t steps_in_flight = 0;
  int32_t block_count = 0;
  int32_t free_blocks = 0;    // nobody's, cached content included
  int32_t cached_blocks = 0;  // with a key, in use or free
  // Since construction.
  int64_t steps = 0;
  int64_t scheduled_tokens = 0;
  int64_t added = 0;
  int64_t finished = 0;
  int64_t aborted = 0;
  int64_t preemptions = 0;
  int64_t evictions = 0;  // cached blocks overwritten
  // Tokens looked up and found at first admissions, and apart from them at re-admissions after
  // preemption: those find the request's own blocks and say nothing about the workload.
  int64_t prefix_query_tokens = 0;
  int64_t prefix_hit_tokens = 0;
  int64_t recompute_query_tokens = 0;
  int64_t recompute_hit_tokens = 0;
  friend bool operator==(const SchedulerStats&, const SchedulerStats&) = default;
};

class Scheduler {
 public:
  /// Error: kInvalidArgument naming the option, found and expected.
  static Result<std::unique_ptr<Scheduler>> create(const SchedulerOptions& options);
  ~Scheduler();

  /// Puts a request into the queue. Error: kInvalidArgument with the reason if it could never be
  /// served (longer than max_context, more blocks than the pool has, ...); nothing has changed
  /// then.
  Result<Handle> add(const RequestSpec& spec);

  /// Ends a request in any state. True if the handle is released at once (then tell
  /// Executor::finish()); false if steps in flight still hold it: a later commit() lists it in
  /// `released`. Nothing happens to a request that is already kLeaving. While a remote load runs,
  /// stop the load first: its blocks are free after this call.
  bool abort(Handle handle);

  /// Names the next block of this request (block number = keys given so far), usually one that
  /// generated tokens have filled. Ignored without prefix caching.
  void append_key(Handle handle, const BlockKey& key);

  /// The remote load of a kRemote request ended with the KV of its first `tokens_ready` tokens in
  /// place, 0 .. remote_tokens (0: it failed; they are computed here). Goes to the head of the
  /// queue.
  void resume_remote(Handle handle, int32_t tokens_ready);

  /// The next step. Requires fewer than `depth` steps in flight (checked). An empty plan is not a
  /// step: do not submit or commit it; nothing can run before a commit(), add() or resume_remote().
  /// `loads` must be looked at even then. The plan is valid until its step is committed.
  const StepPlan& plan();

  /// Ends the oldest step in flight (checked: there is one). The result is valid until the next
  /// commit. Rows of requests that have finished or were aborted meanwhile are discarded.
  const CommitResult& commit(const StepOutcome& outcome = {});

  /// How many further plan() calls would each repeat the rows of the newest plan, one position on,
  /// if nobody is stopped and nothing is added, aborted or resumed. Positive only in pure decode.
  /// Never too large; may be too small while the queue's head waits for blocks or a running request
  /// has no row.
  int32_t horizon() const;

  /// Equals commit(), then n - 1 pairs of plan() and commit(), the last with `last`: same block
  /// tables, same statistics. O(rows + n + blocks), not O(rows * n). Requires 1 <= n <= horizon()+1
  /// (checked). Plans still in flight are moved on in place: not for an executor that reads them.
  const CommitResult& commit_many(int32_t n, const StepOutcome& last = {});

  int32_t steps_in_flight() const noexcept { return in_flight_; }
  /// True if no request is live.
  bool idle() const noexcept;
  SchedulerStats stats() const;
  const SchedulerOptions& options() const noexcept { return options_; }

  RequestState state(Handle handle) const;
  /// Outputs committed so far. Requires a live handle (checked), as all below.
  int32_t output_tokens(Handle handle) const;
  /// Tokens computed or planned to be, 0 after a preemption.
  int32_t computed_tokens(Handle handle) const;
  int32_t preemptions(Handle handle) const;
  /// Blocks held, in order of position; int32[blocks of the request].
  std::span<const int32_t> blocks(Handle handle) const;

  /// Audits every invariant of docs/scheduler.md, O(blocks + requests). Error: kFailed naming the
  /// first that does not hold. For tests and idle moments.
  Result<void> check_integrity() const;

 private:
  struct Request;
  struct Admission;
  explicit Scheduler(const SchedulerOptions& options);

  // scheduler.cpp: life of a request
  Request& live(Handle handle);
  const Request& live(Handle handle) const;
  Handle take_handle();
  void take_table(Request& request);
  void give_back_table(Request& request);
  void give_back_blocks(Request& request);
  void release(Handle handle);
  void finish(Handle handle, FinishReason reason);
  void publish(Request& request, int32_t computed);
  int32_t shareable(const Request& request) const;
  Result<void> check_request(Handle handle, int32_t rows, int32_t samples) const;

  // scheduler_plan.cpp: one step
  enum class Select { kAll, kPrefill, kDecode };
  enum class Room { kEnough, kBlocked, kSelfPreempted };
  StepPlan& slot(uint64_t step) { return plans_[step % plans_.size()]; }
  const StepPlan& slot(uint64_t step) const { return plans_[step % plans_.size()]; }
  StepPlan& open_plan();
  void plan_continuous(StepPlan& plan);
  void plan_prefill_first(StepPlan& plan);
  void plan_running(StepPlan& plan, Select select, bool may_preempt);
  Room make_room(StepPlan& plan, size_t& index, int32_t blocks);
  bool blocks_will_return(int32_t blocks) const;
  size_t choose_victim() const;
  void preempt(StepPlan& plan, size_t victim_index);
  void forget_computation(StepPlan& plan, Handle handle);
  void remove_row(StepPlan& plan, Handle handle);
  bool reclaim_waiting_blocks(StepPlan& plan, Handle keep);
  void admit_waiting(StepPlan& plan);
  bool steps_use_freed_blocks() const;
  Admission consider(Handle head, int32_t budget, bool step_empty) const;
  void admit(StepPlan& plan, Handle head, const Admission& admission);
  void take_blocks(Request& request, int32_t count);
  void append_row(StepPlan& plan, Handle handle, int32_t token_count);
  void publish_rows(const StepPlan& plan);

  // scheduler_horizon.cpp: many equal steps at once
  bool plans_repeat() const;
  int32_t steps_before_admission() const;
  int32_t steps_before_publication() const;
  int32_t steps_with_free_blocks() const;
  void fast_forward(int32_t steps);
  void sort_rows_by_residue();
  void move_plans_on(uint64_t newest, int32_t steps);

  SchedulerOptions options_;
  int32_t watermark_blocks_ = 0;
  BlockPool pool_;
  WaitingQueue waiting_;
  std::vector<Request> requests_;                         // [handle]
  std::vector<Handle> free_handles_;                      // last in, first out
  std::vector<Handle> running_;                           // admission order
  std::vector<Handle> leaving_;                           // kLeaving, any order
  std::vector<StepPlan> plans_;                           // [step % depth]
  std::vector<std::unique_ptr<int32_t[]>> table_chunks_;  // int32[tables][blocks of max_context]
  std::vector<int32_t*> free_tables_;
  CommitResult result_;
  uint64_t next_step_ = 0;
  uint64_t next_sequence_ = 0;
  uint64_t freed_in_flight_ = 0;  // steps before this one may use blocks freed by preemption
  int32_t in_flight_ = 0;
  int32_t budget_ = 0;           // left in the plan being made, tokens
  bool blocked_ = false;         // in the plan being made a row waits for blocks that will return
  int32_t remote_count_ = 0;     // kRemote requests
  int32_t waiting_holders_ = 0;  // kWaiting requests that hold blocks
  SchedulerStats totals_;        // the counters since construction; the rest is filled by stats()
  // Scratch of fast_forward().
  std::vector<StepRow> base_rows_;     // [max_sequences]
  std::vector<size_t> by_residue_;     // [max_sequences] indices into base_rows_
  std::vector<size_t> residue_begin_;  // [kBlockTokens + 1] into by_residue_
};

}  // namespace prony::sched
