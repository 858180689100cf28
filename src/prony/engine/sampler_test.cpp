// The sampler against a float64 oracle: chi-squared of the drawn frequencies for every cut, exact
// rules for ties, bans and log-probabilities. All seeds are fixed, so no test is flaky.
#include "prony/engine/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "prony/kernels/test_support.hpp"

namespace prony::engine {
namespace {

const kernels::Kernels& fastest() {
  return kernels::kernels_for(kernels::supported_isas().back());
}

/// Probabilities by the definition in sampler.hpp, in float64.
std::vector<double> oracle(const std::vector<float>& logits, const sched::Sampling& sampling) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < order.size()) {
    order.resize(static_cast<size_t>(sampling.top_k));
  }
  const auto weight = [&](size_t id) {
    return std::exp(static_cast<double>(logits[id]) / static_cast<double>(sampling.temperature));
  };
  double total = 0;
  for (const size_t id : order) total += weight(id);
  double nucleus = 0;
  size_t kept = 0;
  while (kept < order.size()) {
    nucleus += weight(order[kept++]);
    if (sampling.top_p < 1 && nucleus >= static_cast<double>(sampling.top_p) * total) break;
  }
  std::vector<double> probability(logits.size(), 0.0);
  for (size_t i = 0; i < kept; ++i) probability[order[i]] = weight(order[i]) / nucleus;
  return probability;
}

struct Cut {
  float temperature, top_p;
  int32_t top_k;
};

// Chi-squared over the tokens with an expected count of at least 10 (the rest pooled). For d
// degrees of freedom its mean is d and its variance 2 d; d + 4.5 sqrt(2 d) + 10 is passed by chance
// with a probability below 1e-5 per case.
TEST(Sampler, FrequenciesMatchTheOracle) {
  constexpr int kDraws = 40'000;
  std::vector<float> logits = kernels::random_floats(60, 9);
  for (float& logit : logits) logit *= 2;
  logits[7] = logits[3];  // a tie
  Sampler sampler(60, fastest());
  for (const Cut& cut : {Cut{1, 1, 0}, Cut{0.5f, 1, 0}, Cut{2.5f, 1, 0}, Cut{1, 1, 5},
                         Cut{1, 0.7f, 0}, Cut{1.3f, 0.95f, 0}, Cut{1.5f, 0.8f, 20},
                         Cut{1, 1e-6f, 0}, Cut{1, 1, 1}, Cut{1, 0.999f, 60}, Cut{0.8f, 1, 1000}}) {
    sched::Sampling sampling;
    sampling.temperature = cut.temperature;
    sampling.top_p = cut.top_p;
    sampling.top_k = cut.top_k;
    const std::vector<double> expected = oracle(logits, sampling);
    // Draws of many requests (seeds) and of one request (output indices) must both be fair.
    for (const bool by_seed : {true, false}) {
      std::vector<int> counts(logits.size(), 0);
      for (int i = 0; i < kDraws; ++i) {
        sampling.seed = by_seed ? static_cast<uint64_t>(i) : 12345;
        std::vector<float> copy = logits;
        const auto choice = sampler.sample(copy, sampling, by_seed ? 3 : i, {});
        ASSERT_TRUE(choice.ok());
        ++counts[static_cast<size_t>(choice->token)];
      }
      double chi_squared = 0, pooled_expected = 0, pooled_count = 0;
      int cells = 0;
      for (size_t i = 0; i < logits.size(); ++i) {
        const double mean = expected[i] * kDraws;
        if (mean == 0) {
          ASSERT_EQ(counts[i], 0) << "token outside the cut was drawn: " << i;
        }
        if (mean < 10) {
          pooled_expected += mean;
          pooled_count += counts[i];
          continue;
        }
        chi_squared += (counts[i] - mean) * (counts[i] - mean) / mean;
        ++cells;
      }
      if (pooled_expected > 1) {
        chi_squared +=
            (pooled_count - pooled_expected) * (pooled_count - pooled_expected) / pooled_expected;
        ++cells;
      }
      const double freedom = std::max(0, cells - 1);
      EXPECT_LE(chi_squared, freedom + 4.5 * std::sqrt(2 * freedom) + 10)
          << cut.temperature << " " << cut.top_p << " " << cut.top_k << " cells " << cells;
    }
  }
}

TEST(Sampler, GreedyTakesTheLargestAndTheLowestIdOfATie) {
  Sampler sampler(100, fastest());
  std::vector<float> logits = kernels::random_floats(100, 4);
  logits[80] = logits[33] = 50;
  for (const float temperature : {0.0f, 1e-6f}) {
    sched::Sampling sampling;
    sampling.temperature = temperature;
    std::vector<float> copy = logits;
    EXPECT_EQ(sampler.sample(copy, sampling, 0, {})->token, 33);
  }
}

TEST(Sampler, TopKCutsTiesByTokenId) {
  Sampler sampler(50, fastest());
  const std::vector<float> logits(50, 1.0f);  // all equal
  sched::Sampling sampling;
  sampling.temperature = 1;
  sampling.top_k = 4;
  std::vector<int> seen(50, 0);
  for (int i = 0; i < 400; ++i) {
    std::vector<float> copy = logits;
    ++seen[static_cast<size_t>(sampler.sample(copy, sampling, i, {})->token)];
  }
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(seen[i] > 0, i < 4) << i;
}

// A draw is a function of seed and output index: not of what was sampled before.
TEST(Sampler, DrawsDoNotDependOnHistory) {
  const std::vector<float> logits = kernels::random_floats(500, 5);
  sched::Sampling sampling;
  sampling.temperature = 1;
  sampling.top_p = 0.9f;
  sampling.seed = 99;
  std::vector<int32_t> forwards, backwards;
  Sampler first(500, fastest()), second(700, fastest());
  for (int32_t i = 0; i < 50; ++i) {
    std::vector<float> copy = logits;
    forwards.push_back(first.sample(copy, sampling, i, {})->token);
  }
  for (int32_t i = 49; i >= 0; --i) {
    std::vector<float> copy = logits;
    backwards.push_back(second.sample(copy, sampling, i, {})->token);
  }
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(forwards, backwards);
  EXPECT_GT(std::count_if(forwards.begin(), forwards.end(),
                          [&](int32_t token) { return token != forwards[0]; }),
            10);
}

TEST(Sampler, EveryIsaDrawsTheSameToken) {
  const std::vector<float> logits = kernels::random_floats(3000, 6);
  sched::Sampling sampling;
  sampling.temperature = 1.7f;
  sampling.top_k = 700;
  sampling.top_p = 0.97f;
  std::vector<std::vector<int32_t>> tokens;
  for (const kernels::Isa isa : kernels::supported_isas()) {
    Sampler sampler(3000, kernels::kernels_for(isa));
    std::vector<int32_t>& drawn = tokens.emplace_back();
    for (int32_t i = 0; i < 200; ++i) {
      std::vector<float> copy = logits;
      drawn.push_back(sampler.sample(copy, sampling, i, {})->token);
    }
  }
  for (const std::vector<int32_t>& drawn : tokens) EXPECT_EQ(drawn, tokens[0]);
}

TEST(Sampler, BansHoldUntilMinTokens) {
  Sampler sampler(40, fastest());
  std::vector<float> logits = kernels::random_floats(40, 7);
  logits[5] = 40;
  logits[6] = 39;
  for (const float temperature : {0.0f, 1.0f}) {
    sched::Sampling sampling;
    sampling.temperature = temperature;
    sampling.min_tokens = 3;
    sampling.banned_before_min = {5, 6, 4000, -1};  // ids the model does not have are no ban
    for (int32_t i = 0; i < 6; ++i) {
      std::vector<float> copy = logits;
      const int32_t token = sampler.sample(copy, sampling, i, {})->token;
      if (i < 3) {
        EXPECT_TRUE(token != 5 && token != 6);
      } else {
        EXPECT_TRUE(token == 5 || token == 6);
      }
    }
  }
  sched::Sampling all;
  all.min_tokens = 1;
  for (int32_t i = 0; i < 40; ++i) all.banned_before_min.push_back(i);
  const auto choice = sampler.sample(logits, all, 0, {});
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().message, "min_tokens bans every token");
}

TEST(Sampler, LogprobsAreThoseOfTheRawLogits) {
  std::vector<float> logits = kernels::random_floats(300, 8);
  for (float& logit : logits) logit *= 3;
  logits[17] = logits[90];  // order of the alternatives is total
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  Sampler sampler(300, fastest());
  sched::Sampling sampling;
  sampling.temperature = 0.7f;
  sampling.top_k = 50;
  sampling.logprobs = 299;
  sampling.min_tokens = 5;
  sampling.banned_before_min = {0, 17};
  for (int32_t i = 0; i < 20; ++i) {
    std::vector<float> copy = logits;
    std::vector<sched::TokenLogprob> top(299);
    const auto choice = sampler.sample(copy, sampling, i, top);
    ASSERT_TRUE(choice.ok());
    const auto exact = [&](int32_t token) {
      return static_cast<double>(logits[static_cast<size_t>(token)]) - std::log(sum);
    };
    EXPECT_NEAR(static_cast<double>(choice->logprob), exact(choice->token), 2e-6);
    for (size_t k = 0; k < top.size(); ++k) {
      EXPECT_NEAR(static_cast<double>(top[k].logprob), exact(top[k].token), 2e-6);
      if (k == 0) continue;
      const float before = logits[static_cast<size_t>(top[k - 1].token)];
      const float here = logits[static_cast<size_t>(top[k].token)];
      ASSERT_TRUE(before > here || (before == here && top[k - 1].token < top[k].token));
    }
  }
}

TEST(Sampler, RefusesLogitsThatAreNotFinite) {
  Sampler sampler(20, fastest());
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> logits = kernels::random_floats(20, 3);
    logits[11] = bad;
    const auto choice = sampler.sample(logits, {}, 0, {});
    ASSERT_FALSE(choice.ok());
    EXPECT_EQ(choice.error().message, "logits are not finite");
  }
}

}  // namespace
}  // namespace prony::engine
