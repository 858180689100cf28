// Tests of a sweep's page: what it says of invalid, missing and overloaded cells, that maps have
// the right cell in the right place, and that nothing of a run becomes markup.
#include "prony/report/sweep_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/report/sample_run.hpp"

namespace prony::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// target a, b x concurrency 1, 2, 4 x input-len 32, 64; TTFT p50 is 100 * concurrency + input-len.
record::Sweep sample_sweep() {
  record::Sweep sweep;
  sweep.axes = {{"target", {"fp16", "int4"}, true},
                {"concurrency", {"1", "2", "4"}, false},
                {"input-len", {"32", "64"}, false}};
  sweep.targets = {{"fp16", "http://h:1", ""}, {"int4", "", "serve --quant int4"}};
  sweep.model = "some/model";
  sweep.started_at = "2026-11-30T19:09:34Z";
  const auto run = sample_run({.requests = 200});
  sweep.environment = run.record.environment;
  for (const auto& target : sweep.axes[0].values) {
    for (const auto& concurrency : sweep.axes[1].values) {
      for (const auto& input : sweep.axes[2].values) {
        record::SweepCell cell;
        cell.values = {target, concurrency, input};
        cell.slug = target + "-" + concurrency + "-" + input;
        cell.record_path = "cells/" + cell.slug + "/record.json";
        cell.status = record::CellStatus::kDone;
        cell.metrics = run.record.metrics;
        const double c = concurrency == "1" ? 1 : concurrency == "2" ? 2 : 4;
        cell.metrics.ttft_ms.p50 = 100 * c + (input == "32" ? 32 : 64);
        cell.metrics.ttft_ms.ci95.p50 = stats::Interval{1, 999};
        cell.metrics.request_throughput = std::min(2 * c, 5.0);
        cell.metrics.e2e_ms.mean = 1000 * c / *cell.metrics.request_throughput;
        sweep.cells.push_back(cell);
      }
    }
  }
  return sweep;
}

std::string page_of(const record::Sweep& sweep) {
  const auto text = render_sweep_html(sweep);
  return text.ok() ? text.value() : text.error().message;
}

TEST(SweepPage, SaysWhatThereIs) {
  const auto page = page_of(sample_sweep());
  EXPECT_THAT(page, HasSubstr("some/model"));
  EXPECT_THAT(page, HasSubstr("Every cell was measured and is valid"));
  EXPECT_THAT(page, HasSubstr("<a href=\"cells/int4-4-64/record.json\">int4-4-64</a>"));
  EXPECT_THAT(page, HasSubstr("serve --quant int4"));
  EXPECT_THAT(page, HasSubstr("Knee at fp16, concurrency 2, input-len 32"));
  EXPECT_THAT(page, HasSubstr("132 [1, 999]"));  // value with its interval
  EXPECT_THAT(page, Not(HasSubstr("hatched")));
  EXPECT_THAT(page, HasSubstr("script-src"));
}

// In the map of fp16 the row of input-len 64 holds 164, 264, 464 in this order.
TEST(SweepPage, MapsHaveTheRightCellInTheRightPlace) {
  const auto page = page_of(sample_sweep());
  const auto row = page.find("<th scope=\"row\">64</th><td");
  ASSERT_NE(row, std::string::npos);
  const auto end = page.find("</tr>", row);
  const auto text = page.substr(row, end - row);
  const auto at = [&](const char* value) { return text.find(std::string(">") + value + "</td>"); };
  EXPECT_LT(at("164"), at("264"));
  EXPECT_LT(at("264"), at("464"));
  EXPECT_NE(at("464"), std::string::npos);
  // The greatest value of the map is of the deepest colour, the least of the palest.
  EXPECT_THAT(text, HasSubstr("background:#b0261e;color:#ffffff\" title=\"464 [1, 999]\""));
  EXPECT_THAT(page, HasSubstr("background:#fff4e0;color:#1d1f21\" title=\"132 [1, 999]\""));
}

TEST(SweepPage, InvalidAndMissingCellsAreHatchedAndSaid) {
  auto sweep = sample_sweep();
  sweep.cells[0].validity.refuse("an event loop was 97 % busy");
  sweep.cells[1].status = record::CellStatus::kUnreachable;
  sweep.cells[1].error = "not ready within 10 s";
  sweep.cells[2].metrics.overloaded = true;
  sweep.cells[3].system_kind = "mock";
  const auto page = page_of(sweep);
  EXPECT_THAT(page, HasSubstr("Not every cell has a result that can be believed"));
  EXPECT_THAT(page, HasSubstr("5px 7px)\">invalid</td>"));
  EXPECT_THAT(page, HasSubstr("5px 7px)\">none</td>"));
  EXPECT_THAT(page, HasSubstr("invalid: an event loop was 97 % busy"));
  EXPECT_THAT(page, HasSubstr("not ready within 10 s"));
  EXPECT_THAT(page, HasSubstr("1 points are overloaded"));
  EXPECT_THAT(page, HasSubstr("1 cells loaded a mock"));
}

TEST(SweepPage, NothingOfARunBecomesMarkup) {
  auto sweep = sample_sweep();
  const std::string bad = "<script>alert(1)</script>\"'";
  sweep.model = sweep.label = bad;
  sweep.axes[0].values[0] = bad;
  sweep.targets[0] = {bad, bad, bad};
  for (auto& cell : sweep.cells) {
    if (cell.values[0] == "fp16") cell.values[0] = bad;
    cell.slug = cell.record_path = cell.error = bad;
    cell.validity.refuse(bad);
  }
  sweep.command = {bad};
  EXPECT_THAT(page_of(sweep), Not(HasSubstr("<script>alert")));
}

TEST(SweepPage, FiguresHoldEveryPointOnce) {
  auto sweep = sample_sweep();
  sweep.cells[1].validity.refuse("busy");
  const auto page = make_sweep_page(sweep);
  const auto json = sweep_figures_json(page);
  EXPECT_EQ(json["points"].size(), 12u);
  EXPECT_EQ(json["points"][11]["at"], core::parse_json("[1,2,1]", "x").value());
  EXPECT_EQ(json["loadAxis"], 1);
  EXPECT_EQ(json["columnAxis"], 1);  // three values
  EXPECT_EQ(json["rowAxis"], 2);
  size_t ttft_p50 = 0;
  while (json["metrics"][ttft_p50]["key"] != "ttft_p50_ms") ++ttft_p50;
  EXPECT_EQ(json["points"][0]["metrics"][ttft_p50], core::parse_json("[132,1,999]", "x").value());
  EXPECT_TRUE(json["points"][1]["metrics"][ttft_p50].is_null());
  EXPECT_EQ(json["knees"].size(), 3u);  // the fourth curve has two values left
}

TEST(SweepPage, OneAxisAndNoResultAtAll) {
  auto sweep = sample_sweep();
  sweep.axes.resize(2);
  for (auto& cell : sweep.cells) {
    cell.values.resize(2);
    cell.status = record::CellStatus::kPending;
  }
  EXPECT_THAT(page_of(sweep), HasSubstr("12 cells have no result"));
  sweep.axes.resize(1);
  for (auto& cell : sweep.cells) cell.values.resize(1);
  EXPECT_THAT(page_of(sweep), HasSubstr("</html>"));
}

}  // namespace
}  // namespace prony::report
