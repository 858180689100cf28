// Tests of the sweep's document: values of a point over its runs, knees, JSON against the schema.
#include "prony/record/sweep.hpp"

#include <gtest/gtest.h>

#include "prony/core/file.hpp"
#include "prony/core/system.hpp"
#include "prony/record/sample_record.hpp"
#include "prony/record/search.hpp"

namespace prony::record {
namespace {

Metrics metrics_of(double throughput, double e2e_ms) {
  Metrics out = sample_record().metrics;
  out.request_throughput = throughput;
  out.e2e_ms.mean = e2e_ms;
  return out;
}

// concurrency x runs, throughput saturating at 10/s from concurrency 4 on.
Sweep make_sweep(const std::vector<std::string>& values, int64_t runs) {
  Sweep sweep;
  sweep.axes = {{"target", {"a"}, true}, {"concurrency", values, false}};
  sweep.targets = {{"a", "http://h", ""}};
  sweep.num_runs = runs;
  sweep.started_at = "2026-11-30T19:09:34Z";
  sweep.environment = sample_environment();
  for (int64_t run = 1; run <= runs; ++run) {
    for (const auto& value : values) {
      SweepCell cell;
      cell.slug = "target=a,concurrency=" + value + ",run=" + std::to_string(run);
      cell.values = {"a", value};
      cell.run = run;
      cell.status = CellStatus::kDone;
      const double c = value == "inf" ? 64 : core::parse_json(value, "value").value().get<double>();
      const double x = std::min(c * 2.5, 10.0) + 0.1 * static_cast<double>(run);
      cell.metrics = metrics_of(x, 1000 * c / x);
      sweep.cells.push_back(cell);
    }
  }
  return sweep;
}

TEST(Sweep, OneRunHasItsOwnInterval) {
  const auto sweep = make_sweep({"1"}, 1);
  const auto point = sweep_points(sweep).at(0);
  const auto& stats = sweep.cells[0].metrics.ttft_ms;
  EXPECT_EQ(point.metric("ttft_p50_ms").value, stats.p50);
  EXPECT_EQ(point.metric("ttft_p50_ms").lower, stats.ci95.p50->lower);
  EXPECT_EQ(point.metric("ttft_p50_ms").upper, stats.ci95.p50->upper);
  EXPECT_EQ(point.metric("request_throughput").value, 2.6);
  EXPECT_EQ(point.metric("request_throughput").lower, std::nullopt);
  EXPECT_EQ(point.metric("ttft_p99_ms").value, std::nullopt);  // 400 requests
}

TEST(Sweep, SeveralRunsGiveMedianAndRange) {
  auto sweep = make_sweep({"1"}, 3);
  auto point = sweep_points(sweep).at(0);
  EXPECT_EQ(point.runs, 3);
  EXPECT_DOUBLE_EQ(*point.metric("request_throughput").value, 2.7);
  EXPECT_DOUBLE_EQ(*point.metric("request_throughput").lower, 2.6);
  EXPECT_DOUBLE_EQ(*point.metric("request_throughput").upper, 2.8);
  // Invalid and failed runs give no value.
  sweep.cells[0].validity.refuse("client too slow");
  sweep.cells[2].status = CellStatus::kFailed;
  point = sweep_points(sweep).at(0);
  EXPECT_EQ(point.runs, 3);
  EXPECT_EQ(point.runs_valid, 1);
  EXPECT_DOUBLE_EQ(*point.metric("request_throughput").value, 2.7);
  sweep.cells[1].status = CellStatus::kUnreachable;
  point = sweep_points(sweep).at(0);
  EXPECT_EQ(point.runs_valid, 0);
  EXPECT_EQ(point.metric("request_throughput").value, std::nullopt);
}

TEST(Sweep, OneOverloadedRunMakesAnOverloadedPoint) {
  auto sweep = make_sweep({"1", "2"}, 2);
  for (auto& cell : sweep.cells) cell.metrics.overloaded = false;
  sweep.cells[2].metrics.overloaded = true;  // concurrency 1, run 2
  const auto points = sweep_points(sweep);
  EXPECT_TRUE(points[0].overloaded);
  EXPECT_FALSE(points[1].overloaded);
  const auto json = sweep_to_json(sweep);
  EXPECT_EQ(json["cells"][2]["metrics"]["overloaded"], true);
  EXPECT_TRUE(json["points"][0]["overloaded"].get<bool>());
}

// X / R with X = min(2.5 c, 10), R = c / X is greatest where the line bends: at c = 4.
TEST(Sweep, KneeIsWherePowerIsGreatest) {
  const auto sweep = make_sweep({"1", "2", "4", "8", "16"}, 1);
  const auto points = sweep_points(sweep);
  const auto knees = sweep_knees(sweep, points);
  ASSERT_EQ(knees.size(), 1u);
  EXPECT_EQ(points[knees[0].point].values, (std::vector<std::string>{"a", "4"}));
  EXPECT_FALSE(knees[0].at_the_edge);
  const auto rising = make_sweep({"1", "2", "4"}, 1);
  const auto edge = sweep_knees(rising, sweep_points(rising));
  ASSERT_EQ(edge.size(), 1u);
  EXPECT_TRUE(edge[0].at_the_edge);
  const auto two = make_sweep({"1", "2"}, 1);
  EXPECT_TRUE(sweep_knees(two, sweep_points(two)).empty());
  auto other = make_sweep({"1", "2", "4"}, 1);
  other.axes[1].name = "input-len";
  EXPECT_TRUE(sweep_knees(other, sweep_points(other)).empty());
}

TEST(Sweep, DocumentKeepsItsSchema) {
  auto sweep = make_sweep({"1", "2", "inf"}, 2);
  sweep.cells[0].status = CellStatus::kUnreachable;
  sweep.cells[0].error = "not ready within 10 s";
  sweep.cells[1].status = CellStatus::kPending;
  sweep.cells[3].validity.refuse("a loop was busy");
  sweep.cells[3].slo_met = false;
  const auto text = sweep_text(sweep);
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto json = core::parse_json(text.value(), "sweep.json").value();
  EXPECT_EQ(json["status"], "partial");
  EXPECT_EQ(json["axes"][1]["values"], core::parse_json("[1,2,\"inf\"]", "x").value());
  EXPECT_EQ(json["cells"][0]["coordinates"]["concurrency"], 1);
  EXPECT_TRUE(json["cells"][0]["metrics"].is_null());
  EXPECT_EQ(json["cells"][3]["validity"]["valid"], false);
  EXPECT_EQ(json["cells"][4]["metrics"]["ttft_ms"],
            latency_to_json(sweep.cells[4].metrics.ttft_ms));
  EXPECT_EQ(json["points"].size(), 3u);
  for (auto& cell : sweep.cells) cell.status = CellStatus::kDone;
  EXPECT_EQ(sweep_to_json(sweep)["status"], "complete");
}

TEST(Search, DocumentKeepsItsSchema) {
  Search search;
  search.objective = "max-rate";
  search.unit = "requests/s";
  search.slo = "ttft_p99<=500ms";
  search.precision = 0.05;
  search.probe_requests = 1112;
  search.end = "precise";
  search.value = 12.4;
  search.lower = 12;
  search.upper = 12.9;
  search.limiting = "ttft_p99<=500ms";
  search.environment = sample_environment();
  search.levels.push_back(
      {12, "pass", 1112, false, {{"ttft_p99<=500ms", 0.01, 1000, 0, 1000, 0, 0, 0.005, "pass"}}});
  search.levels.push_back(
      {12.9, "fail", 1112, true, {{"ttft_p99<=500ms", 0.01, 0, 0, 0, {}, {}, {}, "undecided"}}});
  search.probes.push_back(
      {12, 1, 1112, 7, "probes/001/record.json", {}, true, sample_record().metrics});
  const auto text = search_text(search);
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto json = core::parse_json(text.value(), "search.json").value();
  EXPECT_EQ(json["answer"]["lower"], 12);
  EXPECT_TRUE(json["levels"][1]["terms"][0]["estimate"].is_null());
  EXPECT_EQ(json["probes"][0]["metrics"]["ttft_ms"],
            latency_to_json(search.probes[0].metrics.ttft_ms));
  search.end = "somehow";
  EXPECT_FALSE(search_text(search).ok());
}

// After a change: PRONY_UPDATE_GOLDEN=1 prony_record_test --gtest_filter='Sweep.PublishedSchema*'
TEST(Sweep, PublishedSchemasAreTheProgramsOwn) {
  for (const auto& [name, schema] : {std::pair{"prony.sweep.1.json", sweep_json_schema()},
                                     std::pair{"prony.search.1.json", search_json_schema()}}) {
    const std::string path = std::string(PRONY_SOURCE_DIR "/docs/schema/") + name;
    const auto expected = core::write_json(schema, 2).value() + "\n";
    if (core::environment_variable("PRONY_UPDATE_GOLDEN")) {
      ASSERT_TRUE(core::write_file_atomic(path, expected).ok());
    }
    const auto found = core::read_file(path);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_TRUE(found.value() == expected) << path << " is not what the program generates";
  }
}

}  // namespace
}  // namespace prony::record
