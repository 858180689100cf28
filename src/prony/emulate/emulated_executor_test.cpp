// The executor under the scheduler it serves with: steps end when they are due, tokens repeat.
#include "prony/emulate/emulated_executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "prony/sched/scheduler.hpp"

namespace prony::emulate {
namespace {

/// 1 ms a step and 1 us a token.
class PlainTime final : public StepTime {
 public:
  core::Nanos step_ns(const StepLoad& load) override {
    return load.rows() == 0 ? 0 : 1'000'000 + 1000 * load.tokens();
  }
};

EmulatedOptions options() {
  EmulatedOptions out;
  out.hardware = "h100-sxm";
  out.capacity = {
      .block_count = 64, .max_tokens_per_step = 64, .max_sequences = 4, .max_context = 256};
  out.first_token = 'a';
  return out;
}

struct Run {
  std::map<sched::Handle, std::string> text;
  core::Nanos end_ns = 0;
};

// Two requests to their end, with the host `between_ns` busy between steps.
Run play(core::Clock& clock, EmulatedExecutor& executor, core::Nanos between_ns) {
  const auto scheduler = sched::Scheduler::create(sched::options_for(executor)).value();
  std::vector<sched::Handle> handles;
  for (const int32_t prompt : {100, 10}) {
    sched::RequestSpec spec;
    spec.prompt_tokens = prompt;
    spec.max_new_tokens = 5;
    handles.push_back(scheduler->add(spec).value());
    sched::RequestInput input;
    input.prompt.assign(static_cast<size_t>(prompt), 'x');
    input.sampling.seed = 9;
    input.max_new_tokens = 5;
    executor.start(handles.back(), std::move(input));
  }
  Run run;
  for (int steps = 0; steps < 40; ++steps) {
    const sched::StepPlan& plan = scheduler->plan();
    if (plan.empty()) break;
    executor.submit(plan);
    const auto result = executor.wait();
    for (const auto& token : result.value().tokens) {
      run.text[token.handle] += static_cast<char>(token.token);
    }
    scheduler->commit();
    run.end_ns = clock.now_ns();
    clock.sleep_until(clock.now_ns() + between_ns);
  }
  return run;
}

TEST(EmulatedExecutor, StepsEndWhenTheyAreDue) {
  core::ManualClock clock(1'000'000'000);
  EmulatedExecutor executor(std::make_unique<PlainTime>(), clock, options());
  EXPECT_EQ(executor.device(), "emulated:h100-sxm");
  const auto run = play(clock, executor, 0);
  // 100 + 10 prompt tokens in steps of 64, then 4 more tokens each.
  const auto steps = static_cast<core::Nanos>(executor.lateness().steps);
  EXPECT_EQ(run.end_ns - 1'000'000'000, steps * 1'000'000 + (100 + 10 + 8) * 1000);
  EXPECT_EQ(executor.lateness().worst_ns, 0);
  ASSERT_EQ(run.text.size(), 2u);
  for (const auto& [handle, text] : run.text) {
    EXPECT_EQ(text.size(), 5u);
    EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; }));
  }
}

TEST(EmulatedExecutor, TheHostsShortHandoverIsNotAddedAndALongOneIs) {
  core::ManualClock quick(5'000'000'000), slow(5'000'000'000), none(5'000'000'000);
  EmulatedExecutor first(std::make_unique<PlainTime>(), quick, options());
  EmulatedExecutor second(std::make_unique<PlainTime>(), slow, options());
  EmulatedExecutor third(std::make_unique<PlainTime>(), none, options());
  const auto without = play(none, third, 0);
  const auto with_short = play(quick, first, 100'000);
  const auto with_long = play(slow, second, 2'000'000);
  EXPECT_EQ(with_short.end_ns, without.end_ns);
  EXPECT_EQ(with_long.end_ns,
            without.end_ns + 2'000'000 * static_cast<core::Nanos>(second.lateness().steps - 1));
  EXPECT_EQ(with_short.text, without.text);
}

TEST(EmulatedExecutor, OnTheRealClockIsLateByFarLessThanAStep) {
  core::MonotonicClock clock;
  EmulatedExecutor executor(std::make_unique<PlainTime>(), clock, options());
  (void)play(clock, executor, 0);
  EXPECT_GE(executor.lateness().steps, 5u);
  EXPECT_LT(executor.lateness().last_ns, 200'000'000);  // a busy host; idle: 0.1 ms
}

}  // namespace
}  // namespace prony::emulate
