// Driver, Worker and Channel against a scripted server in this process: how requests are paced,
// capped, ended and resent, and that every request leaves exactly one row.
#include "prony/load/driver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "prony/load/outcome_testing.hpp"
#include "prony/load/test_server.hpp"

namespace prony::load {
namespace {

using core::kNanosPerMilli;
using core::kNanosPerSecond;
using core::Nanos;
using record::Status;

std::vector<workload::ScheduleEntry> schedule(int64_t count, Nanos gap_ns) {
  std::vector<workload::ScheduleEntry> entries;
  for (int64_t i = 0; i < count; ++i) {
    entries.push_back(
        {.index = i, .t_intended_ns = (i + 1) * gap_ns, .input_tokens = 4, .output_tokens = 3});
  }
  return entries;
}

// A driver on `address` with what tests vary.
struct Rig {
  Rig(net::Origin origin, net::Address address) {
    options.worker.origin = std::move(origin);
    options.worker.address = std::move(address);
    options.worker.dialect = &openai_chat();
    options.worker.timeline.keep_text = true;
    options.worker.timeouts = {.connect_ns = 2 * kNanosPerSecond,
                               .first_token_ns = 5 * kNanosPerSecond,
                               .stall_ns = 5 * kNanosPerSecond,
                               .total_ns = 20 * kNanosPerSecond};
  }
  explicit Rig(const TestServer& server) : Rig(server.origin(), server.address()) {}

  Job job(std::span<const workload::ScheduleEntry> entries) const {
    Job made;
    made.entries = entries;
    const auto origin = options.worker.origin;
    made.message = [origin](int64_t index) {
      return net::format_request("POST", origin, "/v1/chat/completions",
                                 {{"X-Request-Id", "r-" + std::to_string(index)}},
                                 R"({"stream":true})");
    };
    made.id = [](int64_t index) { return "r-" + std::to_string(index); };
    return made;
  }
  Outcome run(const Job& job_to_run, int64_t connections = 0) {
    Driver driver(options, &interrupt);
    if (connections > 0) driver.open_connections(connections);
    return Outcome(driver.run(job_to_run, nullptr));
  }

  Driver::Options options;
  std::atomic<bool> interrupt{false};
};

TEST(Driver, OpenLoopKeepsTheScheduleAndTheTiming) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, 30 * kNanosPerMilli, 5 * kNanosPerMilli, 3);
  });
  Rig rig(server);
  const auto entries = schedule(40, 5 * kNanosPerMilli);
  const auto result = rig.run(rig.job(entries), 40);
  ASSERT_EQ(result.rows.size(), 40u);
  std::vector<double> ttft;
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const auto& row = result.rows[i];
    EXPECT_EQ(row.index, static_cast<int64_t>(i));
    EXPECT_EQ(row.id, "r-" + std::to_string(i));
    ASSERT_EQ(row.status, Status::kOk) << row.error;
    EXPECT_EQ(row.t_intended_ns, result.t_start_ns + entries[i].t_intended_ns);
    EXPECT_GE(*row.t_send_ns, row.t_intended_ns);
    EXPECT_FALSE(row.t_connect_ns.has_value());  // opened ahead
    EXPECT_EQ(row.output_tokens, 3);
    EXPECT_TRUE(row.tokens_per_event_exact);
    EXPECT_GE(*row.t_first_token_ns - *row.t_send_ns, 29 * kNanosPerMilli);
    EXPECT_LE(*row.t_first_event_ns, *row.t_first_token_ns);
    EXPECT_GE(row.issue_lag_ns.value_or(-1), 0);
    ttft.push_back(static_cast<double>(*row.t_first_token_ns - *row.t_send_ns) / 1e6);
  }
  std::sort(ttft.begin(), ttft.end());
  EXPECT_LT(ttft[0], 33.0);  // a busy host delays most of them
  EXPECT_EQ(result.client.token_events, 120);
  EXPECT_EQ(result.client.unstamped_events, 0);
  ASSERT_EQ(result.client.loop_busy.size(), 1u);
  EXPECT_GT(result.client.loop_busy[0], 0.0);
  EXPECT_FALSE(result.server.empty());
}

TEST(Driver, ClosedLoopHoldsExactlyTheConcurrencyAsked) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, 10 * kNanosPerMilli, kNanosPerMilli, 3);
  });
  for (const int threads : {1, 2}) {
    server.live_max = 0;
    Rig rig(server);
    rig.options.threads = threads;
    const auto entries = schedule(40, 0);
    auto job = rig.job(entries);
    job.closed_loop = true;
    job.max_concurrency = 5;
    const auto result = rig.run(job, 5);
    EXPECT_EQ(by_status(result), (std::map<Status, int>{{Status::kOk, 40}}));
    EXPECT_EQ(server.live_max, 5) << threads;
    // A request is meant when its place became free: after some other one ended.
    std::multiset<Nanos> ends;
    for (const auto& row : result.rows) ends.insert(*row.t_close_ns);
    int from_start = 0;
    for (const auto& row : result.rows) {
      if (row.t_intended_ns == result.t_start_ns) {
        ++from_start;
      } else {
        EXPECT_EQ(ends.count(row.t_intended_ns), 1u);
      }
    }
    EXPECT_EQ(from_start, 5);
  }
}

TEST(Driver, CapOnAnOpenLoopDelaysTheSendAndNotTheIntention) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, 20 * kNanosPerMilli, kNanosPerMilli, 1);
  });
  Rig rig(server);
  const auto entries = schedule(20, kNanosPerMilli);  // 1000/s asked, at most 2 in 20 ms possible
  auto job = rig.job(entries);
  job.max_concurrency = 2;
  const auto result = rig.run(job, 2);
  EXPECT_EQ(by_status(result), (std::map<Status, int>{{Status::kOk, 20}}));
  EXPECT_EQ(server.live_max, 2);
  const auto& last = result.rows.back();
  EXPECT_EQ(last.t_intended_ns, result.t_start_ns + 20 * kNanosPerMilli);
  EXPECT_GT(*last.t_send_ns - last.t_intended_ns, 100 * kNanosPerMilli);
  // That wait was asked for: it is no lag of the client.
  const auto lag = result.client.issue_lag_ns.quantile(0.5);
  ASSERT_TRUE(lag.has_value());
  EXPECT_LT(4 * static_cast<Nanos>(*lag), *last.t_send_ns - last.t_intended_ns);
}

TEST(Driver, DurationEndsTheSending) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, 30 * kNanosPerMilli, kNanosPerMilli, 1);
  });
  Rig rig(server);
  const auto entries = schedule(1000, kNanosPerMilli);
  auto job = rig.job(entries);
  job.max_concurrency = 2;
  job.duration_ns = 200 * kNanosPerMilli;
  const auto result = rig.run(job, 2);
  const Nanos stop = result.t_start_ns + job.duration_ns;
  const auto counts = by_status(result);
  EXPECT_GT(counts.at(Status::kOk), 0);
  EXPECT_GT(counts.at(Status::kUnfinished), 10);  // due, and never had a place
  for (const auto& row : result.rows) {
    EXPECT_LT(row.t_intended_ns, stop);
    if (row.status == Status::kUnfinished) {
      EXPECT_FALSE(row.t_send_ns.has_value());
      EXPECT_THAT(row.error, ::testing::HasSubstr("not sent"));
    } else {
      EXPECT_LT(*row.t_send_ns, stop);
    }
  }
  EXPECT_EQ(server.requests, counts.at(Status::kOk));
}

TEST(Driver, ClosedLoopWithDurationEnds) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, 5 * kNanosPerMilli, kNanosPerMilli, 1);
  });
  Rig rig(server);
  const auto entries = schedule(5'000, 0);
  auto job = rig.job(entries);
  job.closed_loop = true;
  job.max_concurrency = 3;
  job.duration_ns = 150 * kNanosPerMilli;
  const auto result = rig.run(job);
  EXPECT_GT(result.rows.size(), 0u);
  EXPECT_LT(result.rows.size(), 200u);
  EXPECT_EQ(by_status(result).size(), 1u);
  EXPECT_EQ(result.rows[0].status, Status::kOk);
}

TEST(Driver, EachTimeOutHasItsStatus) {
  // By request: 0 never answers, 1 stops after a token, 2 drips for ever, 3 pings and no token.
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    const char kind = request.header("x-request-id").back();
    if (kind == '0') return self.at(core::monotonic_ns() + 5 * kNanosPerSecond, [exchange] {});
    exchange->start_stream(200, {{"Content-Type", "text/event-stream"}});
    const auto token = TestServer::event(R"({"choices":[{"delta":{"content":"t"}}]})");
    if (kind == '1') exchange->write(token);
    for (int i = 1; i < 200; ++i) {
      self.at(core::monotonic_ns() + i * 50 * kNanosPerMilli, [exchange, kind, token] {
        if (exchange->open()) exchange->write(kind == '2' ? token : ": ping\n\n");
      });
    }
  });
  Rig rig(server);
  rig.options.worker.timeouts = {.connect_ns = kNanosPerSecond,
                                 .first_token_ns = 600 * kNanosPerMilli,
                                 .stall_ns = 400 * kNanosPerMilli,
                                 .total_ns = 1200 * kNanosPerMilli};
  const auto entries = schedule(4, kNanosPerMilli);
  const auto result = rig.run(rig.job(entries), 4);
  ASSERT_EQ(result.rows.size(), 4u);
  const Status expected[] = {Status::kTimeoutTtft, Status::kTimeoutStall, Status::kTimeoutTotal,
                             Status::kTimeoutTtft};
  const Nanos after[] = {600, 400, 1200, 600};
  for (size_t i = 0; i < 4; ++i) {
    const auto& row = result.rows[i];
    EXPECT_EQ(row.status, expected[i]) << i << " " << row.error;
    const double took = static_cast<double>(*row.t_close_ns - *row.t_send_ns) / 1e6;
    EXPECT_GE(took, static_cast<double>(after[i]) - 1);
    EXPECT_LT(took, static_cast<double>(after[i]) + 1000);
  }
  EXPECT_EQ(result.rows[1].output_tokens, 1);
  EXPECT_EQ(result.rows[1].error, "nothing for 0.4 s");
}

// A socket that listens and never accepts, with its queue full: the next SYN gets no answer.
struct FullListener {
  FullListener() : fd(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    PRONY_CHECK(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
    PRONY_CHECK(::listen(fd, 0) == 0);
    PRONY_CHECK(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
    for (int i = 0; i < 4; ++i) {
      fillers.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      (void)::connect(fillers.back(), reinterpret_cast<sockaddr*>(&address), size);
    }
  }
  ~FullListener() {
    for (const int filler : fillers) ::close(filler);
    ::close(fd);
  }
  int fd;
  uint16_t port = 0;
  std::vector<int> fillers;
};

TEST(Driver, ConnectTimeOut) {
  const FullListener listener;
  Rig rig({.tls = false, .host = "127.0.0.1", .port = listener.port}, {"127.0.0.1", listener.port});
  rig.options.worker.timeouts.connect_ns = 200 * kNanosPerMilli;
  const auto entries = schedule(2, kNanosPerMilli);
  const auto result = rig.run(rig.job(entries));
  EXPECT_EQ(by_status(result), (std::map<Status, int>{{Status::kTimeoutConnect, 2}}));
  EXPECT_FALSE(result.rows[0].t_send_ns.has_value());
}

TEST(Driver, RefusedConnections) {
  uint16_t port = 0;
  { port = FullListener().port; }  // closed again
  Rig rig({.tls = false, .host = "127.0.0.1", .port = port}, {"127.0.0.1", port});
  rig.options.worker.connections_ahead = 2;
  const auto entries = schedule(5, kNanosPerMilli);
  const auto result = rig.run(rig.job(entries), 2);
  EXPECT_EQ(by_status(result), (std::map<Status, int>{{Status::kConnect, 5}}));
}

TEST(Driver, ConnectionClosedAfterEachAnswer) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, 5 * kNanosPerMilli, kNanosPerMilli, 2, false);
  });
  Rig rig(server);
  rig.options.worker.connections_ahead = 4;
  const auto entries = schedule(60, 2 * kNanosPerMilli);
  const auto result = rig.run(rig.job(entries), 4);
  EXPECT_EQ(by_status(result), (std::map<Status, int>{{Status::kOk, 60}}));
  EXPECT_EQ(server.requests, 60);
  // The answer did not announce the close: a request may have met it half-way, and went again.
  for (const auto& row : result.rows) EXPECT_LE(row.retries, 1);
}

TEST(Driver, ADeadKeptAliveConnectionIsResentOnce) {
  // Every second request on a connection is met by a close, as uvicorn's idle time-out races.
  auto served = std::make_shared<std::set<std::string>>();
  TestServer server([served](TestServer& self, const net::HttpRequest& request,
                             const std::shared_ptr<net::Exchange>& exchange) {
    const std::string id(request.header("x-request-id"));
    if (id == "r-1" && served->insert(id).second) {
      exchange->abort(false);
      return;
    }
    self.stream(request, exchange, 2 * kNanosPerMilli, kNanosPerMilli, 1);
  });
  Rig rig(server);
  const auto entries = schedule(3, 0);
  auto job = rig.job(entries);
  job.closed_loop = true;
  job.max_concurrency = 1;
  const auto result = rig.run(job);
  EXPECT_EQ(by_status(result), (std::map<Status, int>{{Status::kOk, 3}}));
  EXPECT_EQ(result.rows[0].retries, 0);
  EXPECT_EQ(result.rows[1].retries, 1);
  EXPECT_TRUE(result.rows[1].t_connect_ns.has_value());  // on a fresh connection
  EXPECT_EQ(result.rows[2].retries, 0);
  EXPECT_EQ(server.requests, 4);
}

TEST(Driver, AServerThatClosesWithoutAnAnswerFailsAndIsNotAskedForEver) {
  TestServer server([](TestServer&, const net::HttpRequest&,
                       const std::shared_ptr<net::Exchange>& exchange) { exchange->abort(false); });
  Rig rig(server);
  const auto entries = schedule(4, kNanosPerMilli);
  const auto result = rig.run(rig.job(entries), 2);
  EXPECT_EQ(by_status(result), (std::map<Status, int>{{Status::kTruncated, 4}}));
  EXPECT_LE(server.requests, 8);  // at most one resend each, where the connection was opened ahead
}

TEST(Driver, ServerSideFaultsGetTheirStatus) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    const auto id = request.header("x-request-id");
    if (id == "r-0") return exchange->respond(503, {}, R"({"error":{"message":"full"}})");
    if (id == "r-1") return exchange->respond(200, {}, R"({"choices":[]})");
    if (id == "r-5") return self.stream(request, exchange, kNanosPerMilli, kNanosPerMilli, 2);
    exchange->start_stream(200, {{"Content-Type", "text/event-stream"}});
    if (id == "r-2") {
      exchange->write(TestServer::event(R"({"choices":[{"delta":{"content":"t"}}]})"));
      exchange->write(TestServer::event(R"({"error":{"message":"boom"}})"));
      exchange->finish();
    } else if (id == "r-3") {
      exchange->write(TestServer::event(R"({"choices":[{"delta":{"content":"t"}}]})"));
      exchange->abort(true);
    } else {
      exchange->write("data: [DONE]\n\n");
      exchange->finish();
    }
  });
  Rig rig(server);
  const auto entries = schedule(6, 2 * kNanosPerMilli);
  const auto result = rig.run(rig.job(entries));
  std::vector<Status> got;
  for (const auto& row : result.rows) got.push_back(row.status);
  EXPECT_THAT(got,
              ::testing::ElementsAre(Status::kHttp5xx, Status::kNotStream, Status::kStreamError,
                                     Status::kTruncated, Status::kEmpty, Status::kOk));
  EXPECT_EQ(result.rows[0].error, "http 503: full");
}

TEST(Driver, InterruptGivesWhatThereIs) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, 10 * kNanosPerMilli, 10 * kNanosPerMilli, 100);
  });
  Rig rig(server);
  const auto entries = schedule(1000, 5 * kNanosPerMilli);
  auto job = rig.job(entries);
  job.max_concurrency = 10;
  std::thread user([&rig] {
    core::MonotonicClock().sleep_until(core::monotonic_ns() + 200 * kNanosPerMilli);
    rig.interrupt = true;
  });
  const Nanos begin = core::monotonic_ns();
  const auto result = rig.run(job);
  user.join();
  EXPECT_LT(core::monotonic_ns() - begin, 2 * kNanosPerSecond);
  EXPECT_TRUE(result.interrupted);
  EXPECT_LT(result.rows.size(), 200u);
  int in_flight = 0, waiting = 0;
  for (const auto& row : result.rows) {
    EXPECT_EQ(row.status, Status::kInterrupted);
    ++(row.t_send_ns ? in_flight : waiting);
  }
  EXPECT_EQ(in_flight, 10);
  EXPECT_GT(waiting, 0);
}

TEST(Driver, InterruptedBeforeTheStart) {
  TestServer server(
      [](TestServer&, const net::HttpRequest&, const std::shared_ptr<net::Exchange>&) {});
  Rig rig(server);
  rig.interrupt = true;
  const auto entries = schedule(5, 0);
  const auto result = rig.run(rig.job(entries));
  EXPECT_TRUE(result.interrupted);
  EXPECT_TRUE(result.rows.empty());
  EXPECT_EQ(server.requests, 0);
}

TEST(Driver, DrainLimit) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, 10 * kNanosPerMilli, 10 * kNanosPerMilli,
                request.header("x-request-id") == "r-0" ? 2 : 500);
  });
  Rig rig(server);
  const auto entries = schedule(2, kNanosPerMilli);
  auto job = rig.job(entries);
  job.drain_ns = 200 * kNanosPerMilli;
  const auto result = rig.run(job);
  EXPECT_EQ(result.rows[0].status, Status::kOk);
  EXPECT_EQ(result.rows[1].status, Status::kUnfinished);
  EXPECT_GT(result.rows[1].output_tokens.value_or(0), 5);
  EXPECT_FALSE(result.interrupted);
}

TEST(Driver, ThreadsShareTheScheduleAndNothingElse) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, 3 * kNanosPerMilli, kNanosPerMilli, 2);
  });
  Rig rig(server);
  rig.options.threads = 3;
  const auto entries = schedule(100, kNanosPerMilli);
  const auto result = rig.run(rig.job(entries), 9);
  ASSERT_EQ(result.rows.size(), 100u);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(result.rows[i].index, static_cast<int64_t>(i));
    EXPECT_EQ(result.rows[i].status, Status::kOk);
  }
  EXPECT_EQ(result.client.loop_busy.size(), 3u);
  EXPECT_EQ(server.requests, 100);
}

TEST(Driver, BurstOfEverythingAtOnce) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, 100 * kNanosPerMilli, 5 * kNanosPerMilli, 5);
  });
  Rig rig(server);
  const auto entries = schedule(300, 0);
  const auto result = rig.run(rig.job(entries), 300);
  EXPECT_EQ(by_status(result), (std::map<Status, int>{{Status::kOk, 300}}));
  EXPECT_EQ(result.client.token_events, 1500);
}

TEST(Driver, WarmUpAndLoadShareTheConnections) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, 2 * kNanosPerMilli, kNanosPerMilli, 1);
  });
  Rig rig(server);
  Driver driver(rig.options, nullptr);
  const auto warm = schedule(3, 0);
  auto job = rig.job(warm);
  job.closed_loop = true;
  job.max_concurrency = 1;
  EXPECT_EQ(driver.run(job, nullptr).rows.size(), 3);
  const auto entries = schedule(5, 10 * kNanosPerMilli);
  LiveTotals last;
  const Outcome result(
      driver.run(rig.job(entries), [&last](const LiveTotals& totals) { last = totals; }));
  EXPECT_EQ(result.rows.size(), 5u);
  // On a busy machine a request may still be under way when the next is due, which then opens its
  // own connection.
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const auto& row = result.rows[i];
    if (i > 0 && result.rows[i - 1].t_close_ns.value_or(INT64_MAX) >= row.t_intended_ns) continue;
    EXPECT_FALSE(row.t_connect_ns.has_value());
  }
  EXPECT_EQ(last.completed, 5);
  EXPECT_EQ(last.sent, 5);
  EXPECT_EQ(last.failed, 0);
  EXPECT_EQ(last.in_flight, 0);
  EXPECT_EQ(last.tokens, 5);
  EXPECT_TRUE(last.ttft_p50_ms.has_value());
}

TEST(Driver, ConnectionLimitHoldsBackAndSaysSo) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, 10 * kNanosPerMilli, kNanosPerMilli, 1);
  });
  Rig rig(server);
  rig.options.worker.connections_max = 2;
  const auto entries = schedule(10, 0);
  const auto result = rig.run(rig.job(entries));
  EXPECT_EQ(by_status(result), (std::map<Status, int>{{Status::kOk, 10}}));
  EXPECT_EQ(server.live_max, 2);
  EXPECT_GT(result.client.held_back, 0);
}

TEST(Driver, NothingToDo) {
  TestServer server(
      [](TestServer&, const net::HttpRequest&, const std::shared_ptr<net::Exchange>&) {});
  Rig rig(server);
  const std::vector<workload::ScheduleEntry> none;
  EXPECT_TRUE(rig.run(rig.job(none)).rows.empty());
}

// An open loop of 10 s that has enough after 20 requests: what is in flight goes on to its end,
// what has not come due never happened.
TEST(Driver, EnoughEndsTheSendingAndNothingElse) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, 150 * kNanosPerMilli, 10 * kNanosPerMilli, 3);
  });
  Rig rig(server);
  rig.options.threads = 2;
  const auto entries = schedule(1000, 10 * kNanosPerMilli);
  auto job = rig.job(entries);
  std::atomic<int> ended{0};
  job.on_row = [&ended](const record::RequestRow&) { ++ended; };
  job.enough = [&ended] { return ended.load() >= 20; };
  const auto result = rig.run(job);
  EXPECT_EQ(by_status(result), (std::map<Status, int>{{Status::kOk, ended.load()}}));
  EXPECT_GE(ended.load(), 20);
  EXPECT_LT(ended.load(), 300);
  EXPECT_FALSE(result.interrupted);
  EXPECT_LT(result.t_end_ns - result.t_start_ns, 5 * kNanosPerSecond);
}

TEST(Driver, RowsThatOutgrowMemoryComeBackFromTheFile) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, kNanosPerMilli, 0, 3);
  });
  for (const int threads : {1, 2}) {
    Rig rig(server);
    rig.options.threads = threads;
    rig.options.rows.folders = {::testing::TempDir()};
    rig.options.rows.memory_bytes = 0;
    rig.options.rows.block_bytes = 1000;
    const auto entries = schedule(200, kNanosPerMilli / 4);
    Driver driver(rig.options, &rig.interrupt);
    driver.open_connections(20);
    const auto result = driver.run(rig.job(entries), nullptr);
    EXPECT_GT(result.rows.file_bytes(), 10'000);
    EXPECT_TRUE(result.rows.status().ok());
    const auto rows = record::all_rows(result.rows);
    ASSERT_EQ(rows.size(), 200u);
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].index, static_cast<int64_t>(i));
      EXPECT_EQ(rows[i].status, Status::kOk) << rows[i].error;
      EXPECT_EQ(rows[i].events.size(), 3u);
    }
  }
}

TEST(Driver, AFullDiskEndsTheRunAndKeepsItsRows) {
  TestServer server([](TestServer& self, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    self.stream(request, exchange, kNanosPerMilli, 0, 3);
  });
  Rig rig(server);
  rig.options.rows.folders = {::testing::TempDir() + "/no-such-folder"};
  rig.options.rows.memory_bytes = 0;
  rig.options.rows.block_bytes = 1000;
  const auto entries = schedule(20'000, kNanosPerMilli);  // 20 s
  Driver driver(rig.options, &rig.interrupt);
  const auto result = driver.run(rig.job(entries), nullptr);
  EXPECT_FALSE(result.interrupted);  // not by the user
  ASSERT_FALSE(result.rows.status().ok());
  EXPECT_THAT(result.rows.status().error().message, ::testing::HasSubstr("no-such-folder"));
  EXPECT_LT(result.t_end_ns - result.t_start_ns, 10 * kNanosPerSecond);
  const auto rows = record::all_rows(result.rows);
  EXPECT_EQ(static_cast<int64_t>(rows.size()), result.rows.size());
  ASSERT_GT(rows.size(), 5u);
  EXPECT_EQ(rows.front().status, Status::kOk);
}

}  // namespace
}  // namespace prony::load
