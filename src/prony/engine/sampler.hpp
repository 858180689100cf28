// Sampler: the next token from logits. Greedy below kGreedyTemperature; otherwise
// softmax(logits / temperature), cut first to the top_k largest, then to the fewest of these whose
// share reaches top_p (that order is vLLM's), then drawn by inversion with one uniform number that
// depends on (seed, output index) alone: the batch, the row and preemption cannot change a draw.
// "Largest" is a total order, the lower token id first among equal logits, so ties are cut alike
// everywhere.
// Log-probabilities are those of the model: log softmax of the raw logits, before temperature, cuts
// and bans. Thread safety: one thread; it keeps scratch of the vocabulary's size.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/kernels/kernels.hpp"
#include "prony/sched/executor.hpp"

namespace prony::engine {

/// Dividing by less would overflow; the distribution is a single spike long before.
inline constexpr float kGreedyTemperature = 1e-5f;

class Sampler {
 public:
  /// For up to `vocabulary` logits.
  Sampler(int32_t vocabulary, const kernels::Kernels& kernels);

  struct Choice {
    int32_t token = 0;
    float logprob = 0;  // of `token`, if asked for
  };
  /// Chooses among logits[0, n); `logits` is changed. `top` gets the sampling.logprobs best tokens,
  /// best first, if that is positive; it must have room for min(logprobs, n) (checked).
  /// Error: kFailed if a logit is not finite, or if min_tokens bans every token.
  Result<Choice> sample(std::span<float> logits /* [n] */, const sched::Sampling& sampling,
                        int32_t output_index, std::span<sched::TokenLogprob> top);

 private:
  bool precedes(std::span<const float> logits, int32_t a, int32_t b) const;
  double log_sum_exp(std::span<const float> logits, float largest);
  void best(std::span<const float> logits, double log_sum, std::span<sched::TokenLogprob> top);
  int32_t draw(std::span<const float> logits, float largest, const sched::Sampling& sampling,
               int32_t output_index);
  int32_t draw_from_all(size_t n, double uniform) const;
  int32_t draw_from_cut(std::span<const float> logits, const sched::Sampling& sampling,
                        double uniform);

  const kernels::Kernels& kernels_;
  std::vector<float> weights_;  // [vocabulary] exp((logit - largest) / temperature)
  std::vector<int32_t> order_;  // [vocabulary] candidates
};

}  // namespace prony::engine
