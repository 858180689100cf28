#include "prony/compare/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "prony/compare/compare_testing.hpp"
#include "prony/compare/curves.hpp"
#include "prony/core/file.hpp"
#include "prony/core/temporary_folder.hpp"
#include "prony/record/row_metrics.hpp"
#include "prony/record/rows_file.hpp"

namespace prony::compare {
namespace {

using record::CompareVerdict;
using testing::HasSubstr;

const record::ComparedMetric& metric(const record::Comparison& comparison, std::string_view key) {
  const auto& metrics = comparison.comparisons.front().metrics;
  const auto found = std::ranges::find(metrics, key, &record::ComparedMetric::key);
  EXPECT_NE(found, metrics.end()) << key;
  return *found;
}

record::Comparison compared(const MadeRun& a, const MadeRun& b, Options options = {}) {
  options.replicates = 999;
  return compare({made_side("a", a), made_side("b", b)}, options);
}

TEST(Compare, FiguresAreTheRecords) {
  MadeRun a{.events = true}, b{.noise = 2, .slower = 1.2, .events = true};
  const auto comparison = compared(a, b);
  const auto ra = made_run(a), rb = made_run(b);
  EXPECT_EQ(metric(comparison, "ttft_p90").baseline, ra.metrics.ttft_ms.p90);
  EXPECT_EQ(metric(comparison, "itl_p99").candidate, rb.metrics.itl_ms.p99);
  EXPECT_EQ(metric(comparison, "goodput_fraction").candidate, rb.metrics.goodput_fraction);
  const auto& one = metric(comparison, "tpot_mean");
  EXPECT_NEAR(*one.relative.value, *rb.metrics.tpot_ms.mean / *ra.metrics.tpot_ms.mean - 1, 1e-12);
  EXPECT_NEAR(*one.difference.value, *rb.metrics.tpot_ms.mean - *ra.metrics.tpot_ms.mean, 1e-12);
}

TEST(Compare, AKnownShiftIsFoundInItsDirection) {
  const MadeRun a{.events = true}, slow{.noise = 2, .slower = 1.1, .events = true};
  const auto worse = compared(a, slow), better = compared(slow, a);
  EXPECT_EQ(worse.comparisons.front().method, "paired");
  for (const char* key : {"ttft_mean", "ttft_p50", "tpot_mean", "e2e_p90", "itl_p50"}) {
    const auto& change = metric(worse, key);
    EXPECT_EQ(change.verdict, CompareVerdict::kRegressed) << key;
    EXPECT_LT(change.relative.interval->lower, 0.1) << key;
    EXPECT_GT(change.relative.interval->upper, 0.1) << key;
    EXPECT_EQ(metric(better, key).verdict, CompareVerdict::kImproved) << key;
    EXPECT_NEAR((1 + *change.relative.value) * (1 + *metric(better, key).relative.value), 1, 1e-9);
  }
  EXPECT_EQ(worse.comparisons.front().distributions.front().verdict, CompareVerdict::kRegressed);
  EXPECT_EQ(worse.comparisons.front().distributions.front().test, "wilcoxon");
}

TEST(Compare, APairIsSharperThanTwoSchedules) {
  const MadeRun a{}, paired{.noise = 2}, apart{.schedule = 2, .noise = 2};
  const auto width = [](const record::Comparison& comparison) {
    const auto& interval = *metric(comparison, "ttft_p50").relative.interval;
    return interval.upper - interval.lower;
  };
  const auto one = compared(a, paired), two = compared(a, apart);
  EXPECT_EQ(two.comparisons.front().method, "unpaired");
  EXPECT_EQ(two.comparisons.front().distributions.front().test, "mann-whitney");
  EXPECT_LT(2 * width(one), width(two));
  EXPECT_TRUE(two.comparisons.front().comparable) << "another draw of the same law";
}

TEST(Compare, SameSeedSameBits) {
  Options options;
  const auto text = [&](uint64_t seed) {
    options.seed = seed;
    return record::comparison_text(compared({.events = true}, {.noise = 3}, options)).value();
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

// One run dealt into two at random: no difference is real. Family-wise 5 % is asked of the
// verdicts, 5 % of each interval.
TEST(Compare, RandomSplitsGiveFewFalseAlarms) {
  constexpr int kRounds = 120;
  int alarmed = 0;
  std::map<std::string, int> missed;
  for (int round = 0; round < kRounds; ++round) {
    const MadeRun made{.schedule = static_cast<uint64_t>(round) + 1,
                       .noise = static_cast<uint64_t>(round) + 1,
                       .requests = 1200,
                       .correlation = 0.6,
                       .failures = 0.03};
    std::vector<record::RequestRow> halves[2];
    core::Rng rng(5, static_cast<uint64_t>(round));
    for (auto& row : made_rows(made)) halves[rng.below(2)].push_back(std::move(row));
    std::vector<SideInput> sides;
    for (auto& half : halves) {
      const auto record = made_record(made, half);
      sides.push_back({sides.empty() ? "a" : "b", {}});
      sides.back().runs.push_back(make_run("made", record, std::move(half)));
    }
    Options options;
    options.replicates = 499;
    const auto comparison = compare(sides, options);
    alarmed +=
        comparison.count(CompareVerdict::kImproved) + comparison.count(CompareVerdict::kRegressed) >
        0;
    for (const auto& one : comparison.comparisons.front().metrics) {
      const auto& change = one.unit.empty() ? one.difference : one.relative;
      if (!change.interval) continue;
      missed[one.key] += change.interval->lower > 0 || change.interval->upper < 0;
    }
  }
  EXPECT_LE(alarmed, kRounds / 10);
  for (const auto& [key, count] : missed) EXPECT_LE(count, kRounds / 10) << key;
  EXPECT_GE(missed.size(), 13u);
}

TEST(Compare, RulesFailOnlyForCertain) {
  Options options;
  options.rules = parse_rules(
                      "ttft_p50>+5%,ttft_p50>+60%,tpot_mean>+0.1ms,error_rate>+2pp,"
                      "ttft_p99>+9.9%,e2e_intended_p50>+5%")
                      .value();
  const auto comparison = compared({}, {.noise = 2, .slower = 1.2}, options);
  const auto& rules = comparison.comparisons.front().rules;
  ASSERT_EQ(rules.size(), 6u);
  EXPECT_EQ(rules[0].state, record::RuleState::kBroken);
  EXPECT_EQ(rules[1].state, record::RuleState::kKept);
  EXPECT_EQ(rules[2].state, record::RuleState::kBroken);
  EXPECT_EQ(rules[2].unit, "ms");
  EXPECT_EQ(rules[3].state, record::RuleState::kKept);
  EXPECT_EQ(rules[4].state, record::RuleState::kUndecided);  // 400 requests have no p99
  EXPECT_FALSE(rules[4].change.value);
  EXPECT_EQ(rules[5].state, record::RuleState::kBroken);  // named by a rule alone
  EXPECT_NEAR(rules[0].confidence, 1 - 0.05 / 6, 1e-12);
  EXPECT_TRUE(comparison.broken());
  EXPECT_THAT(comparison_table(comparison), HasSubstr("rule         ttft_p50>+5%: +"));
}

TEST(Compare, WhatMayNotBeComparedGetsNoVerdict) {
  auto sides = std::vector{made_side("a", {}), made_side("b", {.noise = 2, .slower = 2})};
  auto& record = *sides[1].runs[0].record;
  record.workload.request_rate = 90;
  record.validity.refuse("the client was late");
  Options options;
  options.replicates = 199;
  options.rules = parse_rules("ttft_p50>+5%").value();
  auto comparison = compare(sides, options);
  const auto& one = comparison.comparisons.front();
  EXPECT_FALSE(one.comparable);
  EXPECT_TRUE(comparison.refused());
  EXPECT_FALSE(comparison.broken());
  EXPECT_EQ(comparison.count(CompareVerdict::kRegressed), 0);
  ASSERT_EQ(one.reasons.size(), 2u);
  EXPECT_THAT(one.reasons[0], HasSubstr("b is not valid: the client was late"));
  EXPECT_THAT(one.reasons[1], HasSubstr("workload differs in request_rate: 80.0 and 90.0"));
  EXPECT_TRUE(one.differences.front().incomparable) << "first";
  EXPECT_THAT(comparison_table(comparison), HasSubstr("INCOMPARABLE b is not valid"));
  options.allow_incomparable = true;
  comparison = compare(sides, options);
  EXPECT_FALSE(comparison.refused());
  EXPECT_TRUE(comparison.broken());
  EXPECT_EQ(metric(comparison, "ttft_p50").verdict, CompareVerdict::kRegressed);
}

TEST(Compare, AnEmulationIsNoMeasurement) {
  auto sides = std::vector{made_side("a", {}), made_side("b", {})};
  sides[1].runs[0].record->system.kind = record::SystemKind::kEmulated;
  auto comparison = compare(sides, {});
  EXPECT_FALSE(comparison.comparisons.front().comparable);
  EXPECT_THAT(comparison.comparisons.front().reasons.front(), HasSubstr("system differs in kind"));
  sides[0].runs[0].record->system.kind = record::SystemKind::kEmulated;
  comparison = compare(sides, {});
  EXPECT_TRUE(comparison.comparisons.front().comparable);
}

TEST(Compare, FiguresAloneHaveNoVerdict) {
  auto sides = std::vector{made_side("a", {}), made_side("b", {.slower = 2})};
  sides[1].runs[0] = make_run("b", sides[1].runs[0].record, {});
  const auto comparison = compare(sides, {});
  const auto& one = comparison.comparisons.front();
  EXPECT_EQ(one.method, "figures");
  EXPECT_GT(*metric(comparison, "ttft_p50").relative.value, 0.9);
  EXPECT_FALSE(metric(comparison, "ttft_p50").relative.interval);
  EXPECT_EQ(comparison.count(CompareVerdict::kCannotTell), std::ssize(one.metrics));
  EXPECT_TRUE(one.distributions.empty());
}

TEST(Compare, RowsOfAnotherRunAreNotUsed) {
  const MadeRun a{}, b{.schedule = 2};
  const auto rows = made_rows(a);
  const auto run = make_run("mixed", made_record(a, rows), made_rows(b));
  EXPECT_FALSE(run.window);
  EXPECT_THAT(run.rows_note, HasSubstr("requests.jsonl"));
}

TEST(Compare, RepeatsCarryTheSpreadBetweenRuns) {
  std::vector<SideInput> sides = {{"a", {}}, {"b", {}}};
  for (uint64_t run = 1; run <= 4; ++run) {
    sides[0].runs.push_back(made_run({.schedule = run, .noise = run}));
    sides[1].runs.push_back(made_run({.schedule = run, .noise = run + 10, .slower = 1.1}));
  }
  auto comparison = compare(sides, {});
  EXPECT_EQ(comparison.comparisons.front().method, "paired runs");
  EXPECT_EQ(metric(comparison, "ttft_p50").samples, 8);
  EXPECT_EQ(metric(comparison, "ttft_p50").verdict, CompareVerdict::kRegressed);
  sides[1].runs.pop_back();
  comparison = compare(sides, {});
  EXPECT_EQ(comparison.comparisons.front().method, "runs");
  sides[1].runs.resize(1);
  comparison = compare(sides, {});
  EXPECT_THAT(comparison.comparisons.front().notes.front(), HasSubstr("a single run on one side"));
}

TEST(Compare, ThreeSidesShareOneFamily) {
  Options options;
  options.replicates = 199;
  const auto comparison = compare(
      {made_side("a", {}), made_side("b", {.noise = 2}), made_side("c", {.noise = 3})}, options);
  ASSERT_EQ(comparison.comparisons.size(), 2u);
  EXPECT_EQ(comparison.comparisons[1].candidate, 2u);
  for (const auto& one : comparison.comparisons) {
    for (const auto& tested : one.metrics) {
      EXPECT_GE(tested.p_holm.value_or(1), tested.p.value_or(0));
    }
  }
  EXPECT_TRUE(record::comparison_text(comparison).ok());
}

TEST(Curves, AreTheDistributionFunctions) {
  const auto side = made_side("a", {.requests = 3000});
  const auto curves = make_curves({side, side});
  ASSERT_EQ(curves.size(), 6u);  // no gaps without events
  std::vector<double> ttft;
  for (const auto& row : side.runs[0].rows) {
    if (!side.runs[0].window->holds(row.t_intended_ns)) continue;
    ttft.push_back(*record::ttft_ms(row));
  }
  const auto& curve = curves[0];
  EXPECT_EQ(curve.n, std::ssize(ttft));
  EXPECT_LE(curve.p.size(), 302u);
  EXPECT_EQ(curve.p.back(), 1);
  for (size_t i = 0; i < curve.p.size(); ++i) {
    const auto below = std::ranges::count_if(ttft, [&](double x) { return x <= curve.x_ms[i]; });
    EXPECT_NEAR(curve.p[i], static_cast<double>(below) / static_cast<double>(curve.n), 1e-12);
  }
}

TEST(Input, FoldersFilesAndRepeats) {
  const auto folder = core::TemporaryFolder::create().value();
  const std::string root = folder.path();
  const MadeRun made{.requests = 30};
  const auto rows = made_rows(made);
  for (const char* name : {"/a/1", "/a/2"}) {
    ASSERT_TRUE(core::make_directories(root + name).ok());
    ASSERT_TRUE(record::write_record(root + name + "/record.json", made_record(made, rows)).ok());
    ASSERT_TRUE(
        record::write_rows(root + name + std::string("/requests.jsonl"), record::RowSpan(rows), {})
            .ok());
  }
  const auto both = load_side({root + "/a"});
  ASSERT_TRUE(both.ok()) << both.error().message;
  EXPECT_EQ(both->runs.size(), 2u);
  EXPECT_EQ(both->name, "a");
  EXPECT_TRUE(both->runs[0].window);
  const auto rows_alone = load_run(root + "/a/1/requests.jsonl");
  ASSERT_TRUE(rows_alone.ok());
  EXPECT_FALSE(rows_alone->record);
  EXPECT_EQ(rows_alone->rows.size(), 30u);
  const auto by_record = load_run(root + "/a/1/record.json");
  EXPECT_EQ(by_record->rows.size(), 30u);
  std::vector<SideInput> sides = {*load_side({root + "/a/1"}), *load_side({root + "/a/1"}),
                                  *load_side({root + "/a/2"})};
  distinguish(sides);
  EXPECT_NE(sides[0].name, sides[1].name);
  EXPECT_THAT(load_run(root + "/b").error().message, HasSubstr("found no such file or folder"));
  ASSERT_TRUE(core::make_directories(root + "/empty").ok());
  EXPECT_THAT(load_side({root + "/empty"}).error().message, HasSubstr("expected a run"));
  ASSERT_TRUE(core::write_file_atomic(root + "/a/2/requests.jsonl", "{}\n").ok());
  EXPECT_THAT(load_side({root + "/a"}).error().message, HasSubstr("requests.jsonl:1"));
}

}  // namespace
}  // namespace prony::compare
