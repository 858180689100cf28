// Tests of a comparison's page: what it says, where the bars lie, and that no text becomes markup.
#include "prony/report/compare_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "prony/report/report.hpp"

namespace prony::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

record::Comparison sample() {
  record::Comparison out;
  out.sides = {{"old", {{}}}, {"new", {{}}}};
  out.sides[0].runs[0].path = "runs/old";
  out.sides[1].runs[0].path = "runs/new";
  record::SideComparison one;
  one.method = "paired";
  one.notes = {"one run a side"};
  one.differences = {{"system", "server", "v1", "v2", false}};
  record::ComparedMetric metric;
  metric.key = "ttft_p50";
  metric.label = "TTFT p50";
  metric.unit = "ms";
  metric.baseline = 20;
  metric.candidate = 22;
  metric.relative = {0.10, stats::Interval{0.05, 0.20}};
  metric.p = metric.p_holm = 0.002;
  metric.verdict = record::CompareVerdict::kRegressed;
  one.metrics.push_back(metric);
  one.rules.emplace_back();
  one.rules[0].text = "ttft_p50>+5%";
  one.rules[0].unit = "%";
  one.rules[0].change = {10, stats::Interval{5, 20}};
  out.comparisons.push_back(one);
  out.curves = {{"ttft", "TTFT", 0, 2, {1, 2}, {0.5, 1}}, {"ttft", "TTFT", 1, 2, {2, 3}, {0.5, 1}}};
  return out;
}

std::string page_of(const record::Comparison& comparison) {
  const auto text = render_compare_html(comparison);
  return text.ok() ? text.value() : text.error().message;
}

TEST(ComparePage, SaysWhatThereIs) {
  const auto page = page_of(sample());
  EXPECT_THAT(page, HasSubstr("against old"));
  EXPECT_THAT(page, HasSubstr("system.server"));
  EXPECT_THAT(page, HasSubstr("+10.00 %"));
  EXPECT_THAT(page, HasSubstr("+5.00 to +20.00"));
  EXPECT_THAT(page, HasSubstr("regressed"));
  EXPECT_THAT(page, HasSubstr("ttft_p50&gt;+5%"));
  EXPECT_THAT(page, HasSubstr("undecided"));
  EXPECT_THAT(page, HasSubstr("runs/new"));
  // The scale is +-20 %: 5 % lies at 62.5, 20 % at 100, the dot at 75.
  EXPECT_THAT(page, HasSubstr("left:62.50%;width:max(2px,37.50%);background:var(--bad)"));
  EXPECT_THAT(page, HasSubstr("left:75.00%;background:var(--bad)"));
  EXPECT_THAT(page, Not(HasSubstr("verdict invalid")));
}

TEST(ComparePage, SaysLoudlyWhatMayNotBeCompared) {
  auto comparison = sample();
  comparison.comparisons[0].comparable = false;
  comparison.comparisons[0].reasons = {"runs/new is not valid: late"};
  const auto page = page_of(comparison);
  EXPECT_THAT(page, HasSubstr("verdict invalid"));
  EXPECT_THAT(page, HasSubstr("These runs may not be compared"));
  EXPECT_THAT(page, HasSubstr("runs/new is not valid: late"));
}

TEST(ComparePage, NoTextBecomesMarkup) {
  auto comparison = sample();
  const std::string attack = "</script><img src=x onerror=\"alert(1)\">";
  for (auto& side : comparison.sides) {
    side.name = attack;
    side.runs[0].path = side.runs[0].started_at = attack;
    side.runs[0].valid = false;
    side.runs[0].reasons = {attack};
  }
  auto& one = comparison.comparisons[0];
  one.notes = one.reasons = {attack};
  one.differences = {{attack, attack, attack, attack, true}};
  one.metrics[0].label = one.metrics[0].method = attack;
  one.rules[0].text = attack;
  EXPECT_THAT(page_of(comparison), Not(HasSubstr("<img")));
}

TEST(ComparePage, RefusesNumbersThatAreNone) {
  auto comparison = sample();
  comparison.curves[0].x_ms[0] = std::numeric_limits<double>::infinity();
  const auto text = render_compare_html(comparison);
  // Without figures no curve is written, and nothing else holds the number.
  EXPECT_EQ(text.ok(), !has_figures());
}

}  // namespace
}  // namespace prony::report
