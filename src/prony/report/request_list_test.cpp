// RequestList: every request of a short run, an honest part of a long one, and the events of those
// that a reader will ask about. And the telemetry beside it, of whatever shape a file holds it.
#include "prony/report/request_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "prony/record/random_rows.hpp"
#include "prony/record/row_metrics.hpp"
#include "prony/report/telemetry_series.hpp"

namespace prony::report {
namespace {

using core::Json;
using record::RequestRow;
using record::Status;

RequestList list_of(const std::vector<RequestRow>& rows, int64_t listed_max) {
  RequestList list(static_cast<int64_t>(rows.size()), listed_max);
  for (const auto& row : rows) list.add(row);
  return list;
}

TEST(RequestList, HoldsEveryRequestOfAShortRun) {
  core::Rng rng(1);
  const auto rows = record::random_rows(rng, 700, 5'000'000'000);
  const auto list = list_of(rows, RequestList::kListedMax);
  const auto listed = list.listed();
  ASSERT_EQ(listed.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(listed[i].index, rows[i].index);
    EXPECT_EQ(listed[i].status, rows[i].status);
    const auto ttft = record::ttft_ms(rows[i]);
    ASSERT_EQ(listed[i].ttft_us.has_value(), ttft.has_value());
    if (ttft) {
      EXPECT_NEAR(static_cast<double>(*listed[i].ttft_us), *ttft * 1000, 1);
    }
  }
  const auto json = list.to_json(0);
  EXPECT_EQ(json["n"], 700);
  EXPECT_EQ(json["shown"], 700);
  EXPECT_EQ(json["statuses"].size(), 16u);
  EXPECT_EQ(json.dump(), list_of(rows, RequestList::kListedMax).to_json(0).dump());
}

TEST(RequestList, OfALongRunNoSlowAndNoFailedRequestIsMissing) {
  std::vector<RequestRow> rows(60'000);
  core::Rng rng(2);
  std::vector<std::pair<core::Nanos, int64_t>> slow;
  for (size_t i = 0; i < rows.size(); ++i) {
    auto& row = rows[i];
    row.index = static_cast<int64_t>(i);
    row.t_intended_ns = static_cast<core::Nanos>(i) * 1'000'000;
    row.t_send_ns = row.t_intended_ns;
    row.status = rng.below(100) == 0 ? Status::kTruncated : Status::kOk;
    row.t_first_token_ns = *row.t_send_ns + static_cast<core::Nanos>(rng.below(1'000'000'000));
    row.t_last_token_ns = row.t_first_token_ns;
    row.output_tokens = 1;
    if (row.status == Status::kOk)
      slow.emplace_back(-(*row.t_first_token_ns - *row.t_send_ns), row.index);
  }
  const auto list = list_of(rows, 20'000);
  std::set<int64_t> listed;
  for (const auto& one : list.listed()) EXPECT_TRUE(listed.insert(one.index).second);  // none twice
  EXPECT_LE(listed.size(), 20'000u);
  EXPECT_GT(listed.size(), 8'000u);
  for (const auto& row : rows) {
    if (row.status != Status::kOk) {
      EXPECT_TRUE(listed.contains(row.index));
    }
  }
  std::sort(slow.begin(), slow.end());
  for (size_t i = 0; i < 500; ++i) EXPECT_TRUE(listed.contains(slow[i].second)) << i;
  const auto slowest = list.slowest(5);
  ASSERT_EQ(slowest.size(), 5u);
  EXPECT_TRUE(std::is_sorted(slowest.begin(), slowest.end(),
                             [](const auto& a, const auto& b) { return *a.ttft_us > *b.ttft_us; }));
}

TEST(RequestList, KeepsTheEventsThatAReaderWillAskFor) {
  std::vector<RequestRow> rows;
  for (int64_t i = 0; i < 1000; ++i) {
    RequestRow row;
    row.index = i;
    row.t_intended_ns = i * 1'000'000;
    row.t_send_ns = row.t_intended_ns;
    core::Nanos t = *row.t_send_ns + (i == 700 ? 900'000'000 : 50'000'000);
    row.t_first_token_ns = t;
    for (int k = 0; k < 20; ++k) {
      row.events.push_back({t, t, 1});
      t += i == 800 && k == 10 ? 700'000'000 : 10'000'000;
    }
    row.t_last_token_ns = row.events.back().t_kernel_ns;
    row.status = i == 900 ? Status::kStreamError : Status::kOk;
    if (i == 900) row.error = "broke";
    rows.push_back(row);
  }
  const auto json = list_of(rows, RequestList::kListedMax).to_json(0);
  for (const char* index : {"700", "800", "900", "0"}) {
    EXPECT_TRUE(json["events"].contains(index)) << index;
  }
  EXPECT_LT(json["events"].size(), 4 * RequestList::kDetailedMax + 1);
  EXPECT_EQ(json["errors"].dump(), R"({"900":"broke"})");
}

TEST(TelemetrySeries, ReadsWhatIsOfItsShapeAndNothingElse) {
  EXPECT_TRUE(read_telemetry(nullptr).empty());
  EXPECT_TRUE(read_telemetry(Json::array({1})).empty());
  const auto json = core::parse_json(R"({"series":[
      {"name":"power","unit":"W","source":"gpu 0","t_ns":[1000000000,2000000000,3000000000,4],
       "values":[200,null,250.5]},
      {"name":"broken","t_ns":"x","values":[1]}, 7, {"name":"empty","t_ns":[],"values":[]}],
      "notes":["a note",5]})",
                                     "test")
                        .value();
  const auto all = read_telemetry(json);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name, "power");
  EXPECT_EQ(all[0].values, (std::vector<double>{200, 250.5}));
  EXPECT_EQ(telemetry_notes(json), std::vector<std::string>{"a note"});
  EXPECT_EQ(telemetry_series(json, 500'000'000).dump(),
            R"([{"name":"power","unit":"W","source":"gpu 0","t":[0.5,2.5],"v":[200.0,250.5]}])");
}

TEST(TelemetrySeries, ManySeriesAndPointsAreThinned) {
  Json json;
  for (int s = 0; s < 40; ++s) {
    Json t, values;
    for (int i = 0; i < 3000; ++i) {
      t.push_back(int64_t{i} * 1'000'000);
      values.push_back(s < 30 ? 5 : i);
    }
    json["series"].push_back({{"name", std::to_string(s)}, {"t_ns", t}, {"values", values}});
  }
  const auto all = read_telemetry(json);
  ASSERT_EQ(all.size(), kTelemetrySeriesMax);
  EXPECT_EQ(all[0].name, "30");  // those that change
  const auto shown = telemetry_series(json, 0);
  EXPECT_EQ(shown[0]["t"].size(), 400u);
  EXPECT_EQ(shown[0]["v"].back(), 2999);
}

}  // namespace
}  // namespace prony::report
