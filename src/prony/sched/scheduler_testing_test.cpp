// The small tools of scheduler_testing.hpp: plans as text and hash, and the Stepper.
#include "prony/sched/scheduler_testing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/core/check.hpp"

namespace prony::sched::testing {

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9E3779B97F4A7C15U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

uint64_t hash_plan(const StepPlan& plan) {
  uint64_t hash = mix(plan.step, plan.rows.size());
  const auto rows = [&](const std::vector<StepRow>& list) {
    for (const StepRow& row : list) {
      hash = mix(hash, row.handle);
      hash = mix(hash, static_cast<uint64_t>(row.first_position) << 32 |
                           static_cast<uint32_t>(row.token_count) << 1 | (row.samples ? 1U : 0U));
      for (const int32_t block : row.blocks) hash = mix(hash, static_cast<uint32_t>(block));
    }
  };
  rows(plan.rows);
  rows(plan.loads);
  for (const Handle handle : plan.preempted) hash = mix(hash, handle);
  return mix(hash, static_cast<uint64_t>(plan.token_count) << 32 |
                       static_cast<uint32_t>(plan.sample_count));
}

bool equal_plans(const StepPlan& a, const StepPlan& b) {
  const auto equal_rows = [](const StepRow& x, const StepRow& y) {
    return x.handle == y.handle && x.first_position == y.first_position &&
           x.token_count == y.token_count && x.samples == y.samples &&
           std::equal(x.blocks.begin(), x.blocks.end(), y.blocks.begin(), y.blocks.end());
  };
  return a.step == b.step && a.token_count == b.token_count && a.sample_count == b.sample_count &&
         a.preempted == b.preempted &&
         std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(), equal_rows) &&
         std::equal(a.loads.begin(), a.loads.end(), b.loads.begin(), b.loads.end(), equal_rows);
}

std::string describe(const StepPlan& plan) {
  std::string text = fmt::format("step {}:", plan.step);
  for (const StepRow& row : plan.rows) {
    text += fmt::format(" {}@{}+{}{}", row.handle, row.first_position, row.token_count,
                        row.samples ? "*" : "");
    text += fmt::format("[{}]", fmt::join(row.blocks, ","));
  }
  if (!plan.preempted.empty()) text += fmt::format(" preempted {}", fmt::join(plan.preempted, ","));
  for (const StepRow& row : plan.loads) {
    text += fmt::format(" load {}@{}+{}", row.handle, row.first_position, row.token_count);
  }
  return text;
}

std::string rows_of(const StepPlan& plan) {
  std::string text;
  for (const StepRow& row : plan.rows) {
    text += fmt::format("{}{}@{}+{}{}", text.empty() ? "" : " ", row.handle, row.first_position,
                        row.token_count, row.samples ? "*" : "");
  }
  return text;
}

std::vector<BlockKey> family_keys(uint64_t family, size_t count) {
  std::vector<BlockKey> keys;
  for (size_t i = 0; i < count; ++i) keys.push_back({.low = family, .high = i});
  return keys;
}

Stepper::Stepper(const SchedulerOptions& options) {
  auto created = Scheduler::create(options);
  PRONY_CHECK(created.ok(), created.ok() ? "" : created.error().message.c_str());
  scheduler_ = std::move(*created);
}

Handle Stepper::add(int32_t prompt, int32_t max_new, std::vector<BlockKey> keys, int32_t priority,
                    int32_t remote) {
  const Result<Handle> handle = scheduler_->add({.prompt_tokens = prompt,
                                                 .max_new_tokens = max_new,
                                                 .priority = priority,
                                                 .block_keys = keys,
                                                 .remote_tokens = remote});
  PRONY_CHECK(handle.ok(), handle.ok() ? "" : handle.error().message.c_str());
  return *handle;
}

std::string Stepper::error(const RequestSpec& spec) {
  const Result<Handle> handle = scheduler_->add(spec);
  return handle.ok() ? "" : handle.error().message;
}

std::string Stepper::step(std::vector<Handle> finished) {
  const StepPlan& plan = scheduler_->plan();
  std::string text = rows_of(plan);
  preempted = plan.preempted;
  if (!plan.empty()) result = &scheduler_->commit({.finished = finished});
  const Result<void> sound = scheduler_->check_integrity();
  PRONY_CHECK(sound.ok(), sound.ok() ? "" : sound.error().message.c_str());
  return text;
}

}  // namespace prony::sched::testing
