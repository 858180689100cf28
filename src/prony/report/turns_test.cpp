// Turns: each turn by itself, failures counted and in no latency, the last line of very long ones.
#include "prony/report/turns.hpp"

#include <gtest/gtest.h>

#include "prony/report/html.hpp"
#include "prony/report/report.hpp"
#include "prony/report/sample_run.hpp"

namespace prony::report {
namespace {

record::RequestRow turn_row(int32_t turn, int64_t ttft_ms, int32_t input) {
  record::RequestRow row;
  row.session = 1;
  row.turn = turn;
  row.status = record::Status::kOk;
  row.t_send_ns = row.t_intended_ns = 1'000'000'000;
  row.t_first_token_ns = *row.t_send_ns + ttft_ms * 1'000'000;
  row.t_last_token_ns = *row.t_first_token_ns + 90'000'000;
  row.prompt_tokens = input;
  row.output_tokens = 10;
  row.first_event_tokens = 1;
  return row;
}

TEST(Turns, EachTurnByItself) {
  Turns turns;
  for (int32_t turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 5; ++i) turns.add(turn_row(turn, 10 * (turn + 1) + i, 100 * (turn + 1)));
  }
  auto failed = turn_row(1, 5000, 100'000);
  failed.status = record::Status::kTruncated;
  turns.add(failed);
  auto alone = turn_row(0, 1, 1);
  alone.turn.reset();
  turns.add(alone);
  const auto lines = turns.finish();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines.at(0).attempted, 5);
  EXPECT_EQ(lines.at(1).attempted, 6);
  EXPECT_EQ(lines.at(1).failed, 1);
  EXPECT_EQ(lines.at(1).ttft_ms.p50, 22);
  EXPECT_EQ(lines.at(1).ttft_ms.max, 24);
  EXPECT_EQ(lines.at(2).input_tokens_mean, 300);
  EXPECT_EQ(lines.at(2).output_tokens_mean, 10);
  EXPECT_EQ(lines.at(2).tpot_ms.p50, 10);
  EXPECT_EQ(lines.at(2).e2e_ms.p50, 122);
}

TEST(Turns, VeryLateTurnsShareALine) {
  Turns turns;
  for (const int32_t turn : {0, 63, 64, 500}) turns.add(turn_row(turn, 10, 10));
  const auto lines = turns.finish();
  EXPECT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines.at(Turns::kTurnsMax - 1).attempted, 3);
}

TEST(Turns, ThePageHasTheTableOnlyForConversations) {
  auto run = sample_run({.requests = 60, .failed_fraction = 0});
  const auto page = [&] {
    return render_html(run.record, record::RowSpan(run.rows), {run.summary}).value();
  };
  EXPECT_EQ(page().find("id=\"turns\""), std::string::npos);
  for (size_t i = 0; i < run.rows.size(); ++i) run.rows[i].turn = static_cast<int32_t>(i % 3);
  const auto text = page();
  const auto at = text.find("id=\"turns\"");
  ASSERT_NE(at, std::string::npos);
  const auto table = text.substr(at, text.find("</section>", at) - at);
  EXPECT_NE(table.find("<td class=\"num\">20</td>"), std::string::npos) << table;
}

}  // namespace
}  // namespace prony::report
