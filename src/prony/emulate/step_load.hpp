// StepLoad: what a step is asked to compute, as few sums: all that the duration of a step depends
// on. Decodes are their number and the tokens they read; prefills stay apart, for they are few.
// Thread safety: a value.
#pragma once
#include <cstdint>
#include <vector>

#include "prony/sched/step_plan.hpp"

namespace prony::emulate {

struct StepLoad {
  struct Prefill {
    int64_t context = 0;     // tokens already in the KV cache
    int64_t new_tokens = 0;  // > 1
    bool operator==(const Prefill&) const = default;
  };
  int64_t decodes = 0;      // rows of one new token
  int64_t decode_keys = 0;  // tokens in the KV cache that they read, their own new ones excluded
  int64_t samples = 0;      // rows that emit a token
  std::vector<Prefill> prefills;

  int64_t tokens() const {
    int64_t sum = decodes;
    for (const Prefill& prefill : prefills) sum += prefill.new_tokens;
    return sum;
  }
  int64_t rows() const { return decodes + static_cast<int64_t>(prefills.size()); }

  /// Becomes the load of `plan`; keeps its memory.
  void assign(const sched::StepPlan& plan);
  /// Becomes the load of the next of several steps in which the same rows decode.
  void advance() { decode_keys += decodes; }
  bool operator==(const StepLoad&) const = default;
};

}  // namespace prony::emulate
