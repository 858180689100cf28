#include "prony/emulate/emulated_executor.hpp"

#include <algorithm>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/core/rng.hpp"
#include "prony/core/scheduling.hpp"

namespace prony::emulate {

EmulatedExecutor::EmulatedExecutor(std::unique_ptr<StepTime> time, core::Clock& clock,
                                   EmulatedOptions options)
    : time_(std::move(time)),
      clock_(clock),
      options_(std::move(options)),
      noise_(options_.noise_cv, options_.seed) {
  PRONY_CHECK(options_.token_count >= 1, "tokens to sample");
  sampled_.reserve(static_cast<size_t>(options_.capacity.max_sequences));
}

void EmulatedExecutor::start(sched::Handle handle, sched::RequestInput input) {
  PRONY_CHECK(!input.prompt.empty(), "empty prompt");
  if (handle >= requests_.size()) requests_.resize(handle + 1);
  auto& request = requests_[handle];
  PRONY_CHECK(!request.live, "handle is in use");
  request = {true, input.sampling.seed, static_cast<int32_t>(input.prompt.size())};
}

void EmulatedExecutor::finish(sched::Handle handle) {
  PRONY_CHECK(handle < requests_.size() && requests_[handle].live, "no such request");
  requests_[handle] = {};
}

void EmulatedExecutor::submit(const sched::StepPlan& plan) {
  PRONY_CHECK(pending_ == nullptr, "a step is in flight and depth() is 1");
  if (lateness_.steps == 0 && options_.first_among_threads) core::prefer_thread();
  PRONY_CHECK(plan.loads.empty(), "the emulated executor loads no remote KV");
  pending_ = &plan;
  load_.assign(plan);
  const core::Nanos now = clock_.now_ns();
  const core::Nanos begin = now - due_ns_ < kHandoverNs ? due_ns_ : now;
  due_ns_ = begin + noise_.apply(time_->step_ns(load_), plan.step);
}

Result<sched::StepResult> EmulatedExecutor::wait() {
  PRONY_CHECK(pending_ != nullptr, "no step is in flight");
  const sched::StepPlan& plan = *std::exchange(pending_, nullptr);
  sampled_.clear();
  for (const sched::StepRow& row : plan.rows) {
    if (!row.samples) continue;
    const Request& request = requests_[row.handle];
    const auto output =
        static_cast<uint64_t>(row.first_position + row.token_count - request.prompt_tokens);
    core::Rng rng(request.seed, output);
    const auto offset = rng.below(static_cast<uint64_t>(options_.token_count));
    sampled_.push_back(
        {.handle = row.handle, .token = options_.first_token + static_cast<int32_t>(offset)});
  }
  clock_.sleep_until(due_ns_);
  ++lateness_.steps;
  lateness_.last_ns = clock_.now_ns() - due_ns_;
  lateness_.worst_ns = std::max(lateness_.worst_ns, lateness_.last_ns);
  return sched::StepResult{plan.step, sampled_};
}

}  // namespace prony::emulate
