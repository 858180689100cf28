// CudaBatch: a StepPlan as the arrays that the device library wants: rows of one token first, since
// another kernel serves them, page tables one after another, and which row each sample belongs to.
// In a step of such rows alone every row is a sample: that is what a CUDA graph of the step
// computes. Nothing is allocated once the largest step was seen. Thread safety: one thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "prony/kernels/cuda/abi.hpp"
#include "prony/sched/step_plan.hpp"

namespace prony::engine {

class CudaBatch {
 public:
  /// `tokens[i]` are all known tokens of the request of plan row i.
  void build(const sched::StepPlan& plan, std::span<const std::span<const int32_t>> tokens);

  /// Valid until the next build().
  kernels::cuda::StepBatch view() const;
  /// Where the logits of plan row i are among the samples; -1 if there are none.
  int32_t sample_of(size_t plan_row) const { return sample_of_[plan_row]; }

 private:
  void add(const sched::StepRow& row, std::span<const int32_t> tokens);

  int32_t decode_rows_ = 0;
  std::vector<int32_t> token_ids_, positions_, slots_;                              // [tokens]
  std::vector<int32_t> row_start_, row_tokens_, kv_tokens_, table_start_, tables_;  // [rows]
  std::vector<int32_t> sample_tokens_, sample_of_;
};

}  // namespace prony::engine
