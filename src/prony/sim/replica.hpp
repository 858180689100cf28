// Replica: one serving engine on virtual time: the scheduler that serves (sched) and the duration
// of its steps (emulate). It knows no cluster and no event queue: the caller says when it is,
// starts a step and comes back at its end. Steps that the scheduler would only repeat are taken
// together (macro-steps), as far as the caller allows: the same durations, tokens and statistics as
// one by one, to the nanosecond. Thread safety: none.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"
#include "prony/emulate/step_time.hpp"
#include "prony/sched/scheduler.hpp"

namespace prony::sim {

/// Tokens of one request in the steps that have just ended, in order.
struct TokensOut {
  int64_t request = 0;
  std::span<const core::Nanos> t_ns;  // one a token
  bool finished = false;
  int32_t preemptions = 0;  // so far; of finished requests
};

struct ReplicaTotals {
  int64_t steps = 0, tokens = 0;  // scheduled
  core::Nanos busy_ns = 0;
  double kv_use_max = 0;  // share of the blocks
};

class Replica {
 public:
  struct Options {
    sched::SchedulerOptions scheduler;
    double noise_cv = 0;
    uint64_t seed = 0;  // of the noise
    bool macro_steps = true;
  };
  /// Error: as Scheduler::create().
  static Result<std::unique_ptr<Replica>> create(const Options& options,
                                                 std::unique_ptr<emulate::StepTime> time);

  /// Puts a request into the queue. Error: kInvalidArgument if it could never be served.
  Result<void> add(int64_t request, const sched::RequestSpec& spec);

  /// Starts the next step, or several of which all but the last end before `until_ns`. Returns when
  /// the last ends; nullopt if there is nothing to do or a step runs.
  std::optional<core::Nanos> begin(core::Nanos now_ns, core::Nanos until_ns);
  /// Ends what begin() started.
  void end(const std::function<void(const TokensOut&)>& sink);

  bool running() const { return step_count_ > 0; }
  int64_t live() const { return live_; }  // requests that wait or run
  /// Tokens in the KV cache and in the queue: what a router by load looks at.
  int64_t pending_tokens() const { return pending_tokens_; }
  double kv_use() const;
  const ReplicaTotals& totals() const { return totals_; }
  sched::SchedulerStats stats() const { return scheduler_->stats(); }
  bool idle() const { return scheduler_->idle(); }
  Result<void> check_integrity() const { return scheduler_->check_integrity(); }

 private:
  Replica(const Options& options, std::unique_ptr<sched::Scheduler> scheduler,
          std::unique_ptr<emulate::StepTime> time);
  struct Request {
    int64_t id = -1;
    int32_t tokens = 0;  // prompt and longest answer
  };
  Options options_;
  std::unique_ptr<sched::Scheduler> scheduler_;
  std::unique_ptr<emulate::StepTime> time_;
  emulate::StepNoise noise_;
  emulate::StepLoad load_;
  uint64_t step_ = 0;
  int32_t step_count_ = 0;               // of the running macro-step; 0: idle
  std::vector<core::Nanos> step_ends_;   // [step_count_]
  std::vector<sched::Handle> sampling_;  // rows of the step that emit a token
  std::vector<uint8_t> ended_;           // [handle], of this step
  std::vector<Request> requests_;        // [handle]
  int64_t live_ = 0, pending_tokens_ = 0;
  ReplicaTotals totals_;
};

}  // namespace prony::sim
