// Serving model: Little's law, limits and monotony; memory by hand; queueing formulas against brute
// force.
#include "prony/perfmodel/serving.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "prony/core/math.hpp"
#include "prony/core/rng.hpp"
#include "prony/perfmodel/cost_testing.hpp"
#include "prony/perfmodel/queueing.hpp"

namespace prony::perfmodel {
namespace {

ServingLoad closed(double clients, int64_t input = 512, int64_t output = 128) {
  return {.input_tokens = input, .output_tokens = output, .concurrency = clients};
}

ServingLoad open(double rate, int64_t input = 512, int64_t output = 128) {
  return {.input_tokens = input, .output_tokens = output, .request_rate = rate};
}

ServingPrediction predict(const Deployment& deployment, const ServingLoad& load) {
  auto result = predict_serving(deployment, load);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return *std::move(result);
}

TEST(MemoryPlan, AddsUpByHand) {
  Deployment deployment = ideal_deployment();
  deployment.engine.context_bytes = 1e9;
  const RankModel rank(deployment);
  const MemoryPlan plan = memory_plan(deployment, rank, {.step_tokens = 0, .max_sequences = 0});
  // 2 x 4 KV heads x 64 x 4 layers x 2 bytes.
  EXPECT_DOUBLE_EQ(plan.kv_bytes_per_token, 4096);
  EXPECT_DOUBLE_EQ(plan.kv_bytes, 16e9 - rank.weight_bytes() - 1e9);
  EXPECT_EQ(plan.kv_blocks, static_cast<int64_t>(plan.kv_bytes / (16 * 4096)));
  EXPECT_EQ(plan.kv_tokens, 16 * plan.kv_blocks);
  EXPECT_EQ(sequences_that_fit(plan, rank, 1000, 16),
            static_cast<int64_t>(plan.kv_bytes / (1008 * 4096.0)));
  const int64_t most = largest_context(plan, rank, 64);
  EXPECT_LE(64 * rank.kv_bytes(most), plan.kv_bytes);
  EXPECT_GT(64 * rank.kv_bytes(most + 1), plan.kv_bytes);
}

TEST(MemoryPlan, SaysByHowMuchItDoesNotFit) {
  Deployment deployment = ideal_deployment();
  deployment.hardware.memory_bytes = 0.1e9;
  const auto result = predict_serving(deployment, closed(1));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kFailed);
  EXPECT_THAT(result.error().message,
              testing::HasSubstr("does not fit on 1 x ideal: 0.2 GiB missing"));
}

TEST(MemoryPlan, TheShareIsOfTheDeviceOrOfWhatIsFree) {
  Deployment deployment = ideal_deployment();
  deployment.engine.memory_share = 0.5;
  const RankModel rank(deployment);
  const MemoryLimits none{};
  EXPECT_DOUBLE_EQ(memory_plan(deployment, rank, none).kv_bytes, 8e9 - rank.weight_bytes());
  deployment.engine.share_of_free = true;
  EXPECT_DOUBLE_EQ(memory_plan(deployment, rank, none).kv_bytes, (16e9 - rank.weight_bytes()) / 2);
}

TEST(Serving, OneClientIsPrefillThenDecode) {
  const Deployment deployment = ideal_deployment();
  const ServingPrediction p = predict(deployment, closed(1));
  StepCoster coster(deployment);
  StepShape prompt, token;
  prompt.add({.context = 0, .new_tokens = 512});
  token.add({.context = 512 + 64, .new_tokens = 1});
  EXPECT_NEAR(*p.ttft_s, coster.seconds(prompt), 1e-9);
  EXPECT_NEAR(p.tpot_s, coster.seconds(token), 1e-9);
  EXPECT_NEAR(p.tpot_s, p.itl_s, 1e-12) << "nobody interrupts";
  EXPECT_NEAR(*p.e2e_s, *p.ttft_s + 127 * p.tpot_s, 1e-9);
  EXPECT_NEAR(p.request_throughput, 1 / *p.e2e_s, 1e-6 * p.request_throughput);
}

TEST(Serving, ClosedLoopObeysLittle) {
  for (const double clients : {2.0, 8.0, 32.0, 100.0}) {
    ServingLoad load = closed(clients);
    load.requests = 0;  // endless, so no common start
    const ServingPrediction p = predict(ideal_deployment(), load);
    ASSERT_TRUE(p.e2e_s) << clients;
    EXPECT_NEAR(p.request_throughput * *p.e2e_s, clients, 0.02 * clients);
    EXPECT_LT(p.batch, clients);
    EXPECT_GE(p.tpot_s, p.itl_s);
  }
}

TEST(Serving, MoreClientsMeanMoreThroughputAndSlowerTokens) {
  double throughput = 0, tpot = 0;
  for (const double clients : {1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 128.0}) {
    const ServingPrediction p = predict(ideal_deployment(), closed(clients));
    // Rows come in tiles: past the edge of one, a full row of new tiles may cost a little.
    EXPECT_GT(p.output_throughput, 0.97 * throughput) << clients;
    EXPECT_GE(p.tpot_s, tpot * (1 - 1e-9)) << clients;
    throughput = p.output_throughput;
    tpot = p.tpot_s;
  }
}

TEST(Serving, OpenLoopObeysLittleAndEndsAtSaturation) {
  const double most = predict(ideal_deployment(), closed(1)).max_request_throughput;
  const ServingPrediction half = predict(ideal_deployment(), open(most / 2));
  ASSERT_TRUE(half.ttft_s);
  EXPECT_NEAR(half.load_share, 0.5, 1e-6);
  EXPECT_NEAR(half.batch, half.request_throughput * 127 * half.tpot_s, 0.02 * half.batch);
  const ServingPrediction near = predict(ideal_deployment(), open(0.95 * most));
  EXPECT_FALSE(near.ttft_s);
  EXPECT_FALSE(near.e2e_s);
  EXPECT_THAT(near.ttft_reason, testing::HasSubstr("within 10 % of saturation"));
  const ServingPrediction beyond = predict(ideal_deployment(), open(3 * most));
  EXPECT_NEAR(beyond.request_throughput, most, 1e-9 * most) << "more than that cannot be served";
}

TEST(Serving, ClientsBeyondTheCapacityHaveNoTtft) {
  Deployment deployment = ideal_deployment();
  deployment.engine.max_sequences = 16;
  EXPECT_TRUE(predict(deployment, closed(14)).ttft_s);
  const ServingPrediction p = predict(deployment, closed(64));
  EXPECT_FALSE(p.ttft_s);
  EXPECT_DOUBLE_EQ(p.capacity, 16);
  EXPECT_DOUBLE_EQ(p.load_share, 4);
  EXPECT_THAT(p.ttft_reason, testing::HasSubstr("16 sequences"));
}

TEST(Serving, ZeroPrefillAndOneOutputTokenAreLimits) {
  const ServingPrediction cached = predict(ideal_deployment(), closed(4, 0, 64));
  EXPECT_EQ(cached.prefill_s, 0);
  EXPECT_NEAR(cached.tpot_s, cached.itl_s, 1e-12);
  const ServingPrediction one = predict(ideal_deployment(), closed(4, 512, 1));
  EXPECT_GT(one.request_throughput, 0);
  EXPECT_NEAR(*one.e2e_s, *one.ttft_s, 1e-12);
}

TEST(Serving, PipelineWithOneMicrobatchGainsNothing) {
  Deployment deployment = ideal_deployment();
  const double one = predict(deployment, closed(1)).tpot_s;
  deployment.parallel.pp = 2;
  EXPECT_GE(predict(deployment, closed(1)).tpot_s, one) << "a token passes every stage";
  // With a batch, half of it is in each stage.
  deployment.parallel.pp = 1;
  const double whole = predict(deployment, closed(128)).output_throughput;
  deployment.parallel.pp = 2;
  EXPECT_GT(predict(deployment, closed(128)).output_throughput, 1.3 * whole);
}

TEST(Serving, StaticBatchIsPrefillPlusSteps) {
  ServingLoad load = closed(8, 256, 64);
  load.static_batch = true;
  const ServingPrediction p = predict(ideal_deployment(), load);
  StepCoster coster(ideal_deployment());
  StepShape prompts, tokens;
  prompts.add({.context = 0, .new_tokens = 256}, 8);
  tokens.add({.context = 256 + 32, .new_tokens = 1}, 8);
  const double whole = coster.seconds(prompts) + 63 * coster.seconds(tokens);
  EXPECT_NEAR(p.output_throughput, 8 * 64 / whole, 1e-6 * p.output_throughput);
}

TEST(Serving, SpeculationPaysWhenDraftsAreRight) {
  Deployment deployment = ideal_deployment();
  deployment.hardware.peak_bf16 = 1e15;  // decoding waits for memory
  const double plain = predict(deployment, closed(1)).tpot_s;
  deployment.speculation = {.draft_tokens = 3, .acceptance = 0.9, .draft_cost = 0.05};
  EXPECT_LT(predict(deployment, closed(1)).tpot_s, 0.5 * plain);
  deployment.speculation.acceptance = 0;
  EXPECT_GT(predict(deployment, closed(1)).tpot_s, plain);
}

TEST(Serving, RefusesLoadsThatAreNone) {
  const auto refusal = [](const ServingLoad& load) {
    const auto result = predict_serving(ideal_deployment(), load);
    EXPECT_FALSE(result.ok());
    return result.ok() ? "" : result.error().message;
  };
  using testing::HasSubstr;
  ServingLoad both = closed(1);
  both.request_rate = 1;
  EXPECT_THAT(refusal(both), HasSubstr("and not both"));
  EXPECT_THAT(refusal(closed(0)), HasSubstr("--concurrency"));
  EXPECT_THAT(refusal(closed(std::nan(""))), HasSubstr("--concurrency"));
  EXPECT_THAT(refusal(open(-1)), HasSubstr("--request-rate"));
  EXPECT_THAT(refusal(closed(1, -1)), HasSubstr("--input-len"));
  EXPECT_THAT(refusal(closed(1, 512, 0)), HasSubstr("--output-len"));
  EXPECT_THAT(refusal(closed(1, 65536, 64)), HasSubstr("at most the context of small: 65536"));
}

TEST(Queueing, ErlangCEqualsTheSumOfItsStates) {
  for (const int32_t servers : {1, 2, 5, 20}) {
    for (const double use : {0.1, 0.5, 0.9}) {
      const double offered = use * servers;
      double term = 1, sum = 1;  // a^n / n!
      for (int32_t n = 1; n < servers; ++n) sum += term *= offered / n;
      const double last = term * offered / servers / (1 - use);
      EXPECT_NEAR(erlang_c(servers, offered), last / (sum + last), 1e-12);
    }
  }
  EXPECT_EQ(erlang_c(3, 3), 1);
  EXPECT_EQ(erlang_c(3, 0), 0);
}

// Lindley's recursion on one server: W' = max(0, W + S - A).
TEST(Queueing, OneServerEqualsASimulation) {
  core::Rng rng(11, 0);
  const double rate = 0.7;
  double exponential = 0, constant = 0, sum_exponential = 0, sum_constant = 0;
  constexpr int kArrivals = 2'000'000;
  for (int i = 0; i < kArrivals; ++i) {
    const double gap = -core::math::log(1 - rng.uniform()) / rate;
    const double service = -core::math::log(1 - rng.uniform());
    exponential = std::max(0.0, exponential + service - gap);
    constant = std::max(0.0, constant + 1 - gap);
    sum_exponential += exponential;
    sum_constant += constant;
  }
  EXPECT_NEAR(sum_exponential / kArrivals, *mmc_wait(rate, 1, 1), 0.05);
  EXPECT_NEAR(sum_constant / kArrivals, *mg1_wait(rate, 1, 0), 0.03);
  EXPECT_DOUBLE_EQ(*mg1_wait(rate, 1, 1), *mmc_wait(rate, 1, 1));
  EXPECT_DOUBLE_EQ(*ggc_wait(rate, 1, 1, 1, 1), *mmc_wait(rate, 1, 1));
  EXPECT_FALSE(mmc_wait(2, 1, 2));
  EXPECT_FALSE(mg1_wait(1, 1, 0));
}

TEST(Queueing, QuantileOfTheWait) {
  // M/M/1: P(W > t) = rho exp(-(mu - lambda) t).
  EXPECT_NEAR(*mmc_wait_quantile(0.5, 1, 1, 0.99), std::log(0.5 / 0.01) / 0.5, 1e-9);
  EXPECT_EQ(*mmc_wait_quantile(0.005, 1, 1, 0.99), 0) << "fewer than 1 % wait at all";
  EXPECT_FALSE(mmc_wait_quantile(1, 1, 1, 0.99));
}

}  // namespace
}  // namespace prony::perfmodel
