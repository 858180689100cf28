// Other tools' figures of our rows: worked out by hand on a small run, against a second
// implementation on random ones, and the key set of vLLM's result file.
#include "prony/record/compat.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "prony/record/random_rows.hpp"
#include "prony/record/sample_record.hpp"
#include "prony/record/vllm_result.hpp"

namespace prony::record {
namespace {

using core::Nanos;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Nanos kMs = core::kNanosPerMilli;

// Sent at `start_ms`; role event at +40, tokens at +50, +60 (two in one event), +80; finish at +81,
// connection closed at +90.
RequestRow small_stream(int64_t index, Nanos start_ms) {
  RequestRow row;
  row.index = index;
  row.status = Status::kOk;
  row.http_status = 200;
  row.token_source = TokenSource::kUsage;
  row.prompt_tokens = row.input_tokens_asked = 100;
  row.output_tokens = row.output_tokens_asked = 4;
  const auto at = [&](Nanos ms) { return (start_ms + ms) * kMs; };
  row.t_intended_ns = at(0);
  row.t_send_ns = row.t_sent_ns = at(0);
  row.t_first_event_ns = at(40);
  row.t_first_token_ns = row.t_first_output_ns = at(50);
  row.events = {{at(50), at(50), 1}, {at(60), at(60), 2}, {at(80), at(80), 1}};
  row.t_last_token_ns = at(80);
  row.t_done_ns = at(81);
  row.t_close_ns = at(90);
  row.first_event_tokens = 1;
  row.tokens_per_event_exact = true;
  return row;
}

double value(const CompatReport& report, const std::string& name, const std::string& statistic) {
  for (const auto& metric : report.metrics) {
    if (metric.name != name) continue;
    for (const auto& [key, number] : metric.values) {
      if (key == statistic) return number;
    }
  }
  ADD_FAILURE() << name << " " << statistic;
  return -1;
}

TEST(Compat, VllmsDefinitionsByHand) {
  const std::vector<RequestRow> rows = {small_stream(0, 0), small_stream(1, 1000)};
  const auto report = compat_report(CompatTool::kVllm, RowSpan(rows), {.ttft_ms = 39});
  EXPECT_NEAR(value(report, "ttft", "mean"), 40, 1e-9);  // the role event
  EXPECT_NEAR(value(report, "e2el", "median"), 81, 1e-9);
  EXPECT_NEAR(value(report, "tpot", "mean"), 41.0 / 3, 1e-9);
  // Gaps 10, 10, 20, 1 of each request.
  EXPECT_NEAR(value(report, "itl", "mean"), 41.0 / 4, 1e-9);
  EXPECT_NEAR(value(report, "itl", "median"), 10, 1e-9);
  EXPECT_NEAR(value(report, "itl", "std"), std::sqrt((0.0625 * 2 + 95.0625 + 85.5625) / 4), 1e-9);
  EXPECT_NEAR(value(report, "duration", ""), 1.09, 1e-9);
  EXPECT_NEAR(value(report, "output_throughput", ""), 8 / 1.09, 1e-9);
  EXPECT_NEAR(value(report, "total_token_throughput", ""), 208 / 1.09, 1e-9);
  EXPECT_EQ(value(report, "request_goodput", ""), 0);
  EXPECT_EQ(value(report, "max_output_tokens_per_s", ""), 5);  // five events, four tokens
}

TEST(Compat, AiperfsDefinitionsByHand) {
  auto rows = std::vector<RequestRow>{small_stream(0, 0), small_stream(1, 1000)};
  rows[1].output_tokens = 1;  // no ITL of one token
  const auto report = compat_report(CompatTool::kAiperf, RowSpan(rows), {.ttft_ms = 60});
  EXPECT_NEAR(value(report, "time_to_first_token", "avg"), 50, 1e-9);
  EXPECT_NEAR(value(report, "time_to_second_token", "avg"), 10, 1e-9);
  EXPECT_NEAR(value(report, "request_latency", "p50"), 80, 1e-9);
  EXPECT_NEAR(value(report, "inter_token_latency", "avg"), 10, 1e-9);
  EXPECT_NEAR(value(report, "inter_chunk_latency", "avg"), 15, 1e-9);
  EXPECT_NEAR(value(report, "output_token_throughput_per_user", "avg"), 100, 1e-9);
  EXPECT_NEAR(value(report, "benchmark_duration", ""), 1.08, 1e-9);
  EXPECT_NEAR(value(report, "output_token_throughput", ""), 5 / 1.08, 1e-9);
  EXPECT_NEAR(value(report, "goodput", ""), 2 / 1.08, 1e-9);
}

TEST(Compat, GuidellmsDefinitionsByHand) {
  auto rows = std::vector<RequestRow>{small_stream(0, 0), small_stream(1, 1000)};
  rows[1].output_tokens = 2;
  const auto report = compat_report(CompatTool::kGuidellm, RowSpan(rows), {});
  EXPECT_NEAR(value(report, "time_to_first_token_ms", "mean"), 50, 1e-9);
  EXPECT_NEAR(value(report, "request_latency", "mean"), 0.09, 1e-9);
  // 10 ms weighing 3, 30 ms weighing 1.
  EXPECT_NEAR(value(report, "inter_token_latency_ms", "mean"), 15, 1e-9);
  EXPECT_NEAR(value(report, "inter_token_latency_ms", "median"), 10, 1e-9);
  EXPECT_NEAR(value(report, "inter_token_latency_ms", "p95"), 30, 1e-9);
  // 20 ms weighing 4, 40 ms weighing 2: it contains TTFT.
  EXPECT_NEAR(value(report, "time_per_output_token_ms", "mean"), 160.0 / 6, 1e-9);
  EXPECT_NEAR(value(report, "output_tokens_per_second", ""), 6 / 1.09, 1e-9);
}

TEST(Compat, NothingCompletedGivesZerosAsTheyDo) {
  for (const auto tool : {CompatTool::kVllm, CompatTool::kAiperf, CompatTool::kGuidellm}) {
    const auto report = compat_report(tool, RowSpan({}), {.ttft_ms = 1});
    EXPECT_GT(report.metrics.size(), 5u);
    for (const auto& metric : report.metrics) {
      for (const auto& [name, number] : metric.values) EXPECT_EQ(number, 0) << metric.name;
    }
    const auto json = compat_to_json(report);
    EXPECT_EQ(json.size(), report.metrics.size());
    EXPECT_TRUE(core::write_json(json).ok());
  }
}

// vLLM's own loop over a list of outputs, written out again in the most literal form.
TEST(CompatProperty, VllmAgreesWithBruteForce) {
  core::Rng rng(77);
  for (int round = 0; round < 200; ++round) {
    const auto rows = random_rows(rng, static_cast<int64_t>(1 + rng.below(60)), 3'000'000'000);
    const auto found = vllm_metrics(RowSpan(rows), {.ttft_ms = 50, .tpot_ms = 30});
    std::vector<double> ttfts, tpots, itls, e2els;
    int64_t good = 0, output = 0;
    for (const auto& row : rows) {
      if (row.status != Status::kOk) continue;
      std::vector<Nanos> seen = {*row.t_first_event_ns};
      for (const auto& event : row.events) seen.push_back(event.t_kernel_ns);
      seen.push_back(*row.t_done_ns);
      // Events at one instant that are one for us: the first, if it brought the first token.
      if (seen[0] == seen[1]) seen.erase(seen.begin());
      if (seen.back() == seen[seen.size() - 2]) seen.pop_back();
      for (size_t i = 1; i < seen.size(); ++i) {
        itls.push_back(static_cast<double>(seen[i] - seen[i - 1]) / 1e6);
      }
      int64_t n = 0;
      if (row.output_tokens) {
        n = *row.output_tokens;
      } else {
        for (const auto& event : row.events) n += std::max(1, event.tokens);
      }
      output += n;
      ttfts.push_back(static_cast<double>(*row.t_first_event_ns - *row.t_send_ns) / 1e6);
      e2els.push_back(static_cast<double>(seen.back() - *row.t_send_ns) / 1e6);
      const double tpot = n > 1 ? (e2els.back() - ttfts.back()) / static_cast<double>(n - 1) : 0.0;
      if (n > 1) tpots.push_back(tpot);
      good += ttfts.back() <= 50 && tpot <= 30;
    }
    const std::pair<const Distribution*, std::vector<double>*> all[] = {{&found.ttft_ms, &ttfts},
                                                                        {&found.tpot_ms, &tpots},
                                                                        {&found.itl_ms, &itls},
                                                                        {&found.e2el_ms, &e2els}};
    for (const auto& [stats, values] : all) {
      std::sort(values->begin(), values->end());
      double sum = 0, square = 0;
      for (const double v : *values) sum += v;
      const auto n = static_cast<double>(values->size());
      const double mean = n > 0 ? sum / n : 0;
      for (const double v : *values) square += (v - mean) * (v - mean);
      ASSERT_NEAR(stats->mean(), mean, 1e-9 * (1 + mean));
      ASSERT_NEAR(stats->sd_population(), n > 0 ? std::sqrt(square / n) : 0, 1e-6 * (1 + mean));
      if (values->empty()) continue;
      const double position = 0.99 * (n - 1);
      const auto i = static_cast<size_t>(position);
      const double next = (*values)[std::min(i + 1, values->size() - 1)];
      ASSERT_NEAR(stats->percentile(99),
                  (*values)[i] + (next - (*values)[i]) * (position - static_cast<double>(i)),
                  1e-9 * (1 + mean));
    }
    ASSERT_EQ(found.completed, static_cast<int64_t>(ttfts.size()));
    ASSERT_EQ(found.completed + found.failed, static_cast<int64_t>(rows.size()));
    ASSERT_EQ(found.total_output, output);
    ASSERT_NEAR(*found.request_goodput * found.duration_s, static_cast<double>(good), 1e-6);
  }
}

std::vector<std::string> keys_of(const core::Json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, item] : json.items()) keys.push_back(key);
  return keys;
}

// The key set of vLLM's file at commit 009e6d4a, less what VllmResult's header says.
TEST(VllmResult, HasItsKeysAndUnits) {
  auto record = sample_record();
  record.run.metadata["gpu"] = "h100";
  record.workload.max_concurrency = 8;
  const std::vector<RequestRow> rows = {small_stream(0, 0), small_stream(1, 1000)};
  const auto json = vllm_result(record, RowSpan(rows), {});
  EXPECT_THAT(
      keys_of(json),
      ElementsAre("date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id",
                  "num_prompts", "gpu", "request_rate", "burstiness", "max_concurrency", "duration",
                  "completed", "failed", "total_input_tokens", "total_output_tokens",
                  "request_throughput", "request_goodput", "output_throughput",
                  "total_token_throughput", "max_output_tokens_per_s", "max_concurrent_requests",
                  "mean_ttft_ms", "median_ttft_ms", "std_ttft_ms", "p99_ttft_ms", "mean_tpot_ms",
                  "median_tpot_ms", "std_tpot_ms", "p99_tpot_ms", "mean_itl_ms", "median_itl_ms",
                  "std_itl_ms", "p99_itl_ms"));
  EXPECT_EQ(json["date"], "20261130-190934");
  EXPECT_EQ(json["request_rate"], 80.0);
  EXPECT_EQ(json["request_goodput"], nullptr);
  EXPECT_NEAR(json["mean_ttft_ms"].get<double>(), 40, 1e-9);  // milliseconds
  EXPECT_NEAR(json["duration"].get<double>(), 1.09, 1e-9);    // seconds

  const auto detailed = vllm_result(
      record, RowSpan(rows), {.metrics = {"e2el"}, .percentiles = {50, 99.9}, .detailed = true});
  EXPECT_NEAR(detailed["ttfts"][0].get<double>(), 0.04, 1e-12);  // seconds
  EXPECT_EQ(detailed["itls"][1].size(), 4u);
  EXPECT_EQ(detailed["output_lens"], core::Json::parse("[4, 4]"));
  EXPECT_EQ(detailed["errors"], core::Json::parse(R"(["", ""])"));
  EXPECT_TRUE(detailed.contains("p50_e2el_ms"));
  EXPECT_TRUE(detailed.contains("p99.9_e2el_ms"));
  EXPECT_FALSE(detailed.contains("mean_ttft_ms"));
  EXPECT_EQ(vllm_result_filename(record),
            "openai-chat-80.0qps-concurrency8-example-model-20261130-190934.json");
  record.workload.request_rate.reset();
  record.system.model = "meta-llama/Llama-3.1-8B";
  record.run.label = "a/b";
  EXPECT_EQ(vllm_result_filename(record),
            "a_b-infqps-concurrency8-Llama-3.1-8B-20261130-190934.json");
  EXPECT_EQ(vllm_result(record, RowSpan(rows), {})["request_rate"], "inf");
}

TEST(VllmResult, ReadsItsFlags) {
  EXPECT_THAT(parse_percentile_metrics("ttft, e2el").value(), ElementsAre("ttft", "e2el"));
  EXPECT_THAT(parse_percentile_metrics("ttft,,").error().message,
              HasSubstr("--percentile-metrics: found ''"));
  EXPECT_THAT(parse_metric_percentiles("50,99.9").value(), ElementsAre(50, 99.9));
  EXPECT_THAT(parse_metric_percentiles("50,101").error().message,
              HasSubstr("--metric-percentiles: found '101'"));
}

}  // namespace
}  // namespace prony::record
