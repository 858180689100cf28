// BenchOptions: what flags make of the load: its shape, its schedule, its request bodies.
#include "prony/load/bench_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/core/file.hpp"

namespace prony::load {
namespace {

using ::testing::HasSubstr;

LoadShape shape_of(const BenchOptions& options) {
  return load_shape(options).value();
}

TEST(LoadShape, RateAndCapDecide) {
  BenchOptions options;
  EXPECT_TRUE(shape_of(options).closed_loop);  // neither: eight users
  EXPECT_EQ(shape_of(options).max_concurrency, 8);

  options.max_concurrency = 3;
  EXPECT_TRUE(shape_of(options).closed_loop);
  EXPECT_EQ(shape_of(options).max_concurrency, 3);

  options.request_rate = "inf";
  EXPECT_TRUE(shape_of(options).closed_loop);
  EXPECT_FALSE(shape_of(options).at_once);

  options.max_concurrency.reset();
  EXPECT_FALSE(shape_of(options).closed_loop);
  EXPECT_TRUE(shape_of(options).at_once);

  options.request_rate = "2.5";
  options.max_concurrency = 4;
  EXPECT_FALSE(shape_of(options).closed_loop);
  EXPECT_FALSE(shape_of(options).at_once);
  EXPECT_EQ(shape_of(options).rate_per_s, 2.5);
  EXPECT_EQ(shape_of(options).max_concurrency, 4);
}

TEST(LoadShape, ATraceKeepsItsTimesUnlessToldOtherwise) {
  BenchOptions options;
  options.dataset = "azure";
  EXPECT_TRUE(shape_of(options).trace_times);
  EXPECT_FALSE(shape_of(options).closed_loop);
  options.max_concurrency = 4;
  EXPECT_TRUE(shape_of(options).closed_loop);
  options.max_concurrency.reset();
  options.request_rate = "3";
  EXPECT_FALSE(shape_of(options).trace_times);
  EXPECT_EQ(shape_of(options).rate_per_s, 3);
}

TEST(LoadShape, BadValues) {
  BenchOptions options;
  options.request_rate = "fast";
  EXPECT_THAT(load_shape(options).error().message, HasSubstr("--request-rate"));
  options.request_rate.reset();
  options.max_concurrency = 0;
  EXPECT_THAT(load_shape(options).error().message, HasSubstr("--max-concurrency: found 0"));
  options = {};
  options.num_prompts = -1;
  EXPECT_THAT(load_shape(options).error().message, HasSubstr("--num-prompts: found -1"));
  options = {};
  options.duration_s = 0;
  EXPECT_THAT(load_shape(options).error().message, HasSubstr("--duration"));
  options = {};
  options.dataset = "schedule";
  options.request_rate = "3";
  EXPECT_THAT(load_shape(options).error().message, HasSubstr("--request-rate: not with"));
}

int64_t count_of(const BenchOptions& options) {
  return static_cast<int64_t>(make_schedule(options, shape_of(options)).value().entries.size());
}

TEST(Schedule, CountAndDurationBoundIt) {
  BenchOptions options;
  EXPECT_EQ(count_of(options), 200);
  options.num_prompts = 7;
  EXPECT_EQ(count_of(options), 7);
  options.num_prompts.reset();
  options.duration_s = 30;
  EXPECT_EQ(count_of(options), 8 * 30 * 50);  // made ready for a closed loop of eight
  options.request_rate = "10";
  EXPECT_NEAR(static_cast<double>(count_of(options)), 300, 100);
  options.num_prompts = 5;
  EXPECT_EQ(count_of(options), 5);
}

TEST(Schedule, RangeRatioIsThatOfPlainNumbers) {
  BenchOptions options;
  options.input_len = "100";
  options.range_ratio = 0.5;
  options.output_len = "uniform:3,4";
  const auto schedule = make_schedule(options, shape_of(options)).value();
  int32_t low = 1000, high = 0;
  for (const auto& entry : schedule.entries) {
    low = std::min(low, entry.input_tokens);
    high = std::max(high, entry.input_tokens);
    EXPECT_THAT(entry.output_tokens, ::testing::AnyOf(3, 4));
  }
  EXPECT_GE(low, 50);
  EXPECT_LE(high, 150);
  EXPECT_LT(low, 75);
  EXPECT_GT(high, 125);
}

TEST(Schedule, TraceWindowScaleAndOrder) {
  BenchOptions options;
  options.dataset = "azure";
  EXPECT_THAT(make_schedule(options, shape_of(options)).error().message,
              HasSubstr("--dataset-path: missing"));
  options.dataset_path =
      std::string(PRONY_SOURCE_DIR) + "/data/traces/azure-llm-2023-conv-sample.csv";
  options.trace_length_s = 60;
  const auto slice = make_schedule(options, shape_of(options)).value();
  EXPECT_GT(slice.entries.size(), 50u);
  EXPECT_LE(slice.entries.back().t_intended_ns, 60 * core::kNanosPerSecond);
  options.time_scale = 0.5;
  options.scale.input_factor = 0.1;
  options.scale.total_max = 100;
  const auto fast = make_schedule(options, shape_of(options)).value();
  ASSERT_EQ(fast.entries.size(), slice.entries.size());
  for (size_t i = 0; i < fast.entries.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(fast.entries[i].t_intended_ns),
                static_cast<double>(slice.entries[i].t_intended_ns) / 2, 1);
    EXPECT_LE(fast.entries[i].input_tokens + fast.entries[i].output_tokens, 100);
  }
}

TEST(Body, UsageModeFollowsWhatTheServerKnows) {
  BenchOptions options;
  EXPECT_EQ(make_body_options(options, openai_chat(), "m", true).value().usage,
            UsageRequest::kContinuous);
  EXPECT_EQ(make_body_options(options, openai_chat(), "m", false).value().usage,
            UsageRequest::kFinal);
  options.usage = "none";
  EXPECT_EQ(make_body_options(options, openai_chat(), "m", true).value().usage,
            UsageRequest::kNone);
  options.usage = "token-ids";
  EXPECT_EQ(make_body_options(options, openai_chat(), "m", false).value().usage,
            UsageRequest::kTokenIds);
}

TEST(Body, Refusals) {
  BenchOptions options;
  options.prompt_format = "ids";
  EXPECT_THAT(make_body_options(options, openai_chat(), "m", false).error().message,
              HasSubstr("--prompt-format ids: openai-chat takes text only"));
  EXPECT_TRUE(make_body_options(options, openai_completions(), "m", false).ok());
  options.extra_body = core::Json{{"n", 4}};
  EXPECT_FALSE(make_body_options(options, openai_completions(), "m", false).ok());
}

}  // namespace
}  // namespace prony::load
