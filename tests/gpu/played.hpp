// Plays requests through the real scheduler and the CUDA executor; what came out of each, logits
// included. Thread safety: one thread.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/engine/cuda_executor.hpp"
#include "prony/sched/block_key.hpp"
#include "prony/sched/scheduler.hpp"

namespace prony::gpu {

struct PlayedRequest {
  std::vector<int32_t> prompt;
  int32_t max_new_tokens = 1;
  sched::Sampling sampling;
};

struct PlayedOutput {
  std::vector<int32_t> tokens;
  std::vector<std::vector<float>> logits;  // [output][vocab]
};

inline std::vector<PlayedOutput> play(engine::CudaExecutor& executor,
                                      const std::vector<PlayedRequest>& requests) {
  sched::SchedulerOptions options = sched::options_for(executor);
  options.prefix_caching = false;
  auto scheduler = sched::Scheduler::create(options).value();
  std::vector<PlayedOutput> outputs(requests.size());
  std::map<sched::Handle, size_t> of;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto handle =
        scheduler->add({.prompt_tokens = static_cast<int32_t>(requests[i].prompt.size()),
                        .max_new_tokens = requests[i].max_new_tokens,
                        .block_keys = {}});
    PRONY_CHECK(handle.ok(), handle.error().message);
    executor.start(*handle, {.prompt = requests[i].prompt,
                             .sampling = requests[i].sampling,
                             .max_new_tokens = requests[i].max_new_tokens});
    of[*handle] = i;
  }
  for (int step = 0; !scheduler->idle(); ++step) {
    PRONY_CHECK(step < 100'000, "no progress");
    executor.submit(scheduler->plan());
    const auto result = executor.wait();
    PRONY_CHECK(result.ok(), result.error().message);
    for (size_t i = 0; i < result->tokens.size(); ++i) {
      PlayedOutput& output = outputs[of.at(result->tokens[i].handle)];
      output.tokens.push_back(result->tokens[i].token);
      output.logits.emplace_back(static_cast<size_t>(executor.sample_vocab()));
      const auto read = executor.read_logits(i, output.logits.back());
      PRONY_CHECK(read.ok(), read.error().message);
    }
    for (const sched::Handle handle : scheduler->commit().released) executor.finish(handle);
  }
  return outputs;
}

}  // namespace prony::gpu
