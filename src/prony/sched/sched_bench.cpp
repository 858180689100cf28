// Cost of the scheduler per scheduled token. Figure to reach: below 50 ns.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/core/rng.hpp"
#include "prony/sched/scheduler.hpp"

namespace prony::sched {
namespace {

/// Keeps `sequences` requests running and 8 waiting: prompts of 128 tokens of which a family of 200
/// shares 64, outputs of 1 to `output_max`. The mean output decides how much of the cost is
/// admission.
class Load {
 public:
  Load(int32_t sequences, int32_t output_max, const SchedulerOptions& base)
      : output_max_(output_max) {
    SchedulerOptions options = base;
    options.max_sequences = sequences;
    options.max_tokens_per_step = std::max(2048, 2 * sequences);
    options.max_context = 8192;
    // All requests fit at their mean length, and some more, so that preemption is rare but real.
    options.block_count = (sequences + 4) * (kPromptTokens + output_max * 6 / 10 + 32) / 16;
    scheduler_ = std::move(*Scheduler::create(options));
    for (int32_t i = 0; i < sequences + 8; ++i) add();
  }

  void step() {
    while (scheduler_->steps_in_flight() < scheduler_->options().depth &&
           !scheduler_->plan().empty()) {
    }
    const size_t released = scheduler_->commit().released.size();
    for (size_t i = 0; i < released; ++i) add();
  }
  /// Steps until the next event; returns how many.
  int32_t jump() {
    scheduler_->plan();
    const int32_t steps = 1 + scheduler_->horizon();
    const size_t released = scheduler_->commit_many(steps).released.size();
    for (size_t i = 0; i < released; ++i) add();
    return steps;
  }
  Scheduler& scheduler() { return *scheduler_; }

 private:
  static constexpr int32_t kPromptTokens = 128;
  static constexpr size_t kPromptBlocks = kPromptTokens / kBlockTokens;
  void add() {
    const uint64_t family = rng_.below(200);
    BlockKey keys[kPromptBlocks];
    for (size_t i = 0; i < kPromptBlocks; ++i) {
      keys[i] = {.low = i < kPromptBlocks / 2 ? family : rng_.next_u64(), .high = i};
    }
    const Result<Handle> added = scheduler_->add(
        {.prompt_tokens = kPromptTokens,
         .max_new_tokens = 1 + static_cast<int32_t>(rng_.below(static_cast<uint64_t>(output_max_))),
         .block_keys = keys});
    PRONY_CHECK(added.ok());
  }
  int32_t output_max_;
  core::Rng rng_{1};
  std::unique_ptr<Scheduler> scheduler_;
};

void report(benchmark::State& state, const SchedulerStats& before, const SchedulerStats& after) {
  const auto tokens = static_cast<double>(after.scheduled_tokens - before.scheduled_tokens);
  const auto steps = static_cast<double>(after.steps - before.steps);
  state.counters["per_token"] =
      benchmark::Counter(tokens, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["tokens_per_step"] = tokens / steps;
  state.counters["preemptions"] = static_cast<double>(after.preemptions - before.preemptions);
}

/// Plan and commit of pure decode: long outputs, nobody arrives or ends.
void decode(benchmark::State& state) {
  const auto sequences = static_cast<int32_t>(state.range(0));
  SchedulerOptions options;
  options.depth = static_cast<int32_t>(state.range(1));
  options.max_sequences = sequences;
  options.max_context = 1 << 20;
  options.block_count = sequences << 13;
  auto scheduler = std::move(*Scheduler::create(options));
  const auto restart = [&] {
    for (int32_t i = 0; i < sequences; ++i) {
      PRONY_CHECK(scheduler->add({.prompt_tokens = 1 + i % 16, .max_new_tokens = 100'000}).ok());
    }
  };
  restart();
  for (int i = 0; i < 1000; ++i) {
    while (scheduler->steps_in_flight() < options.depth) scheduler->plan();
    scheduler->commit();
  }
  const SchedulerStats before = scheduler->stats();
  for (auto _ : state) {
    while (scheduler->steps_in_flight() < options.depth && !scheduler->plan().empty()) {
    }
    scheduler->commit();
    if (scheduler->idle()) restart();
  }
  report(state, before, scheduler->stats());
}

/// Everything: arrivals with prefix keys, chunked prefill, decode, ends.
void service(benchmark::State& state) {
  SchedulerOptions options;
  options.depth = static_cast<int32_t>(state.range(1));
  Load load(static_cast<int32_t>(state.range(0)), 512, options);
  for (int i = 0; i < 2000; ++i) load.step();
  const SchedulerStats before = load.scheduler().stats();
  for (auto _ : state) load.step();
  report(state, before, load.scheduler().stats());
}

/// As service, but jumping from event to event, as a simulator does.
void jumps(benchmark::State& state) {
  Load load(static_cast<int32_t>(state.range(0)), 512, {});
  for (int i = 0; i < 2000; ++i) load.jump();
  const SchedulerStats before = load.scheduler().stats();
  int64_t steps = 0;
  int64_t calls = 0;
  for (auto _ : state) {
    steps += load.jump();
    ++calls;
  }
  report(state, before, load.scheduler().stats());
  state.counters["steps_per_jump"] = static_cast<double>(steps) / static_cast<double>(calls);
}

BENCHMARK(decode)->ArgsProduct({{1, 64, 256, 1024}, {1, 2}});
BENCHMARK(service)->ArgsProduct({{1, 64, 256, 1024}, {1, 2}});
BENCHMARK(jumps)->Arg(1)->Arg(64)->Arg(256)->Arg(1024);

}  // namespace
}  // namespace prony::sched
