// CpuExecutor: sched::Executor on the CPU: weights, KV pages, forward pass and sampler. A step runs
// inside wait(), on the caller's thread and `threads - 1` others: submit() only notes the plan, so
// depth() is 1 and nothing runs between the calls. The server's step loop owns that thread.
// Results do not depend on what else is in a step: equal prompts give equal bits alone, batched,
// chunked, preempted and on a prefix hit (see kernels.hpp; this is always on, it costs nothing).
// Thread safety: one caller thread; creation may be on another.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prony/catalog/model_spec.hpp"
#include "prony/core/result.hpp"
#include "prony/engine/forward.hpp"
#include "prony/engine/kv_store.hpp"
#include "prony/engine/model.hpp"
#include "prony/engine/sampler.hpp"
#include "prony/engine/support.hpp"
#include "prony/engine/tensor_source.hpp"
#include "prony/kernels/isa.hpp"
#include "prony/kernels/thread_pool.hpp"
#include "prony/sched/executor.hpp"

namespace prony::engine {

struct CpuExecutorOptions {
  // Changes results.
  kernels::Dtype dtype = kernels::Dtype::kBf16;  // of weights; KV cache: fp32 with fp32, else bf16
  /// Products of bf16 weights read activations rounded to bf16 (ForwardOptions); absent: where the
  /// processor has AMX, which is several times as fast then.
  std::optional<bool> bf16_rows = false;
  /// Tokens that may be sampled: ids below this. 0: the model's vocabulary. For a tokenizer smaller
  /// than the model's, as the byte tokenizer with the shape of a large model.
  int32_t sample_vocab = 0;

  // Changes limits and speed.
  int threads = 1;
  int32_t max_tokens_per_step = 512;
  int32_t max_sequences = 64;
  int32_t max_context = 0;                      // tokens of a request; 0: the model's
  std::optional<int32_t> block_count;           // KV blocks; absent: from kv_cache_bytes
  int64_t kv_cache_bytes = int64_t{512} << 20;  // upper bound; less if max_sequences needs less
  std::optional<kernels::Isa> isa;  // absent: PRONY_ISA, else the fastest this machine has
  bool touch_memory = true;         // at start, so that no step pays for the first use
  /// Memory the engine may take; absent: what the machine has available.
  std::optional<int64_t> memory_available_bytes;
};

class CpuExecutor final : public sched::Executor {
 public:
  /// Plans memory, refuses what does not fit, loads the weights.
  /// Error: kInvalidArgument naming the model and feature, or the option; kEnvironment if memory or
  /// the instruction set is lacking; or what `source` says.
  static Result<std::unique_ptr<CpuExecutor>> create(const catalog::ModelSpec& spec,
                                                     const TensorSource& source,
                                                     const CpuExecutorOptions& options);

  Capacity capacity() const override { return capacity_; }
  int depth() const override { return 1; }
  std::string device() const override { return "cpu"; }
  /// Requires 1 or more tokens, all of the vocabulary (checked): the server refuses others.
  void start(sched::Handle handle, sched::RequestInput input) override;
  void finish(sched::Handle handle) override;
  void submit(const sched::StepPlan& plan) override;
  /// Error: kFailed, "model M: logits are not finite at position P"; then, as of any error, only
  /// the destructor may be called.
  Result<sched::StepResult> wait() override;

  const catalog::ModelSpec& model() const noexcept { return model_.spec(); }
  kernels::Isa isa() const noexcept { return kernels_->isa; }
  kernels::Dtype dtype() const noexcept { return model_.dtype(); }
  bool bf16_rows() const noexcept { return bf16_rows_; }
  const MemoryNeed& memory() const noexcept { return memory_; }
  int32_t sample_vocab() const noexcept { return sample_vocab_; }

  /// Sees every pass, and the logits of every sampling row before they are used. Null: nobody.
  class Observer : public ForwardObserver {
   public:
    virtual void on_logits(sched::Handle handle, int32_t output_index,
                           std::span<const float> logits /* [sample_vocab] */) = 0;
  };
  void set_observer(Observer* observer) { observer_ = observer; }

  /// Times the operators of every step from now on; null: none. Not while a step is in flight.
  void set_trace(OperatorTrace* trace);
  /// What the machine can do at most, on this executor's threads. Not while a step is in flight.
  Result<kernels::Ceilings> measure_ceilings() {
    return kernels::measure_ceilings(*kernels_, *pool_);
  }

 private:
  struct Request {
    bool live = false;
    int32_t prompt_tokens = 0;
    std::vector<int32_t> tokens;  // prompt, then what was sampled
    sched::Sampling sampling;
    int32_t output_index() const {  // of the token to be sampled next
      return static_cast<int32_t>(tokens.size()) - prompt_tokens;
    }
  };
  CpuExecutor(std::unique_ptr<kernels::ThreadPool> pool, Model model, KvStore kv,
              const kernels::Kernels& kernels, const CpuExecutorOptions& options,
              const Capacity& capacity);
  Request& live(sched::Handle handle);
  void prepare(const sched::StepPlan& plan);
  Result<void> sample_rows(const sched::StepPlan& plan);
  Result<void> sample_row(const sched::StepRow& row, int32_t logits_row);

  std::unique_ptr<kernels::ThreadPool> pool_;  // its address is Forward's
  const kernels::Kernels* kernels_;
  bool bf16_rows_;
  Model model_;
  KvStore kv_;
  std::optional<Forward> forward_;  // points to the members above: the executor never moves
  Sampler sampler_;
  Capacity capacity_;
  MemoryNeed memory_;
  int32_t sample_vocab_ = 0;
  Observer* observer_ = nullptr;
  OperatorTrace* trace_ = nullptr;

  std::vector<Request> requests_;             // [handle]
  const sched::StepPlan* pending_ = nullptr;  // submitted, not waited for
  std::vector<ForwardRow> rows_;              // [max_sequences]
  std::vector<sched::SampledToken> sampled_;  // [max_sequences]
  std::vector<sched::TokenLogprob> top_;      // of all rows of the step
  size_t top_used_ = 0;
};

}  // namespace prony::engine
