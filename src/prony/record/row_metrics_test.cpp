// Tests of the definitions on single requests, each case worked out by hand in its comment.
#include "prony/record/row_metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "prony/record/random_rows.hpp"

namespace prony::record {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::Pointwise;

constexpr core::Nanos kMs = core::kNanosPerMilli;

// Meant for 0 ms, sent at 2 ms, first event (the role) at 5 ms, tokens at 52, 62, 72, 82 ms.
RequestRow plain_row() {
  RequestRow row;
  row.status = Status::kOk;
  row.http_status = 200;
  row.output_tokens = 4;
  row.token_source = TokenSource::kUsage;
  row.t_send_ns = 2 * kMs;
  row.t_sent_ns = 2 * kMs;
  row.t_first_event_ns = 5 * kMs;
  row.t_first_token_ns = 52 * kMs;
  row.t_last_token_ns = 82 * kMs;
  row.t_done_ns = 83 * kMs;
  row.tokens_per_event_exact = true;
  row.first_event_tokens = 1;
  for (const core::Nanos t : {52, 62, 72, 82}) row.events.push_back({t * kMs, t * kMs, 1});
  return row;
}

std::vector<double> itl(const RequestRow& row) {
  std::vector<double> out;
  append_itl_ms(row, out);
  return out;
}
std::vector<double> icl(const RequestRow& row) {
  std::vector<double> out;
  append_icl_ms(row, out);
  return out;
}

TEST(RowMetrics, PlainStream) {
  const auto row = plain_row();
  EXPECT_DOUBLE_EQ(*ttft_ms(row), 50);
  EXPECT_DOUBLE_EQ(*ttft_intended_ms(row), 52);
  EXPECT_DOUBLE_EQ(*ttfe_ms(row), 3);
  EXPECT_FALSE(ttfo_ms(row).has_value());
  EXPECT_DOUBLE_EQ(*e2e_ms(row), 80);
  EXPECT_DOUBLE_EQ(*e2e_intended_ms(row), 82);
  EXPECT_DOUBLE_EQ(*send_lag_ms(row), 2);
  EXPECT_DOUBLE_EQ(*tpot_ms(row), 10);  // 30 ms / (4 - 1)
  EXPECT_DOUBLE_EQ(*tpot_vllm_ms(row), 10);
  EXPECT_DOUBLE_EQ(*ntpot_ms(row), 20);  // 80 / 4
  EXPECT_FALSE(connect_ms(row).has_value());
  // TTFT is in neither: exactly N - 1 gaps of the decode alone.
  EXPECT_THAT(itl(row), ElementsAre(10, 10, 10));
  EXPECT_THAT(icl(row), ElementsAre(10, 10, 10));
}

TEST(RowMetrics, SeveralTokensAChunk) {
  auto row = plain_row();
  row.output_tokens = 16;
  row.first_event_tokens = 4;
  for (auto& event : row.events) event.tokens = 4;
  EXPECT_DOUBLE_EQ(*tpot_ms(row), 2.5);     // 30 ms / (16 - 4)
  EXPECT_DOUBLE_EQ(*tpot_vllm_ms(row), 2);  // 30 ms / 15: vLLM's form is lower
  EXPECT_THAT(icl(row), ElementsAre(10, 10, 10));
  EXPECT_EQ(itl(row), std::vector<double>(12, 2.5));
  row.first_event_tokens = 0;  // unknown: taken as 1
  EXPECT_DOUBLE_EQ(*tpot_ms(row), 2);
  row.tokens_per_event_exact = false;  // then ITL is ICL
  EXPECT_THAT(itl(row), ElementsAre(10, 10, 10));
}

TEST(RowMetrics, EventsWithoutATokenCarryTheirGap) {
  auto row = plain_row();
  // 0 | 1 | 0 | 2 tokens: the clock starts at the second event; 20 ms for two tokens.
  row.events[0].tokens = 0;
  row.events[2].tokens = 0;
  row.events[3].tokens = 2;
  EXPECT_THAT(itl(row), ElementsAre(10, 10));
  for (auto& event : row.events) event.tokens = 0;
  EXPECT_TRUE(itl(row).empty());
  row.events.clear();
  EXPECT_TRUE(itl(row).empty());
  EXPECT_TRUE(icl(row).empty());
}

TEST(RowMetrics, UndefinedWhereThereIsNothingToDivide) {
  auto row = plain_row();
  row.output_tokens = 1;
  EXPECT_FALSE(tpot_ms(row).has_value());
  EXPECT_FALSE(tpot_vllm_ms(row).has_value());
  row.output_tokens = 4;
  row.first_event_tokens = 4;  // everything in the first event
  EXPECT_FALSE(tpot_ms(row).has_value());
  EXPECT_TRUE(tpot_vllm_ms(row).has_value());
  row.output_tokens.reset();
  EXPECT_FALSE(tpot_ms(row).has_value());
  EXPECT_FALSE(ntpot_ms(row).has_value());
  row.t_send_ns.reset();
  EXPECT_FALSE(ttft_ms(row).has_value());
  EXPECT_TRUE(ttft_intended_ms(row).has_value());
  EXPECT_FALSE(e2e_ms(row).has_value());
}

TEST(RowMetrics, TokensInAWindow) {
  auto row = plain_row();
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 0, 100 * kMs), 4);
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 0, 62 * kMs), 2);  // both ends are inside
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 62 * kMs, 72 * kMs), 2);
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 83 * kMs, 100 * kMs), 0);
  // The server counted five (an end token without text): spread over the four events.
  row.output_tokens = 5;
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 0, 100 * kMs), 5);
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 0, 62 * kMs), 2.5);
  // Counts of the events steer the spread only where they are exact.
  row.events[0].tokens = 3;
  row.output_tokens = 6;
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 0, 52 * kMs), 3);
  row.tokens_per_event_exact = false;
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 0, 52 * kMs), 1.5);
  // No total: the events' own counts, unknown ones as one token.
  row.output_tokens.reset();
  row.events[1].tokens = 0;
  EXPECT_DOUBLE_EQ(tokens_of(row), 3 + 1 + 1 + 1);
}

TEST(RowMetrics, TokensInAWindowWithoutEvents) {
  auto row = plain_row();
  row.events.clear();
  // First token at 52 ms, three more at 62, 72, 82 ms.
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 0, 100 * kMs), 4);
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 0, 52 * kMs), 1);
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 53 * kMs, 73 * kMs), 2);
  row.first_event_tokens = 3;
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 0, 52 * kMs), 3);
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 53 * kMs, 81 * kMs), 0);
  EXPECT_DOUBLE_EQ(tokens_in_window(row, 53 * kMs, 82 * kMs), 1);
}

TEST(RowMetrics, WindowsAddUpToTheWhole) {
  core::Rng rng(21);
  for (int round = 0; round < 2'000; ++round) {
    auto row = random_row(rng, round, 1'000 * kMs);
    if (rng.below(4) == 0) row.events.clear();
    const core::Nanos cut1 = static_cast<core::Nanos>(rng.below(1'500 * kMs));
    const core::Nanos cut2 = cut1 + 1 + static_cast<core::Nanos>(rng.below(500 * kMs));
    const double sum = tokens_in_window(row, -1, cut1) + tokens_in_window(row, cut1 + 1, cut2) +
                       tokens_in_window(row, cut2 + 1, 1'000'000 * kMs);
    ASSERT_NEAR(sum, tokens_of(row), 1e-9) << round;
  }
}

TEST(RowMetrics, GapsAddUpToTheDecodeTime) {
  core::Rng rng(22);
  for (int round = 0; round < 2'000; ++round) {
    auto row = random_row(rng, round, 1'000 * kMs);
    if (row.events.empty()) continue;
    const auto gaps = icl(row);
    ASSERT_EQ(gaps.size(), row.events.size() - 1);
    const double span = static_cast<double>(*row.t_last_token_ns - *row.t_first_token_ns) / 1e6;
    ASSERT_NEAR(std::accumulate(gaps.begin(), gaps.end(), 0.0), span, 1e-6);
    const bool all_hold_tokens = std::all_of(row.events.begin(), row.events.end(),
                                             [](const auto& event) { return event.tokens > 0; });
    if (!row.tokens_per_event_exact || !all_hold_tokens) continue;
    const auto token_gaps = itl(row);
    int32_t tokens = 0;
    for (const auto& event : row.events) tokens += event.tokens;
    // N - n_first values, N - 1 for one token an event; their sum is the same time.
    ASSERT_EQ(token_gaps.size(), static_cast<size_t>(tokens - row.events.front().tokens));
    ASSERT_NEAR(std::accumulate(token_gaps.begin(), token_gaps.end(), 0.0), span, 1e-6);
  }
}

TEST(RowMetrics, LargestBurst) {
  auto row = plain_row();
  EXPECT_DOUBLE_EQ(*largest_burst_share(row), 0.25);
  row.events[3].tokens = 9;
  EXPECT_DOUBLE_EQ(*largest_burst_share(row), 0.75);
  for (auto& event : row.events) event = {52 * kMs, 52 * kMs, 1};  // four events at one instant
  EXPECT_DOUBLE_EQ(*largest_burst_share(row), 1);
  row.events.clear();
  EXPECT_FALSE(largest_burst_share(row).has_value());
}

TEST(RowMetrics, GoodKeepsEveryBound) {
  const auto row = plain_row();  // ttft 50, tpot 10, e2e 80; intended 52 and 82
  EXPECT_TRUE(is_good(row, {}));
  EXPECT_TRUE(is_good(row, {.ttft_ms = 50, .tpot_ms = 10, .e2e_ms = 80}));
  EXPECT_FALSE(is_good(row, {.ttft_ms = 49.9}));
  EXPECT_FALSE(is_good(row, {.tpot_ms = 9.9}));
  EXPECT_FALSE(is_good(row, {.e2e_ms = 79.9}));
  EXPECT_FALSE(is_good(row, {.ttft_intended_ms = 51.9}));
  EXPECT_FALSE(is_good(row, {.e2e_intended_ms = 81.9}));
  auto failed = row;
  failed.status = Status::kTruncated;
  EXPECT_FALSE(is_good(failed, {}));
  auto single = row;
  single.output_tokens = 1;  // no TPOT to break
  EXPECT_TRUE(is_good(single, {.tpot_ms = 0.001}));
}

TEST(RowMetrics, LastStamp) {
  auto row = plain_row();
  EXPECT_EQ(last_stamp_ns(row), 83 * kMs);
  row.t_close_ns = 90 * kMs;
  EXPECT_EQ(last_stamp_ns(row), 90 * kMs);
  EXPECT_EQ(last_stamp_ns(RequestRow{.t_intended_ns = 7}), 7);
}

}  // namespace
}  // namespace prony::record
