// Serves requests through the real scheduler and the CPU executor, for the equality tests: what
// came out for each request, bit by bit, and what the scheduler did on the way. Thread safety: one
// thread.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/engine/cpu_executor.hpp"
#include "prony/engine/dummy_tensors.hpp"
#include "prony/sched/block_key.hpp"
#include "prony/sched/scheduler.hpp"

namespace prony::engine {

struct ServedRequest {
  std::vector<int32_t> prompt;
  int32_t max_new_tokens = 1;
  sched::Sampling sampling;
  int32_t after_step = 0;  // joins when this many steps are done
};

struct ServedOutput {
  std::vector<int32_t> tokens;
  std::vector<float> logits;  // [tokens][vocab], as seen before sampling
  int32_t preemptions = 0;
  int32_t first_position_max = 0;  // where its first row ever began: > 0 means a prefix hit
};

class Server final : public CpuExecutor::Observer {
 public:
  Server(std::unique_ptr<CpuExecutor> executor, sched::SchedulerOptions options)
      : executor_(std::move(executor)), scheduler_(sched::Scheduler::create(options).value()) {
    executor_->set_observer(this);
  }

  CpuExecutor& executor() { return *executor_; }
  sched::SchedulerStats stats() const { return scheduler_->stats(); }

  /// All requests to their end.
  std::vector<ServedOutput> serve(const std::vector<ServedRequest>& requests) {
    std::vector<ServedOutput> outputs(requests.size());
    size_t added = 0;
    for (int32_t step = 0; added < requests.size() || !scheduler_->idle(); ++step) {
      PRONY_CHECK(step < 100'000, "no progress");
      while (added < requests.size() && requests[added].after_step <= step) {
        add(requests[added], &outputs[added]);
        ++added;
      }
      run_step();
    }
    return outputs;
  }

 private:
  struct Live {
    ServedOutput* output = nullptr;
    std::vector<int32_t> tokens;  // prompt and output: the source of block keys
    std::vector<sched::BlockKey> keys;
    bool started = false;  // a row of it has run
  };

  void add(const ServedRequest& request, ServedOutput* output) {
    Live live{.output = output, .tokens = request.prompt, .keys = {}};
    sched::extend_keys(0, live.tokens, live.keys);
    const auto handle =
        scheduler_->add({.prompt_tokens = static_cast<int32_t>(request.prompt.size()),
                         .max_new_tokens = request.max_new_tokens,
                         .block_keys = live.keys});
    PRONY_CHECK(handle.ok(), handle.error().message);
    executor_->start(*handle, {.prompt = request.prompt,
                               .sampling = request.sampling,
                               .max_new_tokens = request.max_new_tokens});
    live_[*handle] = std::move(live);
  }

  void run_step() {
    const sched::StepPlan& plan = scheduler_->plan();
    if (plan.empty()) return;
    for (const sched::Handle handle : plan.preempted) ++live_.at(handle).output->preemptions;
    for (const sched::StepRow& row : plan.rows) {
      Live& live = live_.at(row.handle);
      if (!live.started) live.output->first_position_max = row.first_position;
      live.started = true;
    }
    executor_->submit(plan);
    const auto result = executor_->wait();
    PRONY_CHECK(result.ok(), result.error().message);
    for (const sched::SampledToken& token : result->tokens) {
      Live& live = live_.at(token.handle);
      live.output->tokens.push_back(token.token);
      live.tokens.push_back(token.token);
      const size_t known = live.keys.size();
      // The key of a block may be named once its last token is known.
      sched::extend_keys(0, live.tokens, live.keys);
      for (size_t i = known; i < live.keys.size(); ++i) {
        scheduler_->append_key(token.handle, live.keys[i]);
      }
    }
    for (const sched::Handle handle : scheduler_->commit().released) {
      executor_->finish(handle);
      live_.erase(handle);
    }
    const auto integrity = scheduler_->check_integrity();
    PRONY_CHECK(integrity.ok(), integrity.error().message);
  }

  void on_hidden(int32_t, const float*, int64_t, int64_t) override {}
  void on_logits(sched::Handle handle, int32_t output_index,
                 std::span<const float> logits) override {
    std::vector<float>& all = live_.at(handle).output->logits;
    PRONY_CHECK(all.size() == static_cast<size_t>(output_index) * logits.size());
    all.insert(all.end(), logits.begin(), logits.end());
  }

  std::unique_ptr<CpuExecutor> executor_;
  std::unique_ptr<sched::Scheduler> scheduler_;
  std::map<sched::Handle, Live> live_;
};

}  // namespace prony::engine
