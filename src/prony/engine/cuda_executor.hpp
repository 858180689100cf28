// CudaExecutor: sched::Executor on one Hopper GPU through libprony_cuda.so: weights and KV cache in
// bf16, the residual stream and all sums in fp32, activations between kernels in bf16. submit()
// enqueues the whole step and returns; wait() polls its end with a limit. Greedy tokens are chosen
// on the device; a row that draws, bans tokens or wants alternatives brings its logits to the CPU
// engine's Sampler, so equal logits give equal tokens on both.
// A step's result repeats bit by bit; it may differ in the last bits with what else is in the step,
// since matrix products choose their order of sums by the number of rows.
// Thread safety: one caller thread; creation may be on another.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prony/catalog/model_spec.hpp"
#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"
#include "prony/engine/cuda_batch.hpp"
#include "prony/engine/sampler.hpp"
#include "prony/engine/support.hpp"
#include "prony/engine/tensor_source.hpp"
#include "prony/kernels/cuda/abi.hpp"
#include "prony/sched/executor.hpp"

namespace prony::engine {

struct CudaExecutorOptions {
  int32_t sample_vocab = 0;  // as CpuExecutorOptions
  int32_t max_tokens_per_step = 8192;
  int32_t max_sequences = 256;
  int32_t max_context = 0;                // tokens of a request; 0: the model's
  std::optional<int32_t> block_count;     // KV blocks; absent: from kv_cache_bytes
  std::optional<int64_t> kv_cache_bytes;  // upper bound; absent: what memory_fraction leaves
  double memory_fraction = 0.92;          // of the device's memory that may be in use
  bool graphs = true;                     // decode steps replay CUDA graphs
  int threads = 1;                        // that read and round the weights
  core::Nanos step_limit_ns = 60 * core::kNanosPerSecond;  // a longer step is a hang
};

class CudaExecutor final : public sched::Executor {
 public:
  /// Plans memory, refuses what does not fit, loads the weights. `api` from open_cuda_plugin().
  /// Error: kInvalidArgument naming the model and feature, or the option; kEnvironment if there is
  /// no GPU, another generation, or too little memory; or what `source` says.
  static Result<std::unique_ptr<CudaExecutor>> create(const kernels::cuda::Api& api,
                                                      const catalog::ModelSpec& spec,
                                                      const TensorSource& source,
                                                      const CudaExecutorOptions& options);
  ~CudaExecutor() override;
  CudaExecutor(const CudaExecutor&) = delete;
  CudaExecutor& operator=(const CudaExecutor&) = delete;

  Capacity capacity() const override { return capacity_; }
  int depth() const override { return 1; }
  std::string device() const override { return "cuda"; }
  void start(sched::Handle handle, sched::RequestInput input) override;
  void finish(sched::Handle handle) override;
  void submit(const sched::StepPlan& plan) override;
  Result<sched::StepResult> wait() override;

  const MemoryNeed& memory() const noexcept { return memory_; }
  const kernels::cuda::DeviceInfo& device_info() const noexcept { return device_; }
  int32_t sample_vocab() const noexcept { return sample_vocab_; }
  /// Logits of the i-th row that sampled in the last step. Requires that a wait() was good.
  Result<void> read_logits(size_t i, std::span<float> out /* [sample_vocab] */);

 private:
  struct Request {
    bool live = false;
    int32_t prompt_tokens = 0;
    std::vector<int32_t> tokens;  // prompt, then what was sampled
    sched::Sampling sampling;
  };
  CudaExecutor(const kernels::cuda::Api& api, const catalog::ModelSpec& spec,
               const CudaExecutorOptions& options, const Capacity& capacity);
  Request& live(sched::Handle handle);
  Result<kernels::cuda::StepOutput> poll();
  Result<void> take_sample(const sched::StepRow& row, int32_t sample,
                           const kernels::cuda::StepOutput& output);
  Result<Sampler::Choice> choose(const Request& request, int32_t sample,
                                 std::span<sched::TokenLogprob> top);

  const kernels::cuda::Api& api_;
  catalog::ModelSpec spec_;
  kernels::cuda::Engine* engine_ = nullptr;
  kernels::cuda::DeviceInfo device_;
  Capacity capacity_;
  MemoryNeed memory_;
  int32_t sample_vocab_ = 0;
  core::Nanos step_limit_ns_ = 0;
  Sampler sampler_;
  CudaBatch batch_;
  std::optional<Error> submit_error_;  // told by the next wait()
  std::vector<Request> requests_;      // [handle]
  const sched::StepPlan* pending_ = nullptr;
  std::vector<std::span<const int32_t>> row_tokens_;
  std::vector<float> logits_;                 // [sample_vocab] of a row that the host samples
  std::vector<sched::SampledToken> sampled_;  // of the step
  std::vector<int32_t> sample_index_;         // beside sampled_
  std::vector<sched::TokenLogprob> top_;
  size_t top_used_ = 0;
};

}  // namespace prony::engine
