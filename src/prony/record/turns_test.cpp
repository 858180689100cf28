// The table by turn: each row in the turn that it says, against a filter of the rows by hand.
#include "prony/record/turns.hpp"

#include <gtest/gtest.h>

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

TEST(Turns, NoneWithoutSessionsAndBoundedWithLongOnes) {
  core::Rng rng(42);
  auto rows = random_rows(rng, 300, 5'000'000'000);
  for (auto& row : rows) row.turn.reset();
  EXPECT_TRUE(summarize(rows, {}).turns.empty());
  for (auto& row : rows) row.turn = static_cast<int32_t>(row.index);
  const auto metrics = summarize(rows, {.open_loop = false});
  ASSERT_EQ(metrics.turns.size(), static_cast<size_t>(kTurnsMax));
  EXPECT_EQ(metrics.turns.back().attempted, 300 - kTurnsMax + 1);
  auto record = sample_record();
  record.metrics = metrics;
  record.slo = nullptr;
  const auto text = record_text(record);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(record_from_json(core::parse_json(*text, "x").value(), "x").value(), record);
}

}  // namespace
}  // namespace prony::record
