// Tests of the section "telemetry" of a record: what the schema and the rules beyond it refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/record/sample_record.hpp"

namespace prony::record {
namespace {

using core::Json;
using ::testing::HasSubstr;

Json sample() {
  return Json::parse(R"({"interval_s":1,"t_begin_ns":10,"t_end_ns":20,"endpoint_is_local":true,
    "series":[{"name":"a","unit":"W","source":"x","n":2,"mean":1.5,"min":1,"max":2,
               "t_ns":[11,12],"values":[1,2]}],
    "host":{"busy":0.5,"steal":null,"cores":[{"core":0,"busy":0.5,"steal":null}],
            "memory_total_bytes":null,"memory_used_max_bytes":null,"network_received_bytes":1,
            "network_sent_bytes":2,"energy_j":{"package-0":1.5}},
    "notes":["a note"]})");
}

std::string refusal(const Json& telemetry) {
  auto record = sample_record();
  record.telemetry = telemetry;
  const auto done = validate_record(record_to_json(record), "r");
  return done ? "" : done.error().message;
}

TEST(TelemetrySection, IsAccepted) {
  EXPECT_EQ(refusal(sample()), "");
  auto record = sample_record();
  record.telemetry = sample();
  EXPECT_EQ(record_from_json(record_to_json(record), "r").value(), record);
}

TEST(TelemetrySection, RefusesWhatNoRunProduces) {
  auto json = sample();
  json["series"][0]["values"].push_back(3);
  EXPECT_EQ(refusal(json), "r: /telemetry/series/0: found 3 values for 2 times");
  json = sample();
  json["series"][0]["t_ns"] = Json::array({12, 11});
  EXPECT_EQ(refusal(json),
            "r: /telemetry/series/0: found t_ns 11 after 12, expected times that never fall");
  json = sample();
  json["series"][0]["mean"] = 2.5;
  EXPECT_EQ(refusal(json), "r: /telemetry/series/0: found mean 2.5, expected 1 to 2");
  json = sample();
  json["series"][0]["n"] = 0;
  EXPECT_THAT(refusal(json), HasSubstr("/telemetry/series/0/n: found 0, expected at least 1"));
  json = sample();
  json["host"].erase("busy");
  EXPECT_EQ(refusal(json), "r: /telemetry/host/busy: missing");
  json = sample();
  json["other"] = 1;
  EXPECT_EQ(refusal(json), "r: /telemetry/other: unknown key");
  json = sample();
  json["gpu"] = Json::array({Json::object()});
  EXPECT_THAT(refusal(json), HasSubstr("/telemetry/gpu/0/index: missing"));
}

}  // namespace
}  // namespace prony::record
