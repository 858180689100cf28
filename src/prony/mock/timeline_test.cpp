// make_timeline: exact instants of every kind of answer, without a clock.
#include "prony/mock/timeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "prony/core/rng.hpp"
#include "prony/mock/faults.hpp"

namespace prony::mock {
namespace {

constexpr core::Nanos kTtft = 1000, kItl = 10;

Plan plan_of(int64_t tokens, const std::vector<std::string>& faults, const RequestFacts& facts) {
  Plan plan;
  plan.ttft_ns = kTtft;
  plan.itl_ns = kItl;
  plan.tokens = tokens;
  const auto found = std::move(find_faults(faults)).value();
  for (const Fault* fault : found) fault->apply(plan, facts);
  return plan;
}

/// "R0 T1000:1 T1010:1 F1010 D1010 E1010": kind, instant, tokens.
std::string timeline(int64_t tokens, const std::vector<std::string>& faults = {},
                     RequestFacts facts = {}) {
  std::string text;
  for (const Step& step : make_timeline(plan_of(tokens, faults, facts), facts)) {
    constexpr std::string_view kLetters = "RTeP#nGFU!:pDE";
    if (!text.empty()) text += ' ';
    text += kLetters[static_cast<size_t>(step.kind)];
    text += std::to_string(step.at_ns);
    if (step.kind == StepKind::kTokens) text += ":" + std::to_string(step.tokens);
  }
  return text;
}

TEST(Timeline, PlainAnswer) {
  EXPECT_EQ(timeline(3), "R1000 T1000:1 T1010:1 T1020:1 F1020 D1020 E1020");
  EXPECT_EQ(timeline(1), "R1000 T1000:1 F1000 D1000 E1000");
  EXPECT_EQ(timeline(2, {}, {.chat = false}), "T1000:1 T1010:1 F1010 D1010 E1010");
  EXPECT_EQ(timeline(2, {}, {.include_usage = true}),
            "R1000 T1000:1 T1010:1 F1010 U1010 D1010 E1010");
}

TEST(Timeline, ChunksLeaveWhenTheirFirstTokenIsDue) {
  EXPECT_EQ(timeline(8, {"multi-token"}), "R1000 T1000:4 T1040:4 F1070 D1070 E1070");
  EXPECT_EQ(timeline(9, {"varied-chunks"}),
            "R1000 T1000:1 T1010:2 T1030:1 T1040:5 F1080 D1080 E1080");
  EXPECT_EQ(timeline(7, {"held-tokens"}),
            "R1000 T1000:1 T1010:1 T1030:2 T1040:1 T1060:2 F1060 D1060 E1060");
}

TEST(Timeline, BurstsLeaveWhenTheirLastTokenIsDue) {
  EXPECT_EQ(timeline(8, {"giant-chunk"}), "R1000 T1000:1 T1070:7 F1070 D1070 E1070");
  EXPECT_EQ(timeline(8, {"tool-call"}), "R1000 T1000:1 T1070:7 F1070 D1070 E1070");
  EXPECT_EQ(timeline(6, {"coalesced"}),
            "R1000 T1030:1 T1030:1 T1030:1 T1030:1 T1050:1 T1050:1 F1050 D1050 E1050");
}

TEST(Timeline, RolesAndEarlyEvents) {
  EXPECT_EQ(timeline(1, {"role-first"}), "R0 T1000:1 F1000 D1000 E1000");
  EXPECT_EQ(timeline(1, {"progress"}), "P250 P500 P750 R1000 T1000:1 F1000 D1000 E1000");
  EXPECT_EQ(timeline(1, {"pings", "empty-first"}),
            "#250 e250 #500 e500 #750 e750 R1000 T1000:1 F1000 D1000 E1000");
  EXPECT_EQ(timeline(2, {"empty-events"}), "R1000 T1000:1 e1005 T1010:1 F1010 D1010 E1010");
}

TEST(Timeline, BreaksComeWhenTheNextTokenWouldBeDue) {
  EXPECT_EQ(timeline(4, {"error-mid"}), "R1000 T1000:1 T1010:1 !1020 D1020 E1020");
  EXPECT_EQ(timeline(4, {"error-field"}), "R1000 T1000:1 T1010:1 :1020 E1020");
  EXPECT_EQ(timeline(4, {"stall"}), "R1000 T1000:1 T1010:1 E1020");
  EXPECT_EQ(timeline(4, {"close-in-event"}), "R1000 T1000:1 T1010:1 p1020 E1020");
  EXPECT_EQ(timeline(1, {"eof-mid"}), "R1000 T1000:1 E1010");
  EXPECT_EQ(timeline(4, {"error-first"}), "!1000 D1000 E1000");
  EXPECT_EQ(timeline(4, {"no-first-token"}), "R0 E1000");
  EXPECT_EQ(timeline(8, {"stall", "multi-token"}), "R1000 T1000:4 E1040");
  EXPECT_EQ(timeline(8, {"stall", "short-answer"}), "R1000 T1000:1 T1010:1 T1020:1 T1030:1 E1040");
}

TEST(Timeline, Endings) {
  EXPECT_EQ(timeline(2, {"zero-tokens"}), "R1000 F1000 D1000 E1000");
  EXPECT_EQ(timeline(2, {"done-only"}), "D1000 E1000");
  EXPECT_EQ(timeline(2, {"no-done"}), "R1000 T1000:1 T1010:1 F1010 E1010");
  EXPECT_EQ(timeline(2, {"no-finish"}), "R1000 T1000:1 T1010:1 D1010 E1010");
  EXPECT_EQ(timeline(2, {"text-with-finish"}), "R1000 T1000:1 T1010:1 D1010 E1010");
}

// Whatever is combined: steps are in order, tokens are counted once, the end is last.
TEST(Timeline, RandomCombinationsAreInOrderAndCountEachTokenOnce) {
  core::Rng rng(11);
  int made = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> names;
    for (uint64_t i = rng.below(5); i > 0; --i) {
      names.emplace_back(all_faults()[rng.below(all_faults().size())].name);
    }
    if (!find_faults(names).ok()) continue;
    const RequestFacts facts{
        .chat = rng.below(2) == 0, .include_usage = rng.below(2) == 0, .index = 3};
    const auto tokens = static_cast<int64_t>(1 + rng.below(40));
    const Plan plan = plan_of(tokens, names, facts);
    if (plan.whole) continue;
    const auto steps = make_timeline(plan, facts);
    ASSERT_FALSE(steps.empty());
    EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
      return a.at_ns < b.at_ns;
    })) << ::testing::PrintToString(names);
    int64_t next = 0;
    for (const Step& step : steps) {
      if (step.kind != StepKind::kTokens) continue;
      EXPECT_EQ(step.first_token, next);
      next += step.tokens;
    }
    EXPECT_EQ(next,
              plan.cut == Cut::kNone ? plan.tokens : std::min(plan.cut_at_tokens, plan.tokens))
        << ::testing::PrintToString(names);
    EXPECT_EQ(steps.back().kind, StepKind::kEnd);
    EXPECT_EQ(std::count_if(steps.begin(), steps.end(),
                            [](const Step& step) { return step.kind == StepKind::kEnd; }),
              1);
    ++made;
  }
  EXPECT_GT(made, 500);
}

}  // namespace
}  // namespace prony::mock
