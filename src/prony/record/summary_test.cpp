// Tests of the summary: window rules, populations, failures, null rules and flags, on runs small
// enough to work out by hand. The arithmetic at large is in summary_property_test.cpp.
#include "prony/record/summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/record/random_rows.hpp"
#include "prony/record/row_metrics.hpp"

namespace prony::record {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr core::Nanos kMs = core::kNanosPerMilli;

// Meant and sent at `start_ms`, first token 50 ms later, `tokens` tokens 10 ms apart, one an event.
RequestRow stream(int64_t index, core::Nanos start_ms, int32_t tokens = 11) {
  RequestRow row;
  row.index = index;
  row.status = Status::kOk;
  row.http_status = 200;
  row.token_source = TokenSource::kUsage;
  row.input_tokens_asked = 100;
  row.prompt_tokens = 100;
  row.output_tokens_asked = tokens;
  row.output_tokens = tokens;
  row.t_intended_ns = start_ms * kMs;
  row.t_send_ns = start_ms * kMs;
  row.t_sent_ns = start_ms * kMs;
  row.t_first_event_ns = row.t_first_token_ns = (start_ms + 50) * kMs;
  for (int32_t i = 0; i < tokens; ++i) {
    const core::Nanos t = (start_ms + 50 + 10 * i) * kMs;
    row.events.push_back({t, t + 20'000, 1});
  }
  row.t_last_token_ns = row.events.back().t_kernel_ns;
  row.t_done_ns = *row.t_last_token_ns;
  row.first_event_tokens = 1;
  row.tokens_per_event_exact = true;
  return row;
}

TEST(Summary, OpenLoopEndsAtTheLastArrivalAndDrainsOutside) {
  // Ten requests, 100 ms apart: window 900 ms. Each streams from +50 to +150 ms.
  std::vector<RequestRow> rows;
  for (int i = 0; i < 10; ++i) rows.push_back(stream(i, 100 * i));
  const auto metrics = summarize(rows, {.requested_rate_per_s = 10});
  EXPECT_EQ(metrics.window_rule, "arrivals");
  EXPECT_DOUBLE_EQ(*metrics.window_s, 0.9);
  EXPECT_DOUBLE_EQ(*metrics.duration_s, 1.05);
  // Requests 0 to 7 end inside; request 8 streams 850 to 950: tokens at 850 ... 900 are six.
  EXPECT_DOUBLE_EQ(*metrics.output_throughput, (8 * 11 + 6) / 0.9);
  EXPECT_DOUBLE_EQ(*metrics.output_throughput_run, 110 / 1.05);
  EXPECT_DOUBLE_EQ(*metrics.request_throughput, 8 / 0.9);
  EXPECT_DOUBLE_EQ(*metrics.request_throughput_run, 10 / 1.05);
  EXPECT_DOUBLE_EQ(*metrics.total_throughput, (8 * 11 + 6 + 9 * 100) / 0.9);  // nine first tokens
  EXPECT_EQ(metrics.attempted, 10);
  EXPECT_EQ(metrics.completed, 10);
  EXPECT_EQ(metrics.failed, 0);
  EXPECT_DOUBLE_EQ(*metrics.intended_rate, 10);
  EXPECT_DOUBLE_EQ(*metrics.sent_rate, 10);
  EXPECT_DOUBLE_EQ(*metrics.requested_rate, 10);
  EXPECT_EQ(metrics.concurrency_max, 2);  // 150 ms each, 100 ms apart
  EXPECT_NEAR(*metrics.concurrency_mean, (8 * 0.15 + 0.1) / 0.9, 1e-12);
  EXPECT_NEAR(*metrics.ttft_ms.mean, 50, 1e-12);
  EXPECT_EQ(metrics.itl_ms.n, 100);  // (11 - 1) a request, the drain included
  EXPECT_NEAR(*metrics.read_lag_ms.max, 0.02, 1e-12);
}

TEST(Summary, ClosedLoopEndsAtTheLastCompletion) {
  std::vector<RequestRow> rows = {stream(0, 0), stream(1, 0, 21), stream(2, 150)};
  // A hang that ends 10 s later is part of the run, not of the window.
  rows.push_back(stream(3, 160));
  rows[3].status = Status::kTimeoutStall;
  rows[3].t_done_ns.reset();
  rows[3].t_close_ns = 10'000 * kMs;
  const auto metrics = summarize(rows, {.open_loop = false});
  EXPECT_EQ(metrics.window_rule, "completions");
  EXPECT_DOUBLE_EQ(*metrics.window_s, 0.3);  // request 2 ends at 300 ms
  EXPECT_DOUBLE_EQ(*metrics.duration_s, 10);
  EXPECT_DOUBLE_EQ(*metrics.request_throughput, 3 / 0.3);
  // The cut request keeps its tokens: all of 11, of which those at 210 ... 300 ms are ten.
  EXPECT_DOUBLE_EQ(*metrics.output_throughput, (11 + 21 + 11 + 10) / 0.3);
  EXPECT_DOUBLE_EQ(*metrics.output_throughput_run, 54 / 10.0);
  EXPECT_EQ(metrics.completed, 3);
  EXPECT_THAT(metrics.errors, ElementsAre(Pair("timeout_stall", 1)));
}

TEST(Summary, OneInstantOfArrivalsFallsBackToCompletions) {
  const std::vector<RequestRow> rows = {stream(0, 0), stream(1, 0)};
  const auto metrics = summarize(rows, {});
  EXPECT_EQ(metrics.window_rule, "completions");
  EXPECT_DOUBLE_EQ(*metrics.window_s, 0.15);
  EXPECT_FALSE(metrics.intended_rate.has_value());
}

TEST(Summary, NothingCompletedStillHasAWindow) {
  auto row = stream(0, 5);
  row.status = Status::kTruncated;
  const std::vector<RequestRow> rows = {row};
  const auto metrics = summarize(rows, {.goodput = {.ttft_ms = 1e9}});
  EXPECT_EQ(metrics.completed, 0);
  EXPECT_EQ(metrics.failed, 1);
  EXPECT_DOUBLE_EQ(*metrics.window_s, 0.15);
  EXPECT_DOUBLE_EQ(*metrics.output_throughput, 11 / 0.15);
  EXPECT_DOUBLE_EQ(*metrics.request_throughput, 0);
  EXPECT_DOUBLE_EQ(*metrics.goodput_fraction, 0);
  EXPECT_EQ(metrics.ttft_ms.n, 0);
  EXPECT_FALSE(metrics.ttft_ms.mean.has_value());
}

TEST(Summary, WarmUpIsInNoCountButItsTokensFillTheWindow) {
  // Request 0 is warm-up: streams until 150 ms, window begins at 100 ms.
  const std::vector<RequestRow> rows = {stream(0, 0), stream(1, 100), stream(2, 300)};
  const auto metrics = summarize(rows, {.window_begin_ns = 100 * kMs});
  EXPECT_EQ(metrics.attempted, 2);
  EXPECT_EQ(metrics.ttft_ms.n, 2);
  EXPECT_DOUBLE_EQ(*metrics.window_s, 0.2);
  // Of request 0 the tokens at 100 ... 150 ms, all of request 1, none of request 2.
  EXPECT_DOUBLE_EQ(*metrics.output_throughput, (6 + 11) / 0.2);
  EXPECT_DOUBLE_EQ(*metrics.request_throughput, 2 / 0.2);  // both end inside
}

TEST(Summary, GivenWindowLeavesLaterRequestsOut) {
  const std::vector<RequestRow> rows = {stream(0, 0), stream(1, 100), stream(2, 300)};
  const auto metrics = summarize(rows, {.window_begin_ns = 0, .window_end_ns = 200 * kMs});
  EXPECT_EQ(metrics.window_rule, "given");
  EXPECT_EQ(metrics.attempted, 2);
  EXPECT_DOUBLE_EQ(*metrics.duration_s, 0.45);
}

TEST(Summary, NoRows) {
  const auto metrics = summarize(std::span<const RequestRow>(), {.requested_rate_per_s = 3});
  EXPECT_EQ(metrics.attempted, 0);
  EXPECT_EQ(metrics.completed, 0);
  EXPECT_EQ(metrics.failed, 0);
  EXPECT_FALSE(metrics.window_s.has_value());
  EXPECT_EQ(metrics.e2e_ms.n, 0);
  EXPECT_DOUBLE_EQ(*metrics.requested_rate, 3);
}

TEST(Summary, FailuresNeverTouchALatency) {
  core::Rng rng(31);
  auto rows = random_rows(rng, 300, 2'000 * kMs);
  const SummaryOptions options{.window_begin_ns = 0, .window_end_ns = 2'000 * kMs};
  const auto with = summarize(rows, options);
  std::erase_if(rows, [](const RequestRow& row) { return row.status != Status::kOk; });
  const auto without = summarize(rows, options);
  EXPECT_GT(*with.failed, 50);
  EXPECT_EQ(with.ttft_ms, without.ttft_ms);
  EXPECT_EQ(with.tpot_ms, without.tpot_ms);
  EXPECT_EQ(with.itl_ms, without.itl_ms);
  EXPECT_EQ(with.icl_ms, without.icl_ms);
  EXPECT_EQ(with.e2e_ms, without.e2e_ms);
  EXPECT_EQ(with.ttft_intended_ms, without.ttft_intended_ms);
  EXPECT_EQ(with.e2e_intended_ms, without.e2e_intended_ms);
  EXPECT_EQ(with.tpot_vllm_ms, without.tpot_vllm_ms);
  EXPECT_EQ(with.output_tokens, without.output_tokens);
  EXPECT_GT(*with.output_throughput, *without.output_throughput);  // their tokens do count
}

TEST(Summary, OrderOfRowsDoesNotMatter) {
  core::Rng rng(32);
  auto rows = random_rows(rng, 200, 1'000 * kMs);
  const auto forward = summarize(rows, {.goodput = {.ttft_ms = 60}});
  std::reverse(rows.begin(), rows.end());
  const auto backward = summarize(rows, {.goodput = {.ttft_ms = 60}});
  EXPECT_EQ(forward.ttft_ms, backward.ttft_ms);
  EXPECT_EQ(forward.itl_ms, backward.itl_ms);
  EXPECT_EQ(forward.goodput, backward.goodput);
  EXPECT_NEAR(*forward.output_throughput, *backward.output_throughput, 1e-9);
}

TEST(Summary, ErrorsByStatusAndHttpCode) {
  std::vector<RequestRow> rows = {stream(0, 0)};
  for (const auto& [status, code] : {std::pair{Status::kHttp5xx, 503},
                                     {Status::kHttp5xx, 502},
                                     {Status::kHttp4xx, 429},
                                     {Status::kHttp5xx, 503},
                                     {Status::kNotStream, 200},
                                     {Status::kStreamError, 200}}) {
    RequestRow row;
    row.status = status;
    row.http_status = code;
    row.t_intended_ns = 10 * kMs;
    rows.push_back(row);
  }
  rows.push_back(RequestRow{.status = Status::kConnect});
  const auto metrics = summarize(rows, {});
  EXPECT_EQ(metrics.failed, 7);
  EXPECT_THAT(metrics.errors,
              ElementsAre(Pair("connect", 1), Pair("http_4xx", 1), Pair("http_5xx", 3),
                          Pair("not_stream", 1), Pair("stream_error", 1)));
  EXPECT_THAT(metrics.http_errors, ElementsAre(Pair("429", 1), Pair("502", 1), Pair("503", 2)));
}

TEST(Summary, PercentilesNeedTenSamplesBeyondThem) {
  std::vector<RequestRow> rows;
  const auto stats = [&](int n) {
    while (static_cast<int>(rows.size()) < n) {
      rows.push_back(stream(static_cast<int64_t>(rows.size()), static_cast<int>(rows.size()), 1));
    }
    return summarize(rows, {.open_loop = false}).ttft_ms;
  };
  EXPECT_TRUE(stats(1).p50 && stats(1).p75 && !stats(1).p90 && !stats(1).sd);
  EXPECT_FALSE(stats(99).p90.has_value());
  EXPECT_TRUE(stats(100).p90 && stats(100).ci95.p90 && !stats(100).p95);
  EXPECT_FALSE(stats(199).p95.has_value());
  EXPECT_TRUE(stats(200).p95 && !stats(200).p99 && !stats(200).ci95.p99);
  EXPECT_FALSE(stats(999).p99.has_value());
  EXPECT_TRUE(stats(1000).p99 && stats(1000).ci95.p99 && !stats(1000).p999);
  EXPECT_FALSE(stats(9'999).p999.has_value());
  EXPECT_TRUE(stats(10'000).p999.has_value());
}

TEST(Summary, IntervalsExistFromSixSamples) {
  std::vector<RequestRow> rows;
  for (int i = 0; i < 5; ++i) rows.push_back(stream(i, i));
  EXPECT_FALSE(summarize(rows, {}).ttft_ms.ci95.p50.has_value());
  rows.push_back(stream(5, 5));
  EXPECT_TRUE(summarize(rows, {}).ttft_ms.ci95.p50.has_value());
}

TEST(Summary, OneStreamSaysNothingAboutTheSpreadBetweenStreams) {
  std::vector<RequestRow> rows = {stream(0, 0, 500)};
  EXPECT_FALSE(summarize(rows, {}).itl_ms.ci95.p50.has_value());
  rows.push_back(stream(1, 5, 500));
  EXPECT_TRUE(summarize(rows, {}).itl_ms.ci95.p50.has_value());
}

TEST(Summary, Goodput) {
  std::vector<RequestRow> rows;
  for (int i = 0; i < 8; ++i) rows.push_back(stream(i, 100 * i));
  rows[2].t_first_token_ns = *rows[2].t_first_token_ns + kMs;  // TTFT 51 ms
  rows[5].status = Status::kStreamError;
  const auto metrics = summarize(rows, {.goodput = {.ttft_ms = 50, .tpot_ms = 10}});
  EXPECT_DOUBLE_EQ(*metrics.goodput, 6 / 0.7);
  EXPECT_DOUBLE_EQ(*metrics.goodput_fraction, 6.0 / 8);  // of all attempted
  EXPECT_DOUBLE_EQ(*metrics.goodput_output_throughput, 66 / 0.7);
  EXPECT_EQ(metrics.goodput_slo, "ttft:50 tpot:10");
  const auto none = summarize(rows, {});
  EXPECT_FALSE(none.goodput || none.goodput_fraction || none.goodput_output_throughput);
  EXPECT_EQ(none.goodput_slo, "");
}

TEST(Summary, TokensAskedAgainstGot) {
  std::vector<RequestRow> rows = {stream(0, 0), stream(1, 1), stream(2, 2), stream(3, 3)};
  rows[1].output_tokens_asked = 20;
  rows[2].output_tokens_asked = 5;
  rows[3].output_tokens.reset();
  rows[3].token_source = TokenSource::kNone;
  rows[0].prompt_tokens.reset();
  const auto metrics = summarize(rows, {});
  EXPECT_EQ(
      metrics.output_tokens,
      (TokenTally{
          .requests = 4, .asked = 47, .got = 33, .equal = 1, .fewer = 1, .more = 1, .unknown = 1}));
  EXPECT_EQ(metrics.input_tokens.unknown, 1);
  EXPECT_EQ(metrics.input_tokens.got, 300);
  EXPECT_TRUE(metrics.token_source_mixed);
  EXPECT_THAT(metrics.token_sources, ElementsAre(Pair("none", 1), Pair("usage", 3)));
  EXPECT_EQ(metrics.tpot_undefined, 1);
}

TEST(Summary, ItlBasisSaysWhereTheGapsCameFrom) {
  std::vector<RequestRow> rows = {stream(0, 0), stream(1, 1)};
  EXPECT_EQ(summarize(rows, {}).itl_basis, "tokens");
  rows[0].tokens_per_event_exact = false;
  EXPECT_EQ(summarize(rows, {}).itl_basis, "mixed");
  rows[1].tokens_per_event_exact = false;
  const auto by_event = summarize(rows, {});
  EXPECT_EQ(by_event.itl_basis, "events");
  EXPECT_EQ(by_event.itl_ms, by_event.icl_ms);
  rows = {stream(0, 0, 1)};
  EXPECT_EQ(summarize(rows, {}).itl_basis, "");
  EXPECT_EQ(summarize(rows, {}).tpot_undefined, 1);
}

TEST(Summary, BurstyStreamsAreCounted) {
  std::vector<RequestRow> rows = {stream(0, 0), stream(1, 1), stream(2, 2, 4)};
  EXPECT_EQ(summarize(rows, {}).bursty_streams, 0);
  for (size_t i = 1; i < rows[1].events.size(); ++i) {  // all but the first at one instant
    rows[1].events[i].t_kernel_ns = rows[1].events.back().t_kernel_ns;
  }
  for (auto& event : rows[2].events) event.t_kernel_ns = rows[2].events.back().t_kernel_ns;
  EXPECT_EQ(summarize(rows, {}).bursty_streams, 1);  // four tokens are too few to tell
}

TEST(Summary, SteadinessOfAnOpenLoop) {
  std::vector<RequestRow> rows;
  for (int i = 0; i < 200; ++i) rows.push_back(stream(i, 10 * i));
  EXPECT_EQ(summarize(rows, {}).steady, true);
  // A server that falls behind: every answer later than the one before, from 50 to 449 ms.
  for (int i = 0; i < 200; ++i) {
    for (auto* stamp : {&rows[static_cast<size_t>(i)].t_first_token_ns,
                        &rows[static_cast<size_t>(i)].t_last_token_ns}) {
      **stamp += 2 * i * kMs;
    }
  }
  const auto metrics = summarize(rows, {});
  EXPECT_EQ(metrics.steady, false);
  EXPECT_GT(*metrics.steady_change, 0.2);
  rows.resize(50);
  EXPECT_FALSE(summarize(rows, {}).steady.has_value());
}

}  // namespace
}  // namespace prony::record
