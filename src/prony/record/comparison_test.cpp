#include "prony/record/comparison.hpp"

#include <gtest/gtest.h>

#include "prony/core/file.hpp"
#include "prony/core/system.hpp"

namespace prony::record {
namespace {

Comparison sample() {
  Comparison out;
  out.replicates = 999;
  out.sides = {{"old", {{}}}, {"new", {{}}}};
  out.sides[0].runs[0].path = "a";
  out.sides[1].runs[0] = {
      "b", "label", "2026-11-30T19:09:34Z", true, "measured", "mock", 400, false, true, {"slow"}};
  SideComparison one;
  one.method = "paired";
  one.differences = {{"system", "model", "x", "y", true}};
  one.metrics.emplace_back();
  one.metrics[0].key = "ttft_p99";
  one.metrics[0].relative = {0.1, stats::Interval{0.05, 0.2}};
  one.metrics[0].p = 0.01;
  one.metrics[0].verdict = CompareVerdict::kRegressed;
  one.distributions.emplace_back();
  one.distributions[0].test = "wilcoxon";
  one.rules.emplace_back();
  one.rules[0].unit = "%";
  out.comparisons.push_back(std::move(one));
  return out;
}

TEST(Comparison, DocumentKeepsItsSchema) {
  auto comparison = sample();
  const auto text = comparison_text(comparison);
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto json = core::parse_json(text.value(), "compare.json").value();
  EXPECT_EQ(json["comparisons"][0]["baseline"], "old");
  EXPECT_EQ(json["comparisons"][0]["metrics"][0]["relative"]["upper"], 0.2);
  EXPECT_TRUE(json["comparisons"][0]["metrics"][0]["baseline"].is_null());
  EXPECT_TRUE(json["sides"][0]["runs"][0]["source"].is_null());
  comparison.comparisons[0].method = "somehow";
  EXPECT_FALSE(comparison_text(comparison).ok());
}

TEST(Comparison, BrokenAndRefused) {
  auto comparison = sample();
  EXPECT_FALSE(comparison.broken());
  EXPECT_FALSE(comparison.refused());
  EXPECT_EQ(comparison.count(CompareVerdict::kRegressed), 1);
  EXPECT_EQ(comparison.count(CompareVerdict::kCannotTell), 1);
  comparison.comparisons[0].rules[0].state = RuleState::kBroken;
  comparison.comparisons[0].comparable = false;
  EXPECT_TRUE(comparison.broken());
  EXPECT_TRUE(comparison.refused());
  comparison.allow_incomparable = true;
  EXPECT_FALSE(comparison.refused());
}

// After a change: PRONY_UPDATE_GOLDEN=1 prony_record_test --gtest_filter='Comparison.Published*'
TEST(Comparison, PublishedSchemaIsTheProgramsOwn) {
  const std::string path = PRONY_SOURCE_DIR "/docs/schema/prony.compare.1.json";
  const auto expected = core::write_json(comparison_json_schema(), 2).value() + "\n";
  if (core::environment_variable("PRONY_UPDATE_GOLDEN")) {
    ASSERT_TRUE(core::write_file_atomic(path, expected).ok());
  }
  const auto found = core::read_file(path);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_TRUE(found.value() == expected) << path << " is not what the program generates";
}

}  // namespace
}  // namespace prony::record
