// Tests of the client's sums, of what a workload implies for a prefix cache, and of the options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/load/run_telemetry.hpp"

namespace prony::load {
namespace {

using ::testing::HasSubstr;

record::RequestRow row(int32_t prompt, int32_t output, core::Nanos ttft_ns) {
  record::RequestRow out;
  out.status = record::Status::kOk;
  out.t_send_ns = 1'000'000;
  out.t_first_token_ns = 1'000'000 + ttft_ns;
  out.t_last_token_ns = *out.t_first_token_ns + 1'000'000;
  out.prompt_tokens = prompt;
  out.output_tokens = output;
  return out;
}

TEST(SumsOfRows, OverWhatWasSent) {
  SumsOfRows sums;
  sums.add(row(10, 3, 2'000'000));
  sums.add(row(20, 4, 4'000'000));
  auto failed = row(100, 100, 100);
  failed.status = record::Status::kHttp5xx;
  sums.add(failed);
  record::RequestRow unsent;
  sums.add(unsent);
  const auto got = sums.sums();
  EXPECT_EQ(got.attempted, 3);
  EXPECT_EQ(got.completed, 2);
  EXPECT_EQ(got.prompt_tokens, 30);
  EXPECT_EQ(got.output_tokens, 7);
  EXPECT_DOUBLE_EQ(*got.ttft_mean_ms, 3);
  EXPECT_DOUBLE_EQ(*got.e2e_mean_ms, 4);
  auto unknown = row(1, 1, 1);
  unknown.prompt_tokens.reset();
  sums.add(unknown);
  sums.add(row(1, 1, 1));
  EXPECT_FALSE(sums.sums().prompt_tokens.has_value());
  EXPECT_EQ(sums.sums().output_tokens, 9);
  EXPECT_FALSE(SumsOfRows().sums().ttft_mean_ms.has_value());
}

TEST(ImpliedHits, OfGroupsAndOfOwnPrompts) {
  BenchOptions options;
  workload::Schedule schedule;
  for (int64_t i = 0; i < 10; ++i) schedule.entries.push_back({.index = i, .input_tokens = 100});
  EXPECT_EQ(implied_hits(options, schedule, 10), 0.0);
  for (auto& entry : schedule.entries) {
    entry.prefix_group = static_cast<int32_t>(entry.index % 2);
    entry.prefix_tokens = 50;
  }
  // The first of each group finds nothing.
  EXPECT_DOUBLE_EQ(*implied_hits(options, schedule, 10), 8 * 50 / 1000.0);
  EXPECT_DOUBLE_EQ(*implied_hits(options, schedule, 4), 2 * 50 / 400.0);
  EXPECT_FALSE(implied_hits(options, schedule, 0).has_value());
  schedule.entries[3].turn = 1;
  EXPECT_FALSE(implied_hits(options, schedule, 10).has_value());
  options.dataset = "sharegpt";
  EXPECT_FALSE(implied_hits(options, schedule, 2).has_value());
}

TEST(TelemetryOptions, AreChecked) {
  BenchOptions options;
  EXPECT_TRUE(check_telemetry(options).ok());
  options.metrics_interval_s = 0.01;
  EXPECT_EQ(check_telemetry(options).error().message,
            "--metrics-interval: found 0.01, expected 0.05 to 3600 s");
  options.metrics_interval_s = 0.05;
  options.server_metrics = "nonsense";
  EXPECT_THAT(check_telemetry(options).error().message, HasSubstr("--server-metrics: found"));
  options.server_metrics = "http://127.0.0.1:9/metrics";
  EXPECT_TRUE(check_telemetry(options).ok());
}

}  // namespace
}  // namespace prony::load
