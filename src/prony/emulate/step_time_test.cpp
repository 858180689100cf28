// Durations of steps: the model's own where they are computed, near it where they are remembered.
#include "prony/emulate/step_time.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "prony/catalog/catalog.hpp"
#include "prony/catalog/hardware_file.hpp"
#include "prony/core/rng.hpp"

namespace prony::emulate {
namespace {

perfmodel::Deployment deployment(const char* model, const char* hardware) {
  perfmodel::Deployment d;
  d.model = catalog::resolve_model(model).value();
  d.hardware = catalog::resolve_hardware(hardware).value();
  d.engine = catalog::resolve_engine("vllm").value();
  return d;
}

double direct_s(perfmodel::StepCoster& coster, const std::vector<perfmodel::StepRow>& rows) {
  perfmodel::StepShape shape;
  for (const auto& row : rows) shape.add(row);
  return coster.seconds(shape);
}

TEST(StepLoad, IsTheSumsOfAPlan) {
  sched::StepPlan plan;
  plan.rows = {{.handle = 0, .first_position = 100, .token_count = 1, .samples = true},
               {.handle = 1, .first_position = 7, .token_count = 1, .samples = true},
               {.handle = 2, .first_position = 64, .token_count = 128, .samples = false},
               {.handle = 3, .first_position = 0, .token_count = 12, .samples = true}};
  plan.token_count = 142;
  plan.sample_count = 3;
  StepLoad load;
  load.assign(plan);
  EXPECT_EQ(load, (StepLoad{2, 107, 3, {{64, 128}, {0, 12}}}));
  EXPECT_EQ(load.tokens(), plan.token_count);
  EXPECT_EQ(load.rows(), 4);
  load.advance();
  EXPECT_EQ(load.decode_keys, 109);
  load.assign({});
  EXPECT_EQ(load, StepLoad{});
}

class EveryModel : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryModel, RemembersDecodesWithinATenthOfAPercent) {
  const auto d = deployment(GetParam(), "h200-sxm");
  auto time = ModelStepTime::create(d).value();
  perfmodel::StepCoster coster(d);
  core::Rng rng(7);
  for (int i = 0; i < 400; ++i) {
    const auto rows = static_cast<int64_t>(1 + rng.below(256));
    const auto context = static_cast<int64_t>(rng.below(rng.below(2) == 0 ? 40 : 20'000));
    perfmodel::StepShape shape;
    shape.add({context, 1, true}, rows);
    const double expected = coster.seconds(shape) * 1e9;
    const auto found = static_cast<double>(time->step_ns({rows, rows * context, rows, {}}));
    EXPECT_NEAR(found / expected, 1, 1e-3) << rows << " rows of " << context;
    // Whatever was asked before.
    EXPECT_EQ(found, static_cast<double>(time->step_ns({rows, rows * context, rows, {}})));
  }
}
INSTANTIATE_TEST_SUITE_P(StepTime, EveryModel,
                         ::testing::Values("llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite"));

TEST(StepTime, MixedStepsAreTheModelsOwn) {
  const auto d = deployment("llama-3.1-8b", "h100-sxm");
  auto time = ModelStepTime::create(d).value();
  perfmodel::StepCoster coster(d);
  const double expected =
      direct_s(coster, {{500, 1, true}, {501, 1, true}, {0, 300, true}, {512, 512, false}});
  EXPECT_NEAR(static_cast<double>(time->step_ns({2, 1001, 3, {{0, 300}, {512, 512}}})),
              expected * 1e9, 1);
  EXPECT_EQ(time->step_ns({}), 0);
  // A last chunk of one token that does not sample is a decode that needs no logits.
  EXPECT_LT(time->step_ns({1, 500, 0, {}}), time->step_ns({1, 500, 1, {}}));
}

TEST(StepTime, MoreWorkNeverTakesLess) {
  auto time = ModelStepTime::create(deployment("llama-3.1-8b", "h100-sxm")).value();
  core::Nanos last = 0;
  for (int64_t context = 0; context < 5000; context += 13) {
    const auto now = time->step_ns({32, 32 * context, 32, {}});
    EXPECT_GE(now, last) << context;
    last = now;
  }
}

TEST(StepTime, RefusesWhatOneSchedulerDoesNotRun) {
  auto d = deployment("llama-3.1-8b", "h100-sxm");
  d.parallel.pp = 2;
  EXPECT_THAT(ModelStepTime::create(d).error().message, ::testing::HasSubstr("--pp"));
}

TEST(StepNoise, HasItsMeanAndSpreadAndIsAFunctionOfTheStep) {
  const StepNoise noise(0.2, 5);
  double sum = 0, squares = 0;
  constexpr int kSteps = 20'000;
  for (int step = 0; step < kSteps; ++step) {
    const auto x = static_cast<double>(noise.apply(1'000'000, static_cast<uint64_t>(step))) / 1e6;
    EXPECT_GT(x, 0);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kSteps;
  EXPECT_NEAR(mean, 1, 0.006);
  EXPECT_NEAR(std::sqrt(squares / kSteps - mean * mean), 0.2, 0.006);
  EXPECT_EQ(noise.apply(777, 3), noise.apply(777, 3));
  EXPECT_EQ(StepNoise(0, 5).apply(777, 3), 777);
}

}  // namespace
}  // namespace prony::emulate
