// Test support. Stepper: unit tests in one line a step. World: a random world around a Scheduler.
// It adds, aborts, stops and resumes requests at random, executes the plans on a model of KV
// memory, and checks every plan against what it knows itself. The memory model is the strictest
// witness: each cell remembers which token history was written into it, and each row must read back
// exactly its own history, so a block with two owners, a hit on a block not computed yet or a
// missing position cannot pass. Tokens are deterministic functions of their history (greedy), so
// equal prompts give equal outputs. Thread safety: none. Only for tests.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/sched/scheduler.hpp"

/// Sanitizers make everything ten times slower; random tests then do less.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PRONY_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PRONY_SANITIZED 1
#endif
#endif
#ifndef PRONY_SANITIZED
#define PRONY_SANITIZED 0
#endif

namespace prony::sched::testing {

/// A mixing step of a hash.
uint64_t mix(uint64_t a, uint64_t b);
/// Hash of everything in a plan.
uint64_t hash_plan(const StepPlan& plan);
/// Field by field, spans by content.
bool equal_plans(const StepPlan& a, const StepPlan& b);
/// One line for a failure message.
std::string describe(const StepPlan& plan);

/// The rows alone, "handle@first_position+token_count" with * where the row samples.
std::string rows_of(const StepPlan& plan);
/// Keys 0 .. count - 1 of a family: equal arguments, equal prefix.
std::vector<BlockKey> family_keys(uint64_t family, size_t count);

/// A scheduler driven step by step at depth 1, audited after every step.
class Stepper {
 public:
  explicit Stepper(const SchedulerOptions& options);
  Scheduler* operator->() { return scheduler_.get(); }

  /// Must be accepted.
  Handle add(int32_t prompt, int32_t max_new, std::vector<BlockKey> keys = {}, int32_t priority = 0,
             int32_t remote = 0);
  /// The message with which `spec` is refused; empty if it is not.
  std::string error(const RequestSpec& spec);
  /// Plans a step, commits it if it is not empty, and returns its rows.
  std::string step(std::vector<Handle> finished = {});

  std::vector<Handle> preempted;         // of the last step
  const CommitResult* result = nullptr;  // of the last step that was not empty

 private:
  std::unique_ptr<Scheduler> scheduler_;
};

struct WorldOptions {
  SchedulerOptions scheduler;
  int32_t prompt_max = 60;  // tokens
  int32_t output_max = 30;
  int32_t live_max = 24;
  int32_t adds = 1;      // requests added at once
  int32_t families = 3;  // prompts of a family share a prefix
  // Chances in percent.
  uint64_t add = 30;         // before a plan
  uint64_t abort = 2;        // before a plan
  uint64_t stop = 3;         // of each sampling row
  uint64_t remote = 0;       // of each request
  uint64_t keys_ahead = 10;  // of each request: keys of future outputs given at once
  uint64_t audit = 100;      // check_integrity() after an event
};

class World {
 public:
  World(const WorldOptions& options, uint64_t seed);

  /// Makes `plans` plans with everything going on around them. Stops early at the first failure.
  void run(int64_t plans);
  /// No new requests: everything must end within a bound. Then the pool must be whole again.
  void drain();

  const std::string& failure() const { return failure_; }  // empty: all is well
  Scheduler& scheduler() { return *scheduler_; }
  uint64_t stream_hash() const { return stream_hash_; }
  int64_t refused() const { return refused_; }
  int64_t loads() const { return loads_; }
  int64_t finished_preempted() const { return finished_preempted_; }

 private:
  enum class Phase { kNone, kWaiting, kRemote, kRunning, kLeaving };
  struct Live {
    Phase phase = Phase::kNone;
    std::vector<uint64_t> history;  // [position] hash of all tokens up to it
    int32_t prompt = 0, max_new = 0;
    int32_t computed = 0, planned_outputs = 0, outputs = 0, in_flight = 0;
    int32_t resumed_at = -1;  // first token to compute, back from a load and not yet admitted
    int32_t keys = 0;         // given so far
    WaitingQueue::Rank rank;
    int32_t remote_from = 0, remote_count = 0;
    std::vector<int32_t> remote_blocks;
    bool remote_written = false;
  };

  void add();
  void abort_one();
  void resume_one();
  void make_plan();
  void take_preempted(const StepPlan& plan);
  void take_row(const StepRow& row, bool& admitted_before);
  void execute_oldest();
  void write_cells(const Live& request, int32_t first, int32_t count,
                   std::span<const int32_t> blocks);
  void read_cells(const StepRow& row);
  void commit_oldest();
  void give_keys(Handle handle);
  void forget(Handle handle);
  void check_admissions(const StepPlan& plan);
  void audit();
  void fail(const std::string& what);
  bool chance(uint64_t percent) { return rng_.below(100) < percent; }
  Live& at(Handle handle);

  WorldOptions options_;
  core::Rng rng_;
  std::unique_ptr<Scheduler> scheduler_;
  std::string failure_;
  uint64_t stream_hash_ = 0;
  std::vector<Live> live_;       // [handle]
  std::vector<Handle> running_;  // admission order
  std::deque<Handle> queue_;     // kFcfs order of the waiting
  std::vector<Handle> leaving_;
  std::set<Handle> carried_;  // preempted in an empty plan, listed again in the next
  std::deque<const StepPlan*> in_flight_;
  size_t executed_ = 0;                      // of in_flight_, from the oldest
  std::vector<uint64_t> cells_;              // [block][kBlockTokens]
  std::vector<std::vector<uint64_t>> past_;  // histories of finished requests, for later turns
  uint64_t added_ = 0;
  int64_t refused_ = 0, loads_ = 0, finished_ = 0, aborted_ = 0, finished_preempted_ = 0;
};

}  // namespace prony::sched::testing
