// Self-check: each rule fires just beyond its limit and not just below it.
#include "prony/load/self_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace prony::load {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What a check looks at, with rows to change.
struct Load {
  std::vector<record::RequestRow> rows;
  ClientMeters client;
  SelfCheck check(std::optional<double> steal, bool at_once) const {
    return check_client(record::RowSpan(rows), client, {}, steal, at_once);
  }
};

// `n` completed requests: TTFT of 100 ms from the send, sent `lag` after the intention.
Load run_of(size_t n, core::Nanos lag_ns, core::Nanos write_ns = 10'000) {
  Load load;
  for (size_t i = 0; i < n; ++i) {
    record::RequestRow row;
    row.index = static_cast<int64_t>(i);
    row.status = record::Status::kOk;
    row.t_intended_ns = static_cast<core::Nanos>(i) * 1'000'000;
    row.t_send_ns = row.t_intended_ns + lag_ns;
    row.t_sent_ns = *row.t_send_ns + write_ns;
    row.t_first_token_ns = *row.t_send_ns + 100'000'000;
    row.t_last_token_ns = row.t_first_token_ns;
    row.input_tokens_asked = 100;
    row.issue_lag_ns = lag_ns;
    load.rows.push_back(row);
  }
  load.client.token_events = 10'000;
  load.client.loop_busy = {0.5};
  return load;
}

std::vector<std::string> reasons(const Load& load, std::optional<double> steal = 0.0) {
  const auto check = load.check(steal, false);
  EXPECT_EQ(check.validity.valid, check.validity.reasons.empty());
  return check.validity.reasons;
}

TEST(SelfCheck, CleanRunIsValid) {
  EXPECT_THAT(reasons(run_of(1000, 100'000)), IsEmpty());
}

TEST(SelfCheck, LateSendsMoveTheIntendedTtft) {
  // 1 % of 100 ms and the floor of 1 ms are the same here.
  EXPECT_THAT(reasons(run_of(1000, 900'000)), IsEmpty());
  EXPECT_THAT(reasons(run_of(1000, 1'100'000)),
              ElementsAre(HasSubstr("moves p99 of ttft_intended_ms")));
}

TEST(SelfCheck, ABurstCannotBeSentInNoTime) {
  auto load = run_of(1000, 5'000'000);
  load.client.issue_lag_ns.record(5'000'000);
  const auto check = load.check(0.0, true);
  EXPECT_TRUE(check.validity.valid);
  EXPECT_THAT(check.validity.warnings, ElementsAre(HasSubstr("took 5.0")));
}

TEST(SelfCheck, AWaitForAPlaceIsNoLag) {
  auto load = run_of(1000, 50'000'000);  // a cap held every request back for 50 ms
  for (auto& row : load.rows) row.issue_lag_ns = 0;
  EXPECT_THAT(reasons(load), IsEmpty());
}

TEST(SelfCheck, SlowWritesMoveTtftItself) {
  EXPECT_THAT(reasons(run_of(1000, 0, 900'000)), IsEmpty());
  EXPECT_THAT(reasons(run_of(1000, 0, 1'500'000)),
              ElementsAre(HasSubstr("p99 of ttft_ms"), HasSubstr("p99 of ttft_intended_ms")));
}

TEST(SelfCheck, TheHighestShownPercentileIsJudged) {
  for (const auto& [n, quantile] : {std::pair{1, 0.5},
                                    {3, 0.5},
                                    {4, 0.75},
                                    {99, 0.75},
                                    {100, 0.90},
                                    {199, 0.90},
                                    {200, 0.95},
                                    {1000, 0.99},
                                    {100'000, 0.99}}) {
    ClientShift shift;
    for (int i = 0; i < n; ++i) shift.add(100 + i, 2);
    const auto found = shift.finish();
    EXPECT_EQ(found->quantile, quantile) << n;
    EXPECT_NEAR(found->shift_ms, 2, 1e-9) << n;
  }
  EXPECT_FALSE(ClientShift().finish().has_value());
  // One late request of twenty moves no percentile that twenty requests show.
  auto load = run_of(20, 0);
  load.rows[3].issue_lag_ns = 30'000'000;
  load.rows[3].t_intended_ns -= 30'000'000;
  EXPECT_THAT(reasons(load), IsEmpty());
}

TEST(SelfCheck, MergedEventsMoveTheGaps) {
  // 100 requests of 101 events 10 ms apart; `slow` of them have one gap of 60 ms, `merged` one of
  // 50 ms that may be the client's.
  const auto run = [](int slow, int merged) {
    auto load = run_of(100, 0);
    for (size_t i = 0; i < load.rows.size(); ++i) {
      core::Nanos t = 0;
      auto& row = load.rows[i];
      for (int event = 0; event <= 100; ++event) {
        const bool odd = event == 50;
        const bool is_slow = odd && static_cast<int>(i) < slow;
        const bool is_merged = odd && !is_slow && static_cast<int>(i) < slow + merged;
        if (is_merged) row.merged_events = 1;
        t += (is_slow ? 60 : is_merged ? 50 : 10) * core::kNanosPerMilli;
        row.events.push_back({.t_kernel_ns = t, .t_user_ns = t, .tokens = 1});
      }
    }
    load.client.token_events = 10'100;
    load.client.merged_events = merged;
    return load;
  };
  EXPECT_THAT(reasons(run(0, 40)), IsEmpty());   // too few to reach p99
  EXPECT_THAT(reasons(run(99, 0)), IsEmpty());   // the server's own
  EXPECT_THAT(reasons(run(80, 20)), IsEmpty());  // 1 % of the gaps: just beyond p99
  // With 0.9 % slow gaps and 0.2 % merged ones p99 is a merged one.
  auto load = run(80, 20);
  for (size_t i = 0; i < 10; ++i) {  // a second slow gap
    for (size_t event = 60; event <= 100; ++event) {
      load.rows[i].events[event].t_kernel_ns += 50 * core::kNanosPerMilli;
    }
  }
  EXPECT_THAT(reasons(load),
              ElementsAre(HasSubstr("moves p99 of icl_ms (50.000 ms) by 40.000 ms")));
}

TEST(SelfCheck, MergedAndUnstampedEvents) {
  auto load = run_of(10, 0);
  load.client.merged_events = 50;
  EXPECT_THAT(reasons(load), IsEmpty());
  load.client.merged_events = 51;
  EXPECT_THAT(reasons(load), ElementsAre(HasSubstr("51 of 10000 token events (0.51 %)")));
  load.client.merged_events = 0;
  load.client.unstamped_events = 51;
  EXPECT_THAT(reasons(load), ElementsAre(HasSubstr("no kernel receive stamp")));
}

TEST(SelfCheck, BusyLoopStealClockAndConnections) {
  auto load = run_of(10, 0);
  load.client.loop_busy = {0.2, 0.90};
  EXPECT_THAT(reasons(load), IsEmpty());
  load.client.loop_busy = {0.2, 0.95};
  EXPECT_THAT(reasons(load), ElementsAre(HasSubstr("event loop 1 was 95 % busy")));
  load = run_of(10, 0);
  EXPECT_THAT(reasons(load, 0.02), IsEmpty());
  EXPECT_THAT(reasons(load, std::nullopt), IsEmpty());
  EXPECT_THAT(reasons(load, 0.025), ElementsAre(HasSubstr("hypervisor took 2.5 %")));
  load.client.clock_step_max_ns = 1'500'000;
  EXPECT_THAT(reasons(load), ElementsAre(HasSubstr("stepped by 1.500 ms")));
  load = run_of(10, 0);
  load.client.held_back = 3;
  EXPECT_THAT(reasons(load), ElementsAre(HasSubstr("3 requests had to wait for a connection")));
}

TEST(SelfCheck, FailedRequestsAreNotJudged) {
  auto load = run_of(1000, 5'000'000);
  for (auto& row : load.rows) row.status = record::Status::kStreamError;
  EXPECT_THAT(reasons(load), IsEmpty());
  const auto check = load.check(0.0, false);
  EXPECT_TRUE(check.client["ttft_share"].is_null());
}

TEST(SelfCheck, ClientSectionHoldsItsNumbers) {
  auto load = run_of(1000, 100'000);
  load.client.read_lag_ns.record(40'000);
  const auto json = load.check(0.0, false).client;
  EXPECT_EQ(json["token_events"], 10'000);
  EXPECT_EQ(json["loop_busy"].dump(), "[0.5]");
  EXPECT_NEAR(json["read_lag_ms"]["p50"].get<double>(), 0.04, 0.001);
  EXPECT_TRUE(json["issue_lag_ms"]["p50"].is_null());
  EXPECT_NEAR(json["ttft_intended_share"]["shift_ms"].get<double>(), 0.11, 0.001);
}

}  // namespace
}  // namespace prony::load
