// Executor: runs StepPlans. Implementations: the CPU and CUDA engines (engine/), and a stand-in
// that waits the predicted time on a clock (emulate/). The caller keeps at most `depth()` steps
// between submit() and wait(), so an executor may overlap a step with the scheduling of the next.
// Tokens are the executor's: it keeps prompt and generated tokens of every started request, appends
// what it samples, and after a preemption recomputes from them, so plans need no tokens.
// Thread safety: one caller thread; an implementation may have threads of its own.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/sched/step_plan.hpp"

namespace prony::sched {

/// How to choose the next token. Random draws are keyed by (seed, output index), never by batch
/// row.
struct Sampling {
  float temperature = 0;  // 0: greedy
  float top_p = 1;        // nucleus mass in (0, 1]
  int32_t top_k = 0;      // 0: all
  uint64_t seed = 0;
  int32_t logprobs = -1;   // top alternatives to report; -1: none, 0: the chosen one only
  int32_t min_tokens = 0;  // until then `banned_before_min` cannot be sampled
  std::vector<int32_t> banned_before_min;  // end-of-sequence ids
};

struct RequestInput {
  std::vector<int32_t> prompt;  // token ids, at least one
  Sampling sampling;
  int32_t max_new_tokens = 0;  // so that the executor can reserve its buffers once
};

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
};

struct SampledToken {
  Handle handle = 0;
  int32_t token = 0;
  float logprob = 0;                  // of `token`; 0 unless asked for
  std::span<const TokenLogprob> top;  // valid until the next wait()
};

struct StepResult {
  uint64_t step = 0;
  /// One per row with samples, in row order; valid until the next wait().
  std::span<const SampledToken> tokens;
};

class Executor {
 public:
  virtual ~Executor() = default;

  /// Limits the scheduler must respect.
  struct Capacity {
    int32_t block_count = 0;  // KV blocks of kBlockTokens tokens
    int32_t max_tokens_per_step = 0;
    int32_t max_sequences = 0;
    int32_t max_context = 0;  // tokens, prompt and output together
  };
  virtual Capacity capacity() const = 0;
  /// Steps that may be submitted and not yet waited for; at least 1.
  virtual int depth() const { return 1; }
  /// "cpu", "cuda", or "emulated:<hardware id>"; goes out as X-Prony-Device.
  virtual std::string device() const = 0;

  /// Before the first plan with this handle.
  virtual void start(Handle handle, RequestInput input) = 0;
  /// After the last step with this handle was waited for; frees what the executor keeps for it.
  virtual void finish(Handle handle) = 0;

  virtual void submit(const StepPlan& plan) = 0;
  /// Blocks until the oldest submitted step is done. Error: kEnvironment if the device failed; then
  /// no further call but the destructor is allowed.
  virtual Result<StepResult> wait() = 0;
};

}  // namespace prony::sched
