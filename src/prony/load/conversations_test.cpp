// Multi-turn load against a scripted server in this process: what later turns quote, when they are
// due, whose place they take, and what becomes of a conversation that fails.
#include "prony/load/conversations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "prony/load/bench.hpp"
#include "prony/load/driver.hpp"
#include "prony/load/message_writer.hpp"
#include "prony/load/outcome_testing.hpp"
#include "prony/load/test_server.hpp"
#include "prony/record/rows_file.hpp"

namespace prony::load {
namespace {

using core::kNanosPerMilli;
using core::kNanosPerSecond;
using core::Nanos;
using record::Status;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr Nanos kThink = 30 * kNanosPerMilli;

// `sessions` conversations of `turns` turns, starting `gap_ns` apart.
std::vector<workload::ScheduleEntry> talk(int64_t sessions, int32_t turns, Nanos gap_ns) {
  std::vector<workload::ScheduleEntry> entries;
  for (int64_t s = 0; s < sessions; ++s) {
    for (int32_t t = 0; t < turns; ++t) {
      workload::ScheduleEntry entry;
      entry.index = static_cast<int64_t>(entries.size());
      entry.t_intended_ns = (s + 1) * gap_ns;
      entry.input_tokens = 4 + 7 * t;
      entry.history_tokens = 7 * t;
      entry.output_tokens = 3;
      entry.session = s;
      entry.turn = t;
      if (t > 0) entry.think_ns = kThink;
      entries.push_back(entry);
    }
  }
  return entries;
}

// Answers "ttt" and keeps the messages of each body; `fails` chooses who gets a 500.
struct Server {
  explicit Server(std::function<bool(const core::Json& messages)> fails = nullptr)
      : server([this, fails](TestServer& self, const net::HttpRequest& request,
                             const std::shared_ptr<net::Exchange>& exchange) {
          if (request.body.empty()) {  // a look at /metrics
            exchange->respond(404, {}, "");
            return;
          }
          auto messages = core::parse_json(request.body, "body").value()["messages"];
          const bool failed = fails && fails(messages);
          {
            const std::lock_guard lock(mutex);
            bodies.emplace(std::string(request.header("x-request-id")), std::move(messages));
          }
          if (failed) {
            exchange->respond(500, {}, "no");
          } else {
            self.stream(request, exchange, 8 * kNanosPerMilli, kNanosPerMilli, 3);
          }
        }) {}
  std::mutex mutex;
  std::map<std::string, core::Json> bodies;  // by X-Request-Id
  TestServer server;
};

struct Rig {
  explicit Rig(const TestServer& server) {
    endpoint.origin = server.origin();
    endpoint.address = server.address();
    endpoint.target = "/v1/chat/completions";
    endpoint.dialect = &openai_chat();
    options.worker.origin = endpoint.origin;
    options.worker.address = endpoint.address;
    options.worker.dialect = endpoint.dialect;
    options.worker.timeline.keep_text = true;
  }
  Job job(std::span<const workload::ScheduleEntry> entries) {
    Job made;
    made.entries = entries;
    made.message = [](int64_t index) { return "p" + std::to_string(index); };
    made.id = [](int64_t index) { return "r-" + std::to_string(index); };
    made.sessions.emplace();
    made.sessions->write = [this](int64_t index, std::span<const BodyMessage> history,
                                  std::string_view prompt) {
      return writer.turn(history, prompt, 3, "r-" + std::to_string(index));
    };
    return made;
  }
  Outcome run(const Job& what) {
    Driver driver(options, &interrupt);
    return Outcome(driver.run(what, nullptr));
  }

  Endpoint endpoint;
  BodyOptions body;
  MessageWriter writer{endpoint, body, "r"};
  Driver::Options options;
  std::atomic<bool> interrupt{false};
};

TEST(Conversations, LaterTurnsQuoteTheAnswersAndWaitForThem) {
  for (const int threads : {1, 2}) {
    Server server;
    Rig rig(server.server);
    rig.options.threads = threads;
    const auto entries = talk(5, 3, 10 * kNanosPerMilli);
    const auto result = rig.run(rig.job(entries));
    ASSERT_EQ(result.rows.size(), 15u);
    EXPECT_EQ(by_status(result), (std::map<Status, int>{{Status::kOk, 15}}));
    for (size_t i = 0; i < 15; ++i) {
      const auto& row = result.rows[i];
      ASSERT_EQ(row.index, static_cast<int64_t>(i));
      EXPECT_EQ(row.session, entries[i].session);
      EXPECT_EQ(row.turn, entries[i].turn);
      EXPECT_EQ(row.text, "") << "kept for the history only";
      if (*row.turn == 0) {
        EXPECT_EQ(row.t_intended_ns, result.t_start_ns + entries[i].t_intended_ns);
      } else {
        EXPECT_EQ(row.t_intended_ns, *result.rows[i - 1].t_close_ns + kThink);
      }
      EXPECT_GE(*row.t_send_ns, row.t_intended_ns);
      EXPECT_LT(*row.t_send_ns - row.t_intended_ns, 100 * kNanosPerMilli);
    }
    EXPECT_EQ(server.bodies.at("r-5").dump(),
              R"([{"role":"user","content":"p3"},{"role":"assistant","content":"ttt"},)"
              R"({"role":"user","content":"p4"},{"role":"assistant","content":"ttt"},)"
              R"({"role":"user","content":"p5"}])");
  }
}

TEST(Conversations, TextIsKeptWhereItWasAskedFor) {
  Server server;
  Rig rig(server.server);
  const auto entries = talk(1, 2, 0);
  auto job = rig.job(entries);
  job.sessions->keep_text = true;
  job.sessions->answer = [](int64_t index) { return "made-" + std::to_string(index); };
  const auto result = rig.run(job);
  EXPECT_EQ(result.rows[1].text, "ttt");
  EXPECT_EQ(server.bodies.at("r-1")[1]["content"], "made-0") << "a synthetic history";
}

TEST(Conversations, AFailedTurnCancelsTheRest) {
  Server server([](const core::Json& messages) {
    return messages.size() == 3 && messages[0]["content"] == "p4";
  });
  Rig rig(server.server);
  const auto entries = talk(3, 4, 5 * kNanosPerMilli);
  const auto result = rig.run(rig.job(entries));
  ASSERT_EQ(result.rows.size(), 12u);
  EXPECT_EQ(
      by_status(result),
      (std::map<Status, int>{{Status::kOk, 9}, {Status::kHttp5xx, 1}, {Status::kCancelled, 2}}));
  for (const size_t i : {6u, 7u}) {
    EXPECT_EQ(result.rows[i].status, Status::kCancelled);
    EXPECT_EQ(result.rows[i].error, "an earlier turn of its conversation failed: http_5xx");
    EXPECT_FALSE(result.rows[i].t_send_ns.has_value());
    EXPECT_EQ(result.rows[i].turn, static_cast<int32_t>(i - 4));
  }
  EXPECT_EQ(server.bodies.size(), 10u);
}

TEST(Conversations, InAClosedLoopAUserKeepsItsPlaceWhileItThinks) {
  Server server;
  Rig rig(server.server);
  const auto entries = talk(6, 3, 0);
  auto job = rig.job(entries);
  job.closed_loop = true;
  job.max_concurrency = 2;
  const auto result = rig.run(job);
  EXPECT_EQ(by_status(result), (std::map<Status, int>{{Status::kOk, 18}}));
  // Sessions as intervals from the first send to the last end: never three at a time.
  std::map<Nanos, int> steps;
  for (size_t i = 0; i < 18; i += 3) {
    ++steps[*result.rows[i].t_send_ns];
    --steps[*result.rows[i + 2].t_close_ns];
  }
  int open = 0, most = 0;
  for (const auto& [t, step] : steps) most = std::max(most, open += step);
  EXPECT_EQ(most, 2);
}

TEST(Conversations, ACapOnAnOpenLoopIsOfRequestsNotOfUsers) {
  Server server;
  Rig rig(server.server);
  const auto entries = talk(6, 2, kNanosPerMilli);
  auto job = rig.job(entries);
  job.max_concurrency = 1;
  const auto result = rig.run(job);
  EXPECT_EQ(by_status(result), (std::map<Status, int>{{Status::kOk, 12}}));
  EXPECT_EQ(server.server.live_max, 1);
  // Another user is served while the first one thinks.
  EXPECT_LT(*result.rows[2].t_send_ns, *result.rows[1].t_send_ns);
}

TEST(Conversations, TheEndOfTheRunEndsThem) {
  Server server;
  Rig rig(server.server);
  auto entries = talk(4, 50, 2 * kNanosPerMilli);
  auto job = rig.job(entries);
  job.duration_ns = 150 * kNanosPerMilli;
  const Nanos before = core::monotonic_ns();
  const auto result = rig.run(job);
  EXPECT_LT(core::monotonic_ns() - before, 5 * kNanosPerSecond);
  EXPECT_LT(result.rows.size(), 60u);
  for (const auto& row : result.rows) {
    EXPECT_TRUE(row.status == Status::kOk || row.status == Status::kUnfinished) << row.error;
    EXPECT_LT(row.t_intended_ns, result.t_start_ns + job.duration_ns + kNanosPerMilli);
  }
  // And so does the user.
  rig.interrupt = false;
  for (auto& entry : entries) entry.think_ns = 3600 * kNanosPerSecond;
  job.duration_ns = 0;
  std::thread user([&rig] {
    core::MonotonicClock().sleep_until(core::monotonic_ns() + 200 * kNanosPerMilli);
    rig.interrupt = true;
  });
  const auto stopped = rig.run(job);
  user.join();
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_EQ(stopped.rows.size(), 4u) << "turns that were not due did not happen";
}

TEST(MessageWriter, ADialectWithoutMessagesGetsOneText) {
  Endpoint endpoint;
  endpoint.dialect = &openai_completions();
  const BodyOptions body;
  const MessageWriter writer{endpoint, body, "run"};
  const BodyMessage history[] = {
      {"user", "a"}, {"assistant", " b"}, {"user", "c"}, {"assistant", " d"}};
  EXPECT_THAT(writer.turn(history, "e", 5, "id"), HasSubstr(R"("prompt":"a b\nc d\ne")"));
  EXPECT_THAT(writer.turn({}, "e", 5, "id"), HasSubstr(R"("prompt":"e")"));
  EXPECT_EQ(writer.id("w", 3), "run-w3");
}

TEST(Conversations, OfABenchAreInItsRecordAndRows) {
  Server server;
  Rig rig(server.server);
  rig.endpoint.base_url = server.server.url();
  rig.endpoint.model = "m";
  BenchOptions options;
  options.input_len = "6";
  options.output_len = "3";
  options.prompt_salt = 5;
  options.request_rate = "100";
  options.workload.turns = "3";
  options.workload.think_time = "0.01";
  options.workload.num_sessions = 4;
  workload::PromptOptions prompt_options;
  auto prompts = workload::PromptBuilder::create(nullptr, prompt_options);
  const auto run =
      run_bench(options, rig.endpoint,
                std::make_shared<const workload::PromptBuilder>(std::move(prompts).value()), {});
  ASSERT_TRUE(run.ok()) << run.error().message;
  ASSERT_TRUE(record::record_text(run->record).ok());
  EXPECT_EQ(run->record.metrics.completed, 12);
  EXPECT_EQ(run->record.workload.details["sessions"], 4);
  EXPECT_EQ(run->record.workload.details["session_rate"], 100);
  EXPECT_FALSE(run->record.workload.request_rate.has_value());
  EXPECT_THAT(run->record.workload.description, HasSubstr("4 conversations of 3 turns"));
  const auto rows = record::all_rows(run->rows);
  const auto& row = rows[5];
  EXPECT_EQ(row.input_tokens_asked, 6 + 2 * 9);  // the whole prompt, history included
  const auto json = record::row_to_json(row, {});
  EXPECT_EQ(json["session"], 1);
  EXPECT_EQ(json["turn"], 2);
  EXPECT_EQ(record::row_from_json(json, "row")->turn, 2);
  EXPECT_FALSE(record::row_to_json(record::RequestRow{}, {}).contains("session"));
  options.prompt_format = "ids";
  rig.endpoint.dialect = &openai_completions();
  auto more = workload::PromptBuilder::create(nullptr, prompt_options);
  const auto refused =
      run_bench(options, rig.endpoint,
                std::make_shared<const workload::PromptBuilder>(std::move(more).value()), {});
  EXPECT_THAT(refused.error().message, HasSubstr("--prompt-format ids: not with conversations"));
}

}  // namespace
}  // namespace prony::load
