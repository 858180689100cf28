// Tests of a whole session: what is in the record's section, that the record accepts it, and what
// happens where something cannot be had.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "prony/record/sample_record.hpp"
#include "prony/telemetry/session.hpp"

namespace prony::telemetry {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

SessionOptions quick() {
  SessionOptions options;
  options.interval_ns = 10 * core::kNanosPerMilli;
  options.nvml_library = PRONY_FAKE_NVML ".so";
  return options;
}

ServerScraper::Fetch counting_server(std::atomic<int>& served) {
  return [&served]() -> Result<std::string> {
    return "vllm:request_success_total " + std::to_string(served) +
           "\nvllm:generation_tokens_total " + std::to_string(10 * served) +
           "\nvllm:num_requests_running 1e0\n";
  };
}

Session::Outcome run(Session& session, std::atomic<int>& served, const ClientSums& client) {
  session.begin(true);
  core::MonotonicClock clock;
  for (int i = 0; i < 10; ++i) {
    clock.sleep_until(core::monotonic_ns() + 12 * core::kNanosPerMilli);
    ++served;
  }
  session.end();
  return session.finish(client, std::nullopt);
}

void expect_accepted(const Session::Outcome& outcome) {
  auto record = record::sample_record();
  record.telemetry = outcome.telemetry;
  const auto text = record::record_text(record);
  EXPECT_TRUE(text.ok()) << text.error().message;
}

TEST(Session, EverySectionAndTheRecordAcceptsIt) {
  std::atomic<int> served{0};
  auto options = quick();
  options.fetch = counting_server(served);
  const auto session = Session::create(options).value();
  const auto outcome =
      run(*session, served, {.attempted = 10, .completed = 10, .output_tokens = 100});
  const auto& json = outcome.telemetry;
  expect_accepted(outcome);
  EXPECT_EQ(json["server"]["names"], "vllm");
  EXPECT_EQ(json["server"]["differences"]["generation_tokens"], 100);
  EXPECT_GE(json["server"]["scrapes"], 5);
  EXPECT_GE(json["host"]["cores"].size(), 1U);
  EXPECT_EQ(json["gpu"].size(), 2U);
  EXPECT_EQ(outcome.gpus.size(), 2U);
  const auto& energy = json["energy"];
  EXPECT_EQ(energy["gpus"], core::Json::array({0}));  // the one that worked
  EXPECT_EQ(energy["gpus_idle"], core::Json::array({1}));
  EXPECT_EQ(energy["gpu_source"], "counter");
  const double joules = energy["gpu_j"], seconds = energy["duration_s"];
  EXPECT_NEAR(joules, 300 * seconds, 30 * seconds);
  EXPECT_DOUBLE_EQ(energy["gpu_j_per_output_token"].get<double>(), joules / 100);
  EXPECT_EQ(energy["gpu_j_per_token"], nullptr);                // prompt tokens are not known
  EXPECT_NEAR(energy["gpu_idle_share"].get<double>(), 1, 0.1);  // the fake draws no more in use
  // Everything on one axis, inside the run but for the scrapes around it.
  for (const auto& series : json["series"]) {
    if (series["source"] == "/metrics") continue;
    for (const auto& t : series["t_ns"]) {
      EXPECT_GE(t, json["t_begin_ns"]) << series["name"];
    }
  }
  EXPECT_THAT(outcome.warnings, Contains(HasSubstr("others used the server")));  // running 1
}

TEST(Session, WhatCannotBeHadIsANote) {
  auto options = quick();
  options.nvml_library = "libno-such-library.so";
  options.fetch = []() -> Result<std::string> { return environment_error("http 404"); };
  const auto session = Session::create(options).value();
  std::atomic<int> served{0};
  const auto outcome = run(*session, served, {});
  expect_accepted(outcome);
  EXPECT_FALSE(outcome.telemetry.contains("server"));
  EXPECT_FALSE(outcome.telemetry.contains("gpu"));
  const auto notes = outcome.telemetry["notes"].get<std::vector<std::string>>();
  EXPECT_THAT(notes, Contains("server metrics: http 404"));
  EXPECT_THAT(notes, Contains(HasSubstr("cannot open libno-such-library.so")));
  EXPECT_TRUE(outcome.warnings.empty());
  options.metrics_required = true;
  EXPECT_EQ(Session::create(options).error().message, "--server-metrics: http 404");
}

TEST(Session, AServerElsewhereHasNoEnergyHere) {
  auto options = quick();
  options.endpoint_is_local = false;
  const auto session = Session::create(options).value();
  std::atomic<int> served{0};
  const auto outcome = run(*session, served, {.output_tokens = 100});
  expect_accepted(outcome);
  EXPECT_FALSE(outcome.telemetry.contains("energy"));
  EXPECT_THAT(outcome.telemetry["notes"].get<std::vector<std::string>>(),
              Contains(HasSubstr("the endpoint is on another host")));
}

TEST(Session, GpusOff) {
  auto options = quick();
  options.gpu = false;
  const auto session = Session::create(options).value();
  std::atomic<int> served{0};
  const auto outcome = run(*session, served, {});
  EXPECT_FALSE(outcome.telemetry.contains("gpu"));
  EXPECT_TRUE(outcome.telemetry["notes"].empty());
}

TEST(LocalAddress, LoopbackAndOwn) {
  EXPECT_TRUE(is_local_address("127.0.0.1"));
  EXPECT_TRUE(is_local_address("127.3.2.1"));
  EXPECT_TRUE(is_local_address("::1"));
  EXPECT_FALSE(is_local_address("192.0.2.1"));  // TEST-NET-1
  EXPECT_FALSE(is_local_address("2001:db8::1"));
}

}  // namespace
}  // namespace prony::telemetry
