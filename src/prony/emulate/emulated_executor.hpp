// EmulatedExecutor: sched::Executor that computes nothing and takes as long as the device it stands
// for would: behind it the server, its scheduler and its HTTP are the real ones, so a client meets
// the timing of a GPU that is not there. It says so: device() is "emulated:<hardware>", which goes
// out with every answer. Tokens are letters drawn by (seed, output index); log-probabilities are 0.
// A step begins when it is submitted, but not later than its predecessor's end by less than
// kHandover: the time between two steps is the engine's, and the profile has it already.
// Thread safety: one caller thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/emulate/step_time.hpp"
#include "prony/sched/executor.hpp"

namespace prony::emulate {

struct EmulatedOptions {
  std::string hardware;  // catalogue id
  sched::Executor::Capacity capacity;
  int32_t first_token = 0;  // what is sampled: ids first_token .. first_token + token_count - 1
  int32_t token_count = 26;
  double noise_cv = 0;  // of step durations
  uint64_t seed = 0;
  /// The caller's thread goes before the ordinary threads of the host (core/scheduling.hpp): it
  /// only sleeps, and must wake in time.
  bool first_among_threads = false;
};

class EmulatedExecutor final : public sched::Executor {
 public:
  static constexpr core::Nanos kHandoverNs = 500 * core::kNanosPerMicro;

  /// `clock` outlives it. Requires token_count >= 1 (checked).
  EmulatedExecutor(std::unique_ptr<StepTime> time, core::Clock& clock, EmulatedOptions options);

  Capacity capacity() const override { return options_.capacity; }
  std::string device() const override { return "emulated:" + options_.hardware; }
  void start(sched::Handle handle, sched::RequestInput input) override;
  void finish(sched::Handle handle) override;
  void submit(const sched::StepPlan& plan) override;
  Result<sched::StepResult> wait() override;

  /// Steps so far, and how long after its due time the last and the latest of them was handed over.
  struct Lateness {
    uint64_t steps = 0;
    core::Nanos last_ns = 0, worst_ns = 0;
  };
  const Lateness& lateness() const { return lateness_; }

 private:
  struct Request {
    bool live = false;
    uint64_t seed = 0;
    int32_t prompt_tokens = 0;
  };
  std::unique_ptr<StepTime> time_;
  core::Clock& clock_;
  EmulatedOptions options_;
  StepNoise noise_;
  StepLoad load_;
  const sched::StepPlan* pending_ = nullptr;
  core::Nanos due_ns_ = 0;
  Lateness lateness_;
  std::vector<Request> requests_;  // [handle]
  std::vector<sched::SampledToken> sampled_;
};

}  // namespace prony::emulate
