#include "prony/sim/replica.hpp"

#include <algorithm>
#include <utility>

#include "prony/core/check.hpp"

namespace prony::sim {

Replica::Replica(const Options& options, std::unique_ptr<sched::Scheduler> scheduler,
                 std::unique_ptr<emulate::StepTime> time)
    : options_(options),
      scheduler_(std::move(scheduler)),
      time_(std::move(time)),
      noise_(options.noise_cv, options.seed) {}

Result<std::unique_ptr<Replica>> Replica::create(const Options& options,
                                                 std::unique_ptr<emulate::StepTime> time) {
  auto scheduler = sched::Scheduler::create(options.scheduler);
  if (!scheduler) return scheduler.error();
  return std::unique_ptr<Replica>(
      new Replica(options, std::move(scheduler).value(), std::move(time)));
}

Result<void> Replica::add(int64_t request, const sched::RequestSpec& spec) {
  const auto handle = scheduler_->add(spec);
  if (!handle) return handle.error();
  if (*handle >= requests_.size()) {
    requests_.resize(*handle + 1);
    ended_.resize(*handle + 1, 0);
  }
  requests_[*handle] = {request, spec.prompt_tokens + spec.max_new_tokens};
  ++live_;
  pending_tokens_ += requests_[*handle].tokens;
  return {};
}

double Replica::kv_use() const {
  const auto stats = scheduler_->stats();
  return stats.block_count > 0
             ? 1 - static_cast<double>(stats.free_blocks) / static_cast<double>(stats.block_count)
             : 0;
}

std::optional<core::Nanos> Replica::begin(core::Nanos now_ns, core::Nanos until_ns) {
  if (running()) return std::nullopt;
  const sched::StepPlan& plan = scheduler_->plan();
  if (plan.empty()) return std::nullopt;
  PRONY_CHECK(plan.loads.empty(), "no remote KV in a replica");
  load_.assign(plan);
  sampling_.clear();
  for (const sched::StepRow& row : plan.rows) {
    if (row.samples) sampling_.push_back(row.handle);
  }
  step_ends_.clear();
  core::Nanos t_ns = now_ns;
  const int32_t most = options_.macro_steps ? 1 + scheduler_->horizon() : 1;
  for (step_count_ = 0; step_count_ < most; ++step_count_) {
    if (step_count_ > 0 && t_ns >= until_ns) break;
    t_ns += std::max<core::Nanos>(1, noise_.apply(time_->step_ns(load_), step_++));
    step_ends_.push_back(t_ns);
    load_.advance();
  }
  // All but the last are over before anything can come from outside, and end nobody's request.
  if (step_count_ > 1) {
    PRONY_CHECK(scheduler_->commit_many(step_count_ - 1).finished.empty(),
                "a step beyond the horizon");
    (void)scheduler_->plan();
  }
  totals_.steps += step_count_;
  totals_.tokens += load_.tokens() * step_count_;
  totals_.busy_ns += t_ns - now_ns;
  totals_.kv_use_max = std::max(totals_.kv_use_max, kv_use());
  return t_ns;
}

void Replica::end(const std::function<void(const TokensOut&)>& sink) {
  PRONY_CHECK(running(), "a step that ends has begun");
  step_count_ = 0;
  const auto& result = scheduler_->commit();
  for (const auto& finished : result.finished) ended_[finished.handle] = 1;
  for (const sched::Handle handle : sampling_) {
    const Request request = requests_[handle];
    const bool finished = std::exchange(ended_[handle], 0) != 0;
    if (finished) {
      --live_;
      pending_tokens_ -= request.tokens;
    }
    sink({.request = request.id, .t_ns = step_ends_, .finished = finished});
  }
}

}  // namespace prony::sim
