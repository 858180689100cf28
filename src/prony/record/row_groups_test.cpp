// The tables by turn and by stage: each row in the group that it says, against a filter by hand.
#include "prony/record/row_groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "prony/record/random_rows.hpp"
#include "prony/record/sample_record.hpp"
#include "prony/record/summary.hpp"

namespace prony::record {
namespace {

TEST(Turns, AreWhatASummaryOfTheirRowsAloneWouldSay) {
  core::Rng rng(41);
  auto rows = random_rows(rng, 900, 5'000'000'000);
  for (auto& row : rows) {
    row.session.reset();
    row.turn.reset();
    if (row.index % 10 == 9) continue;  // not of a session
    row.session = row.index / 10;
    row.turn = static_cast<int32_t>(row.index % 10 % 4);
  }
  const SummaryOptions options{.open_loop = false};
  const auto metrics = summarize(rows, options);
  ASSERT_EQ(metrics.turns.size(), 4u);
  const auto window = measurement_window(RowSpan(rows), options);
  for (int32_t turn = 0; turn < 4; ++turn) {
    const auto& found = metrics.turns[static_cast<size_t>(turn)];
    std::vector<RequestRow> alone;
    double input = 0;
    for (const auto& row : rows) {
      if (row.turn != turn) continue;
      alone.push_back(row);
      if (row.status == Status::kOk) input += row.prompt_tokens.value_or(row.input_tokens_asked);
    }
    SummaryOptions given = options;
    given.window_begin_ns = window.begin_ns;
    given.window_end_ns = window.end_ns;
    const auto expected = summarize(alone, given);
    EXPECT_EQ(found.turn, turn);
    EXPECT_EQ(found.attempted, expected.attempted);
    EXPECT_EQ(found.completed, expected.completed);
    EXPECT_EQ(found.ttft_ms, expected.ttft_ms);
    EXPECT_EQ(found.tpot_ms, expected.tpot_ms);
    EXPECT_EQ(found.itl_ms, expected.itl_ms);
    EXPECT_EQ(found.e2e_ms, expected.e2e_ms);
    EXPECT_NEAR(*found.input_tokens_mean, input / static_cast<double>(*expected.completed), 1e-9);
  }
}

TEST(Stages, AreWhatASummaryOfTheirRowsAloneWouldSay) {
  core::Rng rng(43);
  auto rows = random_rows(rng, 600, 5'000'000'000);
  auto start_ns = rows.front().t_intended_ns;
  for (const auto& row : rows) start_ns = std::min(start_ns, row.t_intended_ns);
  for (auto& row : rows) {
    row.stage = row.t_intended_ns - start_ns < 2'000'000'000 ? 0 : 1;
  }
  const SummaryOptions options;
  const auto metrics = summarize(rows, options);
  ASSERT_EQ(metrics.stages.size(), 2u);
  int64_t attempted = 0;
  for (int32_t stage = 0; stage < 2; ++stage) {
    const auto& found = metrics.stages[static_cast<size_t>(stage)];
    double output = 0, first_s = 1e9, last_s = 0, completed = 0;
    for (const auto& row : rows) {
      if (row.stage != stage) continue;
      const double s = core::to_seconds(row.t_intended_ns - start_ns);
      first_s = std::min(first_s, s);
      last_s = std::max(last_s, s);
      if (row.status != Status::kOk) continue;
      ++completed;
      int32_t streamed = 0;  // where the server does not count
      for (const auto& event : row.events) streamed += std::max(1, event.tokens);
      output += row.output_tokens.value_or(streamed);
    }
    EXPECT_EQ(found.stage, stage);
    EXPECT_EQ(static_cast<double>(found.completed), completed);
    EXPECT_NEAR(*found.output_tokens_mean, output / completed, 1e-9);
    EXPECT_NEAR(found.begin_s, first_s, 1e-9);
    EXPECT_NEAR(found.end_s, last_s, 1e-9);
    attempted += found.attempted;
  }
  EXPECT_LT(metrics.stages[0].end_s, 2);
  EXPECT_GE(metrics.stages[1].begin_s, 2);
  EXPECT_EQ(attempted, *metrics.attempted);
}

TEST(Turns, NoneWithoutSessionsAndBoundedWithLongOnes) {
  core::Rng rng(42);
  auto rows = random_rows(rng, 300, 5'000'000'000);
  for (auto& row : rows) row.turn.reset();
  EXPECT_TRUE(summarize(rows, {}).turns.empty());
  for (auto& row : rows) row.turn = static_cast<int32_t>(row.index);
  const auto metrics = summarize(rows, {.open_loop = false});
  ASSERT_EQ(metrics.turns.size(), static_cast<size_t>(kGroupsMax));
  EXPECT_EQ(metrics.turns.back().attempted, 300 - kGroupsMax + 1);
  auto record = sample_record();
  record.metrics = metrics;
  record.slo = nullptr;
  const auto text = record_text(record);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(record_from_json(core::parse_json(*text, "x").value(), "x").value(), record);
}

}  // namespace
}  // namespace prony::record
