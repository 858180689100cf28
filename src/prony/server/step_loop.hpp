// StepLoop: the thread that generates. It owns the scheduler, drives the executor (plan, submit,
// wait, commit, with as many steps in flight as the executor allows) and turns tokens into text.
// News of one step are delivered together, so the HTTP side wakes once a step, however many
// sequences run. Thread safety: submit(), cancel() and stop() any thread; `deliver` and
// `on_failure` are called on the loop's own thread.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"
#include "prony/sched/executor.hpp"
#include "prony/sched/scheduler.hpp"
#include "prony/server/metrics.hpp"
#include "prony/server/output_stream.hpp"

namespace prony::server {

/// Names a submission for its whole life; never reused.
using Ticket = uint64_t;

struct Submission {
  sched::RequestInput input;
  OutputStream stream;
  int32_t priority = 0;     // smaller is sooner
  uint64_t cache_salt = 0;  // requests share cached prefixes only under the same salt
  core::Nanos arrived_ns = 0;
};

/// One token's news, or the end of a ticket. Exactly one Output with a finish or an error is the
/// last of each ticket, unless it was cancelled.
struct Output {
  Ticket ticket = 0;
  std::string text;  // what may be shown now, perhaps nothing
  int32_t token = 0;
  float logprob = 0;
  std::vector<sched::TokenLogprob> top;
  Finish finish = Finish::kNone;
  std::optional<std::string> stop_reason;
  int32_t output_tokens = 0;   // so far, this one included
  int32_t cached_tokens = 0;   // of the prompt
  std::optional<Error> error;  // refused (kInvalidArgument) or the device failed; no token then
};

class StepLoop {
 public:
  using Deliver = std::function<void(std::vector<Output>)>;
  using OnFailure = std::function<void(const Error&)>;

  /// Keeps references to `executor`, `metrics` and `clock`. Error: what the scheduler says of its
  /// options.
  static Result<std::unique_ptr<StepLoop>> create(sched::Executor& executor,
                                                  const sched::SchedulerOptions& options,
                                                  Metrics& metrics, const core::Clock& clock,
                                                  Deliver deliver, OnFailure on_failure);
  ~StepLoop();  // stop()

  Ticket submit(Submission submission);
  /// Nothing more is delivered for this ticket once the loop has seen the call.
  void cancel(Ticket ticket);
  /// Ends the thread after the steps in flight; what still runs is dropped without news.
  void stop();

 private:
  struct Sequence;
  struct Command {
    Ticket ticket = 0;
    std::unique_ptr<Submission> submission;  // null: cancel
  };
  StepLoop(sched::Executor& executor, std::unique_ptr<sched::Scheduler> scheduler, Metrics& metrics,
           const core::Clock& clock, Deliver deliver, OnFailure on_failure);

  void run();
  bool take_commands(bool wait);
  void begin(Ticket ticket, Submission submission);
  void drop(Ticket ticket);
  SchedulerGauges gauges() const;
  bool submit_step();
  Result<void> finish_step();
  void take_token(Sequence& sequence, const sched::SampledToken& sampled, core::Nanos now_ns);
  void release(sched::Handle handle);
  void fail_all(const Error& error);
  void deliver_news();

  sched::Executor& executor_;
  std::unique_ptr<sched::Scheduler> scheduler_;
  Metrics& metrics_;
  const core::Clock& clock_;
  Deliver deliver_;
  OnFailure on_failure_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Command> commands_;  // under mutex_
  bool stopping_ = false;          // under mutex_
  std::atomic<Ticket> next_ticket_{1};

  // The loop's own.
  std::vector<Command> taken_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // [handle], null if free
  std::unordered_map<Ticket, sched::Handle> handles_;
  std::vector<sched::Handle> finished_;  // of the step being committed
  std::vector<Output> news_;
  std::optional<Error> failure_;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace prony::server
