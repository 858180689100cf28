#include "prony/engine/sampler.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"
#include "prony/core/rng.hpp"

namespace prony::engine {
namespace {
// Finite, so that a banned token is never mistaken for a broken logit; its weight is exactly 0.
constexpr float kBanned = std::numeric_limits<float>::lowest();
}  // namespace

Sampler::Sampler(int32_t vocabulary, const kernels::Kernels& kernels)
    : kernels_(kernels),
      weights_(static_cast<size_t>(vocabulary)),
      order_(static_cast<size_t>(vocabulary)) {}

bool Sampler::precedes(std::span<const float> logits, int32_t a, int32_t b) const {
  const float left = logits[static_cast<size_t>(a)];
  const float right = logits[static_cast<size_t>(b)];
  return left != right ? left > right : a < b;
}

double Sampler::log_sum_exp(std::span<const float> logits, float largest) {
  kernels_.exp(logits.data(), weights_.data(), static_cast<int64_t>(logits.size()), largest, 1.0f);
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += static_cast<double>(weights_[i]);
  return static_cast<double>(largest) + core::math::log(sum);
}

void Sampler::best(std::span<const float> logits, double log_sum,
                   std::span<sched::TokenLogprob> top) {
  const std::span<int32_t> ids(order_.data(), logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::partial_sort(ids.begin(), ids.begin() + static_cast<int64_t>(top.size()), ids.end(),
                    [&](int32_t a, int32_t b) { return precedes(logits, a, b); });
  for (size_t i = 0; i < top.size(); ++i) {
    const double logit = static_cast<double>(logits[static_cast<size_t>(ids[i])]);
    top[i] = {.token = ids[i], .logprob = static_cast<float>(logit - log_sum)};
  }
}

Result<Sampler::Choice> Sampler::sample(std::span<float> logits, const sched::Sampling& sampling,
                                        int32_t output_index, std::span<sched::TokenLogprob> top) {
  const auto n = static_cast<int64_t>(logits.size());
  PRONY_CHECK(n >= 1 && logits.size() <= weights_.size());
  kernels::LargestResult largest = kernels_.largest(logits.data(), n);
  if (!largest.finite) return failed("logits are not finite");
  double log_sum = 0;
  if (sampling.logprobs >= 0) {
    log_sum = log_sum_exp(logits, largest.value);
    const auto wanted = static_cast<size_t>(std::min<int64_t>(sampling.logprobs, n));
    PRONY_CHECK(top.size() >= wanted);
    if (wanted > 0) best(logits, log_sum, top.first(wanted));
  }
  if (output_index < sampling.min_tokens) {
    for (const int32_t token : sampling.banned_before_min) {
      if (token >= 0 && token < n) logits[static_cast<size_t>(token)] = kBanned;
    }
    largest = kernels_.largest(logits.data(), n);
    if (largest.value == kBanned) return failed("min_tokens bans every token");
  }
  Choice choice;
  choice.token = sampling.temperature < kGreedyTemperature
                     ? static_cast<int32_t>(largest.index)
                     : draw(logits, largest.value, sampling, output_index);
  if (sampling.logprobs >= 0) {
    const auto logit = static_cast<double>(logits[static_cast<size_t>(choice.token)]);
    choice.logprob = static_cast<float>(logit - log_sum);
  }
  return choice;
}

int32_t Sampler::draw(std::span<const float> logits, float largest, const sched::Sampling& sampling,
                      int32_t output_index) {
  kernels_.exp(logits.data(), weights_.data(), static_cast<int64_t>(logits.size()), largest,
               1.0f / sampling.temperature);
  const double uniform = core::Rng(sampling.seed, static_cast<uint64_t>(output_index)).uniform();
  const bool cut = sampling.top_p < 1.0f ||
                   (sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < logits.size());
  return cut ? draw_from_cut(logits, sampling, uniform) : draw_from_all(logits.size(), uniform);
}

int32_t Sampler::draw_from_all(size_t n, double uniform) const {
  double total = 0;
  for (size_t i = 0; i < n; ++i) total += static_cast<double>(weights_[i]);
  double sum = 0;
  int32_t last = 0;  // if rounding leaves a rest, it belongs to the last possible token
  for (size_t i = 0; i < n; ++i) {
    if (weights_[i] == 0) continue;
    sum += static_cast<double>(weights_[i]);
    last = static_cast<int32_t>(i);
    if (sum > uniform * total) break;
  }
  return last;
}

int32_t Sampler::draw_from_cut(std::span<const float> logits, const sched::Sampling& sampling,
                               double uniform) {
  const size_t n = logits.size();
  const std::span<int32_t> ids(order_.data(), n);
  std::iota(ids.begin(), ids.end(), 0);
  const auto first = [&](int32_t a, int32_t b) { return precedes(logits, a, b); };
  const size_t kept = sampling.top_k > 0 ? std::min(static_cast<size_t>(sampling.top_k), n) : n;
  if (kept < n) {
    std::nth_element(ids.begin(), ids.begin() + static_cast<int64_t>(kept), ids.end(), first);
    // The sum over a set must not depend on the order in which nth_element leaves it.
    std::sort(ids.begin(), ids.begin() + static_cast<int64_t>(kept));
  }
  const auto end = ids.begin() + static_cast<int64_t>(kept);
  double total = 0;
  for (auto id = ids.begin(); id != end; ++id) {
    total += static_cast<double>(weights_[static_cast<size_t>(*id)]);
  }
  // Best first from a heap: a nucleus is usually small against the vocabulary, a full sort is not.
  const auto last_first = [&](int32_t a, int32_t b) { return precedes(logits, b, a); };
  std::make_heap(ids.begin(), end, last_first);
  const double wanted = static_cast<double>(sampling.top_p) * total;
  double nucleus = 0;
  auto heap_end = end;
  while (heap_end != ids.begin()) {
    std::pop_heap(ids.begin(), heap_end, last_first);
    --heap_end;
    nucleus += static_cast<double>(weights_[static_cast<size_t>(*heap_end)]);
    if (sampling.top_p < 1.0f && nucleus >= wanted) break;
  }
  // [heap_end, end) is the nucleus, the best at its end.
  double sum = 0;
  int32_t chosen = *(end - 1);
  for (auto id = end; id != heap_end;) {
    --id;
    const float weight = weights_[static_cast<size_t>(*id)];
    if (weight == 0) break;
    sum += static_cast<double>(weight);
    chosen = *id;
    if (sum > uniform * nucleus) break;
  }
  return chosen;
}

}  // namespace prony::engine
