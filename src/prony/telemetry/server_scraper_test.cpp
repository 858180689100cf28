// Tests of the scraper, of the cross-check against the client's sums and of the guard of the prefix
// cache: a server played by a function.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/telemetry/cross_check.hpp"

namespace prony::telemetry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using M = ServerMetric;

// A server whose counters the test moves.
struct Server {
  double requests = 100, prompt = 5000, output = 700, ttft_s = 20, running = 0;
  double queries = 5000, hits = 4000;
  int fail = 0;  // so many scrapes fail
  int scrapes = 0;
  int counting = 0;  // so many scrapes until the counters are what they should be

  ServerScraper::Fetch fetch() {
    return [this]() -> Result<std::string> {
      ++scrapes;
      if (fail > 0) {
        --fail;
        return environment_error("http://x/metrics: no answer in time");
      }
      const double late = counting > 0 ? counting-- : 0;
      return fmt::format(
          "vllm:num_requests_running {}\nvllm:num_requests_waiting 0\n"
          "vllm:request_success_total {}\nvllm:prompt_tokens_total {}\n"
          "vllm:generation_tokens_total {}\nvllm:time_to_first_token_seconds_sum {}\n"
          "vllm:time_to_first_token_seconds_count {}\nvllm:prefix_cache_queries_total {}\n"
          "vllm:prefix_cache_hits_total {}\n?\n",
          running, requests, prompt, output - late, ttft_s, requests, queries, hits);
    };
  }
  // `n` requests of 50 prompt tokens and 7 output tokens, 200 ms to the first.
  void serve(double n) {
    requests += n;
    prompt += 50 * n;
    output += 7 * n;
    ttft_s += 0.2 * n;
    queries += 50 * n;
  }
};

ClientSums sums(int64_t n) {
  return {.attempted = n,
          .completed = n,
          .prompt_tokens = 50 * n,
          .output_tokens = 7 * n,
          .ttft_mean_ms = 201,
          .e2e_mean_ms = std::nullopt};
}

ServerDifferences run(Server& server, ServerScraper& scraper, double n) {
  scraper.begin(true);
  server.serve(n);
  scraper.end();
  return scraper.differences().value();
}

TEST(ServerScraper, OpensOnKnownNamesOnly) {
  Server server;
  EXPECT_TRUE(ServerScraper(server.fetch()).open().ok());
  server.fail = 1;
  EXPECT_EQ(ServerScraper(server.fetch()).open().error().message,
            "http://x/metrics: no answer in time");
  const auto opened =
      ServerScraper([]() -> Result<std::string> { return std::string("up 1\n"); }).open();
  EXPECT_THAT(opened.error().message, HasSubstr("found no metric of vLLM"));
}

TEST(ServerScraper, DifferencesOfCounters) {
  Server server;
  ServerScraper scraper(server.fetch());
  const auto gained = run(server, scraper, 10);
  EXPECT_EQ(gained[M::kRequests], 10);
  EXPECT_EQ(gained[M::kPromptTokens], 500);
  EXPECT_EQ(gained[M::kGenerationTokens], 70);
  EXPECT_NEAR(*gained[M::kTtftSum], 2, 1e-9);
  EXPECT_FALSE(gained[M::kE2eSum].has_value());
  EXPECT_FALSE(gained[M::kRunning].has_value());  // a gauge
  EXPECT_FALSE(gained.restarted);
  EXPECT_EQ(scraper.summary_json()["bad_lines"], server.scrapes);
}

TEST(ServerScraper, WaitsUntilTheCountersSettle) {
  Server server;
  ServerScraper scraper(server.fetch());
  scraper.begin(true);
  EXPECT_EQ(server.scrapes, 1);
  server.serve(10);
  server.counting = 3;  // the last tokens are counted a little later
  scraper.end();
  EXPECT_EQ(scraper.differences().value()[M::kGenerationTokens], 70);
  EXPECT_EQ(server.scrapes, 1 + 5);
}

TEST(ServerScraper, SeriesOfGaugesAndRates) {
  Server server;
  ServerScraper scraper(server.fetch());
  scraper.begin(true);
  server.running = 4;
  server.serve(10);
  scraper.scrape();
  server.fail = 1;
  scraper.scrape();
  server.running = 0;
  scraper.end();
  std::map<std::string, core::Json> series;
  for (auto& one : scraper.series_json()) series[one["name"]] = one;
  EXPECT_EQ(series["server.running"]["max"], 4);
  EXPECT_EQ(series["server.running"]["values"][0], 0);
  EXPECT_GT(series["server.generation_tokens_rate"]["max"], 0);
  EXPECT_EQ(series["server.generation_tokens_rate"]["unit"], "tokens/s");
  EXPECT_EQ(series.count("server.kv_usage"), 0U);  // this server has none
  EXPECT_EQ(scraper.summary_json()["failed_scrapes"], 1);
  EXPECT_EQ(scraper.first_error(), "http://x/metrics: no answer in time");
}

TEST(ServerScraper, NoAnswerBeforeOrAfterIsNoDifference) {
  Server server;
  server.fail = 1;
  ServerScraper scraper(server.fetch());
  scraper.begin(true);
  scraper.end();
  EXPECT_FALSE(scraper.differences().has_value());
}

TEST(CrossCheck, AgreesWithinTwoPercent) {
  Server server;
  ServerScraper scraper(server.fetch());
  const auto check = cross_check(run(server, scraper, 100), sums(100), 0.0);
  EXPECT_THAT(check.warnings, IsEmpty());
  ASSERT_EQ(check.json["checks"].size(), 4U);
  for (const auto& one : check.json["checks"]) EXPECT_EQ(one["agree"], true) << one.dump();
  EXPECT_EQ(check.json["others_seen"], false);
  EXPECT_EQ(check.json["prefix_cache"]["hit_fraction"], 0);
  EXPECT_EQ(check.json["prefix_cache"]["as_implied"], true);
  EXPECT_EQ(check.json["differences"]["e2e_sum"], nullptr);
}

TEST(CrossCheck, SaysBothNumbersWhereTheyDisagree) {
  Server server;
  ServerScraper scraper(server.fetch());
  const auto gained = run(server, scraper, 100);
  auto client = sums(100);
  client.output_tokens = 686;  // 2 % less: still agreement
  EXPECT_THAT(cross_check(gained, client, 0.0).warnings, IsEmpty());
  client.output_tokens = 685;
  EXPECT_THAT(cross_check(gained, client, 0.0).warnings,
              ElementsAre("output tokens: the client has 685 tokens, the server's /metrics 700 "
                          "(+2.1 %, agreement is within 2 %)"));
  client = sums(100);
  client.ttft_mean_ms = 210;
  EXPECT_THAT(
      cross_check(gained, client, 0.0).warnings,
      ElementsAre(HasSubstr("mean TTFT: the client has 210 ms, the server's /metrics 200")));
}

TEST(CrossCheck, ATimeOnTheNetworkIsNoDisagreement) {
  Server server;
  ServerScraper scraper(server.fetch());
  scraper.begin(true);
  server.requests += 10;
  server.ttft_s += 0.02;  // 2 ms each
  scraper.end();
  ClientSums client{.attempted = 10, .completed = 10, .ttft_mean_ms = 2.9};
  EXPECT_THAT(cross_check(*scraper.differences(), client, std::nullopt).warnings, IsEmpty());
  client.ttft_mean_ms = 3.1;
  EXPECT_EQ(cross_check(*scraper.differences(), client, std::nullopt).warnings.size(), 1U);
}

TEST(CrossCheck, FailedRequestsLeaveNothingToCompare) {
  Server server;
  ServerScraper scraper(server.fetch());
  auto client = sums(100);
  client.completed = 90;
  const auto check = cross_check(run(server, scraper, 95), client, 0.0);
  EXPECT_THAT(check.warnings, IsEmpty());
  EXPECT_TRUE(check.json["checks"].empty());
}

TEST(CrossCheck, OthersOnTheServer) {
  Server server;
  ServerScraper scraper(server.fetch());
  const auto more = cross_check(run(server, scraper, 110), sums(100), 0.0);
  EXPECT_EQ(more.json["others_seen"], true);
  EXPECT_THAT(more.warnings, ::testing::Contains(HasSubstr("others used the server")));
  Server busy;
  busy.running = 2;
  ServerScraper another(busy.fetch());
  const auto before = cross_check(run(busy, another, 100), sums(100), 0.0);
  EXPECT_THAT(before.warnings, ElementsAre(HasSubstr("2 requests in hand before the run")));
}

TEST(CrossCheck, RestartedServer) {
  Server server;
  ServerScraper scraper(server.fetch());
  scraper.begin(true);
  server = Server{.requests = 5, .prompt = 10, .output = 3};
  scraper.end();
  const auto check = cross_check(*scraper.differences(), sums(100), 0.0);
  EXPECT_THAT(check.warnings, ElementsAre(HasSubstr("it was restarted")));
  EXPECT_EQ(check.json["differences"]["requests"], nullptr);
}

CrossCheck with_hits(double n, double hits_share, ImpliedHits implied, double prompt = 50) {
  ServerDifferences server;
  server.gained[static_cast<size_t>(M::kPrefixQueries)] = n * prompt;
  server.gained[static_cast<size_t>(M::kPrefixHits)] = n * prompt * hits_share;
  return cross_check(server, {.attempted = static_cast<int64_t>(n), .completed = 1}, implied);
}

TEST(PrefixCacheGuard, PromptsSeenBefore) {
  EXPECT_THAT(with_hits(100, 0.9, 0.0, 2000).warnings,
              ElementsAre(HasSubstr("found 90.0 % of the prompt tokens in its prefix cache, the "
                                    "workload implies 0.0 %: it had seen these prompts before")));
  EXPECT_THAT(with_hits(100, 0.04, 0.0, 2000).warnings, IsEmpty());
  EXPECT_EQ(with_hits(100, 0.06, 0.0, 2000).warnings.size(), 1U);
  // A chat template is found again by every request, and weighs more in short prompts.
  EXPECT_THAT(with_hits(100, 0.25, 0.0, 256).warnings, IsEmpty());
  EXPECT_EQ(with_hits(100, 0.9, 0.0, 2000).json["prefix_cache"]["as_implied"], false);
}

TEST(PrefixCacheGuard, SharedPrefixes) {
  EXPECT_THAT(with_hits(100, 0.75, 0.8, 2000).warnings, IsEmpty());
  EXPECT_THAT(with_hits(100, 0.2, 0.8, 2000).warnings, ElementsAre(HasSubstr("the cache is off")));
  EXPECT_THAT(with_hits(100, 0.95, 0.8, 2000).warnings, ElementsAre(HasSubstr("warm cache")));
}

TEST(PrefixCacheGuard, NothingImpliedIsNoVerdict) {
  const auto check = with_hits(100, 0.9, std::nullopt, 2000);
  EXPECT_THAT(check.warnings, IsEmpty());
  EXPECT_EQ(check.json["prefix_cache"]["as_implied"], nullptr);
}

}  // namespace
}  // namespace prony::telemetry
