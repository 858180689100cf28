// Certify: every fault has a case; each rule of the judge trips on a client that is wrong in that
// one way, and on no right one; and the real client passes against a mock on another thread.
#include "prony/certify/certify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <set>
#include <thread>

#include "prony/certify/parse_speed.hpp"
#include "prony/certify/timing_cases.hpp"
#include "prony/core/file.hpp"
#include "prony/core/temporary_folder.hpp"
#include "prony/mock/faults.hpp"
#include "prony/mock/mock_server.hpp"
#include "prony/record/json_schema.hpp"

namespace prony::certify {
namespace {

using core::kNanosPerMilli;
using core::Nanos;
using record::Status;
using ::testing::HasSubstr;

TEST(Cases, EveryFaultOfTheMockHasOneAndNoOther) {
  std::set<std::string_view> faults, cases;
  for (const auto& fault : mock::all_faults()) faults.insert(fault.name);
  for (const auto& fault : fault_cases()) {
    EXPECT_TRUE(cases.insert(fault.fault).second) << "twice: " << fault.fault;
  }
  EXPECT_EQ(faults, cases);
}

TEST(Cases, NamesAreUnique) {
  std::set<std::string> names;
  for (const auto& name : list_cases()) {
    EXPECT_TRUE(names.insert(name.name).second) << name.name;
    EXPECT_FALSE(name.condition.empty()) << name.name;
  }
}

// ---- the judge, on a session made up here: kFaultRequests answers of kFaultTokens

constexpr FaultCase kFine{"fine", "", {}};

void summarize(Session& session) {
  auto& metrics = session.run.record.metrics;
  metrics = {};
  int64_t ok = 0, gaps = 0;
  for (const auto& row : session.rows) {
    if (row.status != Status::kOk) continue;
    ++ok;
    gaps += row.output_tokens.value_or(0) - row.first_event_tokens;
  }
  metrics.completed = ok;
  metrics.ttft_ms.n = ok;
  metrics.itl_basis = "tokens";
  metrics.itl_ms.n = gaps;
}

Session session_of(int tokens = kFaultTokens) {
  Session session;
  for (int i = 0; i < kFaultRequests; ++i) {
    record::RequestRow row;
    row.index = i;
    row.id = "r" + std::to_string(i);
    row.status = Status::kOk;
    row.http_status = 200;
    row.t_send_ns = 1'000 * kNanosPerMilli;
    mock::AnswerStamps stamps{.id = row.id, .t_received_ns = *row.t_send_ns + 20'000};
    stamps.writes.emplace_back(stamps.t_received_ns, 0);  // the role
    for (int t = 0; t < tokens; ++t) {
      const Nanos at = stamps.t_received_ns + (20 + 2 * t) * kNanosPerMilli;
      stamps.writes.emplace_back(at, 1);
      row.events.push_back({.t_kernel_ns = at + 12'000, .t_user_ns = at + 40'000, .tokens = 1});
    }
    row.output_tokens = tokens;
    row.token_source = record::TokenSource::kUsage;
    row.tokens_per_event_exact = true;
    row.first_event_tokens = 1;
    row.t_first_token_ns = row.t_first_output_ns = row.events.front().t_kernel_ns;
    row.t_last_token_ns = row.events.back().t_kernel_ns;
    row.t_close_ns = *row.t_last_token_ns + 1000;
    session.rows.push_back(row);
    session.served.push_back(stamps);
  }
  summarize(session);
  return session;
}

Session failed_session(Status status, int http = 200) {
  auto session = session_of(kFaultTokens / 2);
  for (auto& row : session.rows) {
    row.status = status;
    row.http_status = http;
    row.error = "it failed";
    row.token_source = record::TokenSource::kEventCount;
  }
  summarize(session);
  return session;
}

std::string why(const FaultCase& fault, const Session& session) {
  const auto verdict = judge_fault(fault, "", session);
  EXPECT_EQ(verdict.outcome == Outcome::kFail, !verdict.why.empty());
  return verdict.why;
}

TEST(Judge, ARightClientPasses) {
  const auto verdict = judge_fault(kFine, "nothing wrong", session_of());
  EXPECT_EQ(verdict.why, "");
  EXPECT_EQ(verdict.outcome, Outcome::kPass);
  EXPECT_EQ(verdict.served, "48 tokens in 48 writes");
  EXPECT_EQ(verdict.measured, "6 ok; 48 tokens");
  EXPECT_NEAR(*verdict.error, 0.012, 1e-6);
  EXPECT_EQ(why({"f", "", {.status = Status::kStreamError}}, failed_session(Status::kStreamError)),
            "");
}

TEST(Judge, AFailureCountedAsSuccess) {
  const FaultCase error{"error-mid", "", {.status = Status::kStreamError}};
  EXPECT_THAT(why(error, session_of()), HasSubstr("found 0 failures, expected 6"));
  auto one = failed_session(Status::kStreamError);
  one.rows[3].status = Status::kOk;
  summarize(one);
  EXPECT_THAT(why(error, one), HasSubstr("found 5 failures, expected 6"));
}

TEST(Judge, ASuccessCountedAsFailureAndAWrongStatus) {
  auto session = session_of();
  session.rows[0].status = Status::kTruncated;
  session.rows[0].error = "ended";
  EXPECT_THAT(why(kFine, session), HasSubstr("found status truncated (ended), expected ok"));
  const FaultCase stall{"stall", "", {.status = Status::kTimeoutStall}};
  EXPECT_THAT(why(stall, failed_session(Status::kTruncated)), HasSubstr("expected timeout_stall"));
}

TEST(Judge, AWrongHttpCodeASilentFailureAndAMissingRequest) {
  const FaultCase busy{"503", "", {.status = Status::kHttp5xx, .http = 503}};
  EXPECT_THAT(why(busy, failed_session(Status::kHttp5xx, 500)),
              HasSubstr("found http status 500, expected 503"));
  auto silent = failed_session(Status::kHttp5xx, 503);
  silent.rows[0].error.clear();
  EXPECT_THAT(why(busy, silent), HasSubstr("does not say what happened"));
  auto fewer = session_of();
  fewer.rows.pop_back();
  EXPECT_THAT(why(kFine, fewer), HasSubstr("found 5 requests, expected 6"));
}

TEST(Judge, FailuresInTheLatencies) {
  auto session = failed_session(Status::kStreamError);
  session.run.record.metrics.ttft_ms.n = 6;
  EXPECT_THAT(why({"f", "", {.status = Status::kStreamError}}, session),
              HasSubstr("found 6 latencies from 0 completed requests"));
}

TEST(Judge, MiscountedTokens) {
  auto session = session_of();
  session.rows[2].output_tokens = 36;  // usage of every chunk added up
  EXPECT_THAT(why(kFine, session), HasSubstr("counted 36 tokens, 8 were served"));
  auto failing = failed_session(Status::kTruncated);
  failing.rows[2].output_tokens = 0;  // the work of a failed request is lost
  EXPECT_THAT(why({"f", "", {.status = Status::kTruncated}}, failing),
              HasSubstr("counted 0 tokens, 4 were served"));
}

TEST(Judge, AnotherSourceOfTheCount) {
  auto session = session_of();
  session.rows[1].token_source = record::TokenSource::kEventCount;
  EXPECT_THAT(why(kFine, session), HasSubstr("counted by event_count, expected usage"));
}

TEST(Judge, TtftInTheInterTokenLatencies) {
  auto session = session_of();
  session.run.record.metrics.itl_ms.n = 48;
  EXPECT_THAT(why(kFine, session), HasSubstr("found 48 inter-token latencies, expected 42"));
}

TEST(Judge, TheRoleTakenForTheFirstToken) {
  auto session = session_of();
  for (size_t i = 0; i < session.rows.size(); ++i) {
    session.rows[i].events[0].t_kernel_ns = session.served[i].writes[0].first + 10'000;
  }
  EXPECT_THAT(why(kFine, session), HasSubstr("stamped 19.990 ms before it was written"));
}

TEST(Judge, LateArrivals) {
  auto session = session_of();
  for (auto& row : session.rows) {
    for (auto& event : row.events) event.t_kernel_ns += kNanosPerMilli;
  }
  EXPECT_THAT(why(kFine, session), HasSubstr("stamped 1.012 ms late, expected at most 0.5 ms"));
}

TEST(Judge, BufferedStreamsAndReasoning) {
  const FaultCase giant{"giant", "", {.bursty = true}};
  EXPECT_THAT(why(giant, session_of()), HasSubstr("flagged 0 streams as buffered, expected 6"));
  const FaultCase thinks{"reasoning", "", {.thinking = true}};
  EXPECT_THAT(why(thinks, session_of()), HasSubstr("first output is not later"));
}

TEST(Judge, ResendsAndTimeouts) {
  const FaultCase reuse{"reuse", "", {.retries = 5}};
  EXPECT_THAT(why(reuse, session_of()), HasSubstr("found 0 resends, expected 5"));
  const FaultCase stall{"stall", "", {.status = Status::kTimeoutStall}};
  auto hung = failed_session(Status::kTimeoutStall);
  for (auto& row : hung.rows) row.t_close_ns = *row.t_last_token_ns + 255 * kNanosPerMilli;
  EXPECT_EQ(why(stall, hung), "");
  hung.rows[0].t_close_ns = *hung.rows[0].t_last_token_ns + 5'000 * kNanosPerMilli;
  EXPECT_THAT(why(stall, hung), HasSubstr("given up after 5000 ms, expected 250 ms"));
}

TEST(Judge, MostInFlight) {
  const auto answer = [](Nanos from, Nanos to) {
    return mock::AnswerStamps{
        .id = std::to_string(from), .t_received_ns = from, .writes = {{to, 1}}};
  };
  EXPECT_EQ(most_in_flight({}), 0);
  EXPECT_EQ(most_in_flight({answer(0, 10), answer(10, 20)}), 1);
  EXPECT_EQ(most_in_flight({answer(0, 10), answer(9, 20), answer(5, 7), answer(30, 31)}), 2);
}

TEST(Figures, NoNumberIsNoPass) {
  EXPECT_EQ(figure("f", "", 0.29, 0.3, "ms").outcome, Outcome::kPass);
  EXPECT_EQ(figure("f", "", -0.31, 0.3, "ms").outcome, Outcome::kFail);
  EXPECT_EQ(figure("f", "", std::nan(""), 0.3, "ms").outcome, Outcome::kFail);
}

TEST(ReportDocument, KeepsToItsSchema) {
  Report report;
  report.verdicts.push_back(judge_fault(kFine, "fine", session_of()));
  report.verdicts.push_back(figure("lag/p99", "1000/s", std::nan(""), 0.2, "ms"));
  report.verdicts.push_back(
      {.name = "s", .group = "timing", .outcome = Outcome::kSkipped, .why = "no"});
  const auto file =
      core::read_file(std::string(PRONY_SOURCE_DIR) + "/docs/schema/prony.certify.1.json");
  ASSERT_TRUE(file.ok());
  const auto schema = core::parse_json(file.value(), "schema");
  ASSERT_TRUE(schema.ok());
  const auto json = to_json(report);
  const auto checked = record::check_schema(json, schema.value(), "report");
  EXPECT_TRUE(checked.ok()) << checked.error().message;
  EXPECT_EQ(json["passed"], false);
  EXPECT_TRUE(json["cases"][1]["error"].is_null());
  EXPECT_THAT(to_table(report), HasSubstr("not certified: 1 passed, 1 failed, 1 skipped"));
}

// ---- the real client, against a mock on a thread of this process

class ThreadMock final : public RunningMock {
 public:
  explicit ThreadMock(const std::vector<std::string>& arguments) {
    mock::Options options;
    const auto number = [](const std::string& text) {
      int64_t value = 0;
      std::from_chars(text.data(), text.data() + text.size(), value);
      return value;
    };
    for (size_t i = 1; i + 1 < arguments.size(); i += 2) {
      const auto& value = arguments[i + 1];
      if (arguments[i] == "--stamps") options.stamps_path = value;
      if (arguments[i] == "--fault") options.faults.push_back(value);
      if (arguments[i] == "--ttft-ms") options.ttft_ns = number(value) * kNanosPerMilli;
      if (arguments[i] == "--itl-ms") options.itl_ns = number(value) * kNanosPerMilli;
    }
    server_ = std::move(mock::MockServer::create(loop_, options)).value();
    url_ = "http://127.0.0.1:" + std::to_string(server_->port());
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~ThreadMock() override { stop(); }
  const std::string& url() const override { return url_; }
  void stop() override {
    if (!thread_.joinable()) return;
    loop_.stop();
    thread_.join();
    EXPECT_TRUE(server_->finish().ok());
  }

 private:
  net::EventLoop loop_;
  std::unique_ptr<mock::MockServer> server_;
  std::string url_;
  std::thread thread_;
};

struct ThisProcess {
  ThisProcess() : folder(std::move(core::TemporaryFolder::create()).value()) {
    host.scratch = folder.path();
    host.start_mock =
        [](const std::vector<std::string>& arguments) -> Result<std::unique_ptr<RunningMock>> {
      return std::unique_ptr<RunningMock>(std::make_unique<ThreadMock>(arguments));
    };
  }
  core::TemporaryFolder folder;
  Host host;
};

TEST(Certify, TheClientPassesSomeFaults) {
  ThisProcess here;
  const std::vector<std::string> some = {"role-first",        "error-mid",   "stall",
                                         "usage-every-chunk", "multi-token", "503-fifth",
                                         "close-on-reuse"};
  const auto report = certify(here.host, some);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report.value().verdicts.size(), some.size());
  for (const auto& verdict : report.value().verdicts) {
    // Its timing is not judged here: other tests share the machine.
    if (verdict.why.find("late, expected at most") == std::string::npos) {
      EXPECT_EQ(verdict.why, "") << verdict.name;
    }
  }
}

TEST(Certify, FindsAServerThatDoesSomethingElse) {
  ThisProcess here;
  const auto honest = here.host.start_mock;
  here.host.start_mock = [honest](std::vector<std::string> arguments) {
    arguments.back() = "error-mid";  // instead of the fault asked for
    return honest(arguments);
  };
  const auto report = certify(here.host, {"crlf"});
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_FALSE(report.value().passed());
  EXPECT_THAT(report.value().verdicts[0].why, HasSubstr("stream_error"));
}

TEST(Certify, AnUnknownNameIsAnError) {
  const auto report = certify({}, {"rolle-first"});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(report.error().message, HasSubstr("found 'rolle-first'"));
}

TEST(ParseSpeed, IsAFigure) {
  EXPECT_GT(parsed_events_per_s(0), 10'000);
}

}  // namespace
}  // namespace prony::certify
