// Tails and the memory of steps, against a loop that runs every step of every request.
#include "prony/perfmodel/serving_tails.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "prony/catalog/catalog.hpp"
#include "prony/catalog/hardware_file.hpp"
#include "prony/core/math.hpp"
#include "prony/core/rng.hpp"
#include "prony/perfmodel/cost_testing.hpp"
#include "prony/perfmodel/serving.hpp"

namespace prony::perfmodel {
namespace {

struct Measured {
  double ttft_mean = 0, ttft_p99 = 0, tpot_mean = 0, tpot_p99 = 0, itl_p99 = 0, e2e_p99 = 0;
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double p99(std::vector<double> values) {
  const auto at = static_cast<std::ptrdiff_t>(0.99 * static_cast<double>(values.size()));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

// First come, first served; prompts share the steps of the decodes in chunks of the token budget.
Measured run_every_step(const Deployment& deployment, const ServingLoad& load, int requests) {
  struct Request {
    double arrived = 0, first = 0;
    int64_t prompt_left = 0, made = 0;
  };
  core::Rng rng(5, 1);
  StepCoster coster(deployment);
  StepShape shape;
  std::deque<Request> waiting;
  std::vector<Request> running;
  std::vector<double> ttft, tpot, itl, e2e;
  const auto capacity = static_cast<size_t>(load.max_sequences.value());
  double now = 0, next = 0;
  int sent = 0;
  while (static_cast<int>(e2e.size()) < requests) {
    while (sent < requests && next <= now) {
      waiting.push_back({.arrived = next, .prompt_left = load.input_tokens});
      next -= core::math::log(1 - rng.uniform()) / *load.request_rate;
      ++sent;
    }
    while (running.size() < capacity && !waiting.empty()) {
      running.push_back(waiting.front());
      waiting.pop_front();
    }
    if (running.empty()) {
      now = next;
      continue;
    }
    shape.clear();
    int64_t budget = deployment.engine.max_step_tokens;
    for (const Request& each : running) {
      if (each.prompt_left > 0) continue;
      shape.add({.context = load.input_tokens + each.made, .new_tokens = 1});
      --budget;
    }
    std::vector<int64_t> chunks(running.size());
    for (size_t i = 0; i < running.size(); ++i) {
      chunks[i] = std::min(budget, running[i].prompt_left);
      budget -= chunks[i];
      if (chunks[i] == 0) continue;
      const bool last = chunks[i] == running[i].prompt_left;
      shape.add({.context = load.input_tokens - running[i].prompt_left,
                 .new_tokens = chunks[i],
                 .samples = last});
    }
    const double step = coster.seconds(shape);
    now += step;
    for (size_t i = 0; i < running.size(); ++i) {
      Request& each = running[i];
      const bool decodes = each.prompt_left == 0;
      each.prompt_left -= chunks[i];
      if (each.prompt_left > 0) continue;
      if (decodes) itl.push_back(step);
      if (++each.made == 1) each.first = now;
    }
    std::erase_if(running, [&](const Request& each) {
      if (each.made < load.output_tokens) return false;
      ttft.push_back(each.first - each.arrived);
      tpot.push_back((now - each.first) / static_cast<double>(load.output_tokens - 1));
      e2e.push_back(now - each.arrived);
      return true;
    });
  }
  return {mean(ttft), p99(ttft), mean(tpot), p99(tpot), p99(itl), p99(e2e)};
}

struct Case {
  const char* name;
  Deployment deployment;
  int64_t input, output;
  int32_t places;
  int requests;
};

Deployment shipped(const char* model, const char* hardware, const char* engine) {
  Deployment out;
  out.model = catalog::load_model(model).value();
  out.hardware = catalog::resolve_hardware(hardware).value();
  out.engine = catalog::resolve_engine(engine).value();
  return out;
}

double error(double predicted, double truth) {
  return std::abs(predicted / truth - 1);
}

// What was reached over these cases: TTFT within 4 % in the mean and 16 % at the 99th percentile;
// TPOT 10 % and 27 %, within 3 % and 15 % without the long prompts, which queue behind each other.
TEST(ServingTails, AgreeWithALoopOfAllSteps) {
  const Case cases[] = {
      {"prompts", ideal_deployment(), 512, 64, 64, 8000},
      {"few places", ideal_deployment(), 128, 64, 8, 8000},
      {"decodes", shipped("llama-3.1-8b", "h100-sxm", "vllm"), 128, 256, 256, 3000},
      {"launches", shipped("llama-3.1-8b", "h100-sxm", "trtllm"), 128, 256, 256, 3000},
      {"long prompts", shipped("llama-3.1-8b", "h100-sxm", "vllm"), 12000, 128, 128, 1500},
  };
  for (const Case& each : cases) {
    ServingLoad load{.input_tokens = each.input,
                     .output_tokens = each.output,
                     .request_rate = 1,
                     .max_sequences = each.places};
    const double most = predict_serving(each.deployment, load)->max_request_throughput;
    for (const double share : {0.1, 0.4, 0.7}) {
      SCOPED_TRACE(testing::Message() << each.name << ", load " << share);
      load.request_rate = share * most;
      const auto p = predict_serving(each.deployment, load);
      ASSERT_TRUE(p.ok());
      const Measured truth = run_every_step(each.deployment, load, each.requests);
      const double request = each.deployment.engine.request_s;  // the loop has none
      const bool queues = each.input > each.deployment.engine.max_step_tokens;
      EXPECT_LT(error(*p->ttft_s - request, truth.ttft_mean), 0.1);
      EXPECT_LT(error(*p->tails.ttft_s - request, truth.ttft_p99), 0.2);
      EXPECT_LT(error(p->tpot_s, truth.tpot_mean), queues ? 0.15 : 0.05);
      EXPECT_LT(error(*p->tails.tpot_s, truth.tpot_p99), queues ? 0.33 : 0.2);
      EXPECT_LT(error(*p->tails.e2e_s - request, truth.e2e_p99), queues ? 0.33 : 0.15);
      EXPECT_LT(error(*p->tails.itl_s, truth.itl_p99), 0.4);
    }
  }
}

TEST(ServingTails, GrowWithTheLoadAndLieAboveTheMean) {
  const Deployment deployment = ideal_deployment();
  double ttft = 0, tpot = 0;
  for (const double rate : {0.01, 0.5, 2.0, 5.0, 8.0}) {
    const auto p = predict_serving(
        deployment, {.input_tokens = 512, .output_tokens = 64, .request_rate = rate});
    ASSERT_TRUE(p.ok() && p->tails.ttft_s && p->tails.tpot_s && p->tails.itl_s && p->tails.e2e_s);
    EXPECT_GE(*p->tails.ttft_s, std::max(ttft, *p->ttft_s)) << rate;
    EXPECT_GE(*p->tails.tpot_s, std::max(tpot, p->tpot_s)) << rate;
    EXPECT_GE(*p->tails.e2e_s, *p->e2e_s) << rate;
    EXPECT_TRUE(p->tails.reason.empty());
    ttft = *p->tails.ttft_s;
    tpot = *p->tails.tpot_s;
  }
}

TEST(ServingTails, AreNullWithTheReasonWhereThereIsNoModel) {
  const Deployment deployment = ideal_deployment();
  ServingLoad load{.input_tokens = 512, .output_tokens = 64, .concurrency = 16, .requests = 0};
  const auto endless = predict_serving(deployment, load);
  EXPECT_FALSE(endless->tails.ttft_s);
  EXPECT_FALSE(endless->tails.tpot_s);
  EXPECT_THAT(endless->tails.reason, testing::HasSubstr("no law here"));
  load.requests = 160;
  const auto run = predict_serving(deployment, load);
  // The last of the common start: all sixteen prompts fit into one step.
  StepCoster coster(deployment);
  StepShape all;
  all.add({.context = 0, .new_tokens = 512}, 16);
  ASSERT_TRUE(run->tails.ttft_s);
  EXPECT_NEAR(*run->tails.ttft_s, coster.seconds(all), 1e-9);
  EXPECT_FALSE(run->tails.tpot_s);
  const double most = run->max_request_throughput;
  const auto near = predict_serving(
      deployment, {.input_tokens = 512, .output_tokens = 64, .request_rate = 0.95 * most});
  EXPECT_FALSE(near->tails.ttft_s);
  EXPECT_FALSE(near->tails.itl_s);
  EXPECT_THAT(near->tails.reason, testing::HasSubstr("within 10 % of saturation"));
}

// Steps that are remembered give the answers of a predictor that remembers nothing.
TEST(ServingTails, AnswersDoNotDependOnEarlierQuestions) {
  const Deployment deployment = shipped("mixtral-8x7b", "h100-sxm", "trtllm");
  auto used = ServingPredictor::make([&] {
    Deployment spread = deployment;
    spread.parallel.tp = 2;
    return spread;
  }());
  for (const int64_t input : {100, 3000, 100}) {
    for (const double rate : {8.0, 0.3, 3.0}) {
      const ServingLoad load{.input_tokens = input, .output_tokens = 200, .request_rate = rate};
      const auto again = used->predict(load, Detail::kFigures);
      const auto fresh = predict_serving(used->deployment(), load);
      ASSERT_TRUE(again.ok() && fresh.ok());
      EXPECT_EQ(again->tpot_s, fresh->tpot_s);
      EXPECT_EQ(again->ttft_s, fresh->ttft_s);
      EXPECT_EQ(again->tails.e2e_s, fresh->tails.e2e_s);
    }
  }
}

}  // namespace
}  // namespace prony::perfmodel
