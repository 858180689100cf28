// Tests of the text format and of the names that servers give: samples of each server's text, odd
// forms of the format, and a corpus of what is none.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "prony/core/file.hpp"
#include "prony/core/rng.hpp"
#include "prony/telemetry/metrics_testing.hpp"

namespace prony::telemetry {
namespace {

using M = ServerMetric;

std::string corpus(const std::string& name) {
  return core::read_file(PRONY_SOURCE_DIR "/tests/fuzz/metrics/" + name).value();
}

double only_value(std::string_view text) {
  const auto parsed = parse_metrics_text(text);
  EXPECT_EQ(parsed.samples.size(), 1U) << text;
  EXPECT_EQ(parsed.bad_lines, 0) << text;
  return parsed.samples.empty() ? -1 : parsed.samples[0].value;
}

TEST(MetricsText, EveryFormOfALine) {
  EXPECT_EQ(only_value("a 1"), 1);
  EXPECT_EQ(only_value("  a\t 1.5e+06 \n"), 1.5e6);
  EXPECT_EQ(only_value("a{} 2\r\n"), 2);
  EXPECT_EQ(only_value("a {b=\"c\", d = \"e\" , } 3"), 3);
  EXPECT_EQ(only_value("a{b=\"} 9 \\\" \\\\\"} 4"), 4);
  EXPECT_EQ(only_value("a 5 1700000000000"), 5);
  EXPECT_EQ(only_value("a_bucket{le=\"1\"} 6 # {trace=\"x\"} 0.5 1.7e9"), 6);
  EXPECT_EQ(only_value("a +Inf"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(only_value("a -Inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(only_value("a NaN")));
  EXPECT_EQ(parse_metrics_text("{\"a.b\",c=\"d\"} 1").samples.at(0).name, "a.b");
  EXPECT_EQ(parse_metrics_text("vllm:x{} 1").samples.at(0).name, "vllm:x");
}

TEST(MetricsText, WhatIsNoSampleIsCounted) {
  for (const auto* bad :
       {"a", "a b", "a 1 2 3", "a{b} 1", "a{b=\"c} 1", "a{b=\"c\"", "1a 2", "a 1e", "{} 1",
        "{b=\"c\"} 1", "{\"a\",\"b\"} 1", "a 1 x", "a{b=\"c\" d=\"e\"} 1"}) {
    const auto parsed = parse_metrics_text(bad);
    EXPECT_TRUE(parsed.samples.empty()) << bad;
    EXPECT_EQ(parsed.bad_lines, 1) << bad;
  }
  for (const auto* none : {"", "\n\n", "# HELP a b\n# TYPE a gauge\n", "  # x", "# EOF"}) {
    EXPECT_EQ(parse_metrics_text(none).bad_lines, 0) << none;
    EXPECT_TRUE(parse_metrics_text(none).samples.empty()) << none;
  }
  // A bad line costs itself alone.
  EXPECT_EQ(parse_metrics_text("a 1\n?\nb 2\n").samples.size(), 2U);
}

// Whatever is written comes back, in any order of lines and with any labels.
TEST(MetricsText, WritesAndReads) {
  core::Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    std::vector<std::pair<std::string, double>> written;
    const auto lines = rng.below(20);
    for (uint64_t i = 0; i < lines; ++i) {
      const auto name = fmt::format("m{}:{}_total", rng.below(5), rng.below(1000));
      const double value = rng.uniform() * 1e9 - 5e8;
      std::string labels;
      for (uint64_t k = rng.below(3); k > 0; --k) {
        labels += fmt::format("l{}=\"{}\",", k, rng.below(2) != 0 ? "a\\\"}} b" : "x,{y=z");
      }
      if (rng.below(3) == 0) text += "# a comment {\n\n";
      text += labels.empty() ? name : fmt::format("{}{{{}}}", name, labels);
      text += fmt::format(" {}{}\n", value, rng.below(2) != 0 ? " 123" : "");
      written.emplace_back(name, value);
    }
    const auto parsed = parse_metrics_text(text);
    EXPECT_EQ(parsed.bad_lines, 0) << text;
    ASSERT_EQ(parsed.samples.size(), written.size()) << text;
    for (size_t i = 0; i < written.size(); ++i) {
      EXPECT_EQ(parsed.samples[i].name, written[i].first);
      EXPECT_EQ(parsed.samples[i].value, written[i].second);
    }
  }
}

TEST(ServerMetrics, Vllm) {
  const auto text = corpus("vllm");
  const auto sample = read_server_metrics(parse_metrics_text(text)).value();
  EXPECT_EQ(sample.names, "vllm");
  EXPECT_EQ(sample[M::kRunning], 8);  // of two engines
  EXPECT_EQ(sample[M::kWaiting], 2);
  EXPECT_EQ(sample[M::kKvUsage], 0.5);  // the fullest; the old name beside the new one is ignored
  EXPECT_EQ(sample[M::kPromptTokens], 1.2e6);
  EXPECT_EQ(sample[M::kGenerationTokens], 34567);
  EXPECT_EQ(sample[M::kPrefixQueries], 1000);
  EXPECT_EQ(sample[M::kPrefixHits], 250);
  EXPECT_EQ(sample[M::kPreemptions], 1);
  EXPECT_EQ(sample[M::kRequests], 30);  // of all reasons
  EXPECT_EQ(sample[M::kTtftSum], 4.5);
  EXPECT_EQ(sample[M::kTtftCount], 30);
  EXPECT_EQ(sample[M::kE2eSum], 60.25);
  EXPECT_EQ(sample[M::kE2eCount], 30);
}

TEST(ServerMetrics, OldNamesOfVllmAlone) {
  const auto sample = read_server_metrics(parse_metrics_text("vllm:gpu_cache_usage_perc 0.5\n"
                                                             "vllm:gpu_cache_usage_perc 0.75\n"))
                          .value();
  EXPECT_EQ(sample[M::kKvUsage], 0.75);
  EXPECT_FALSE(sample[M::kRunning].has_value());
}

TEST(ServerMetrics, OtherServers) {
  const auto sglang_text = corpus("sglang"), llama_text = corpus("llamacpp"),
             tgi_text = corpus("tgi");
  const auto sglang = read_server_metrics(parse_metrics_text(sglang_text)).value();
  EXPECT_EQ(sglang.names, "sglang");
  EXPECT_EQ(sglang[M::kRunning], 8);
  EXPECT_EQ(sglang[M::kWaiting], 4);
  EXPECT_EQ(sglang[M::kKvUsage], 0.52);
  EXPECT_EQ(sglang[M::kPromptTokens], 4096);
  EXPECT_EQ(sglang[M::kPrefixQueries], 4096);
  EXPECT_EQ(sglang[M::kPrefixHits], 3168);  // of all tiers
  EXPECT_EQ(sglang[M::kRequests], 16);
  const auto llama = read_server_metrics(parse_metrics_text(llama_text)).value();
  EXPECT_EQ(llama.names, "llamacpp");
  EXPECT_EQ(llama[M::kRunning], 2);
  EXPECT_EQ(llama[M::kWaiting], 1);
  EXPECT_EQ(llama[M::kPromptTokens], 4661);
  EXPECT_EQ(llama[M::kGenerationTokens], 1024);
  EXPECT_FALSE(llama[M::kTtftSum].has_value());
  const auto tgi = read_server_metrics(parse_metrics_text(tgi_text)).value();
  EXPECT_EQ(tgi.names, "tgi");
  EXPECT_EQ(tgi[M::kRunning], 3);
  EXPECT_EQ(tgi[M::kGenerationTokens], 140);
  EXPECT_EQ(tgi[M::kE2eCount], 7);
}

TEST(ServerMetrics, ValuesThatAreNoNumbersAreLeftOut) {
  EXPECT_FALSE(read_server_metrics(parse_metrics_text("vllm:num_requests_running NaN\n")));
  EXPECT_FALSE(read_server_metrics(parse_metrics_text("process_cpu_seconds_total 1\n")));
  EXPECT_FALSE(read_server_metrics(parse_metrics_text("")));
}

TEST(ServerMetrics, TheServerWithTheMostNames) {
  const auto text = corpus("vllm") + "sglang:num_running_reqs 99\n";
  EXPECT_EQ(read_server_metrics(parse_metrics_text(text)).value().names, "vllm");
}

TEST(MetricsCorpus, HoldsForEveryInput) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(PRONY_SOURCE_DIR "/tests/fuzz/metrics")) {
    ++files;
    const auto text = core::read_file(entry.path().string()).value();
    EXPECT_TRUE(check_any_metrics(text)) << entry.path();
    for (size_t n = 0; n < text.size(); ++n) {  // cut anywhere
      ASSERT_TRUE(check_any_metrics(std::string_view(text).substr(0, n))) << entry.path() << n;
    }
  }
  EXPECT_GE(files, 7);
}

}  // namespace
}  // namespace prony::telemetry
