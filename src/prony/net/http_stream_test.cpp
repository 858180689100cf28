// HttpServer's streams: chunks, slow readers, peers that go, raw bytes, dropped exchanges, drain.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "prony/net/http_server.hpp"
#include "prony/net/server_testing.hpp"

namespace prony::net {
namespace {

using core::kNanosPerMilli;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(HttpServer, StreamIsChunkedAndEachWriteGoesAtOnce) {
  std::shared_ptr<Exchange> exchange;
  std::atomic<bool> ready{false};
  ServerThread server([&](const HttpRequest&, const std::shared_ptr<Exchange>& e) {
    exchange = e;
    e->start_stream(200, {{"Content-Type", "text/event-stream"}});
    ready = true;
  });
  TestSocket socket(TestSocket::connect_to(server.port()));
  socket.write(post("/", ""));
  EXPECT_THAT(socket.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  for (int i = 0; i < 5; ++i) {
    const core::Nanos before = core::monotonic_ns();
    server.on_loop([&] {
      exchange->write(fmt::format("data: {}\n\n", i));
      exchange->write("");  // no chunk: that would end the stream
      return 0;
    });
    EXPECT_EQ(socket.read_until("\n\n\r\n"), fmt::format("9\r\ndata: {}\n\n\r\n", i));
    const core::Nanos at = server.on_loop([&] { return exchange->last_write_ns(); });
    EXPECT_GE(at, before);
    EXPECT_LE(at, core::monotonic_ns());
  }
  server.on_loop([&] {
    exchange->finish();
    EXPECT_FALSE(exchange->open());
    exchange->write("ignored");
    exchange->finish();
    exchange.reset();
    return 0;
  });
  EXPECT_EQ(socket.read_until("0\r\n\r\n"), "0\r\n\r\n");
  socket.write(post("/", ""));  // and the connection lives on
  EXPECT_THAT(socket.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  server.on_loop([&] {
    exchange.reset();
    return 0;
  });
}

TEST(HttpServer, Http10StreamsUntilClose) {
  ServerThread server([&](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    exchange->start_stream(200, {});
    exchange->write("a");
    exchange->write("b");
    exchange->finish();
  });
  const std::string got = ask(server.port(), "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(got, Not(HasSubstr("chunked")));
  EXPECT_EQ(body_of(got), "ab");
}

TEST(HttpServer, PeerCloseIsSeenWhileStreaming) {
  for (const bool reset : {false, true}) {
    std::atomic<int> closed{0};
    std::shared_ptr<Exchange> held;
    ServerThread server([&](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
      held = exchange;
      exchange->on_peer_close([&] {
        EXPECT_FALSE(held->open());
        held->write("ignored");
        held.reset();
        ++closed;
      });
      exchange->start_stream(200, {});
      exchange->write("data");
    });
    TestSocket socket(TestSocket::connect_to(server.port()));
    socket.write(post("/", ""));
    socket.read_until("data");
    EXPECT_EQ(closed, 0);
    reset ? socket.reset() : socket.close();
    EXPECT_TRUE(server.soon([&] { return closed == 1; }));
    EXPECT_TRUE(server.soon([&] { return server.server().open_connections() == 0; }));
  }
}

TEST(HttpServer, SlowReaderQueuesAndIsStampedWhenTaken) {
  std::shared_ptr<Exchange> held;
  ServerThread server([&](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    held = exchange;
    exchange->start_stream(200, {});
  });
  TestSocket socket(TestSocket::connect_to(server.port()));
  socket.write(post("/", ""));
  socket.read_until("\r\n\r\n");
  const std::string block(1 << 20, 'x');
  server.on_loop([&] {
    for (int i = 0; i < 16; ++i) held->write(block);
    EXPECT_GT(held->queued_bytes(), 0U);
    EXPECT_EQ(held->last_write_ns(), 0);
    return 0;
  });
  const core::Nanos before = core::monotonic_ns();
  size_t got = 0;
  std::string piece;
  while (got < (16 << 20)) {
    piece.clear();
    ASSERT_TRUE(socket.read_some(piece));
    got += piece.size();
  }
  EXPECT_TRUE(server.soon([&] { return held->queued_bytes() == 0; }));
  EXPECT_GE(server.on_loop([&] { return held->last_write_ns(); }), before);
  server.on_loop([&] {
    held->finish();
    held.reset();
    return 0;
  });
  EXPECT_THAT(socket.read_until("0\r\n\r\n"), EndsWith("0\r\n\r\n"));
}

TEST(HttpServer, PeerThatReadsNothingIsClosedInTheEnd) {
  std::shared_ptr<Exchange> held;
  std::atomic<int> closed{0};
  ServerThread server(
      [&](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
        held = exchange;
        exchange->on_peer_close([&] {
          held.reset();
          ++closed;
        });
        exchange->start_stream(200, {});
        exchange->write(std::string(32 << 20, 'x'));
      },
      {.write_timeout_ns = 100 * kNanosPerMilli});
  TestSocket socket(TestSocket::connect_to(server.port()));
  socket.write(post("/", ""));
  EXPECT_TRUE(server.soon([&] { return closed == 1; }));
}

TEST(HttpServer, DroppedExchangesAreAnswered) {
  ServerThread server([&](const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    if (request.path == "/stream") {
      exchange->start_stream(200, {});
      exchange->write("half");
    }
  });
  EXPECT_THAT(ask(server.port(), post("/", ""), "}}"), StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(ask(server.port(), post("/stream", "")), EndsWith("half\r\n"));
}

TEST(HttpServer, RawBytesAndAborts) {
  ServerThread server([&](const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    if (request.path == "/raw") {
      exchange->write_raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
      exchange->write_raw("ok");
      return exchange->finish();
    }
    exchange->start_stream(200, {});
    exchange->write("x");
    exchange->abort(request.path == "/reset");
  });
  TestSocket raw(TestSocket::connect_to(server.port()));
  for (int i = 0; i < 2; ++i) {
    raw.write(post("/raw", ""));
    EXPECT_EQ(raw.read_until("ok"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  }
  EXPECT_THAT(ask(server.port(), post("/close", "")), EndsWith("1\r\nx\r\n"));
  TestSocket reset(TestSocket::connect_to(server.port()));
  reset.write(post("/reset", ""));
  char block[1024];
  ssize_t n = 0;
  while ((n = ::recv(reset.fd(), block, sizeof block, 0)) > 0) {
  }
  EXPECT_EQ(n, -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST(HttpServer, HeaderValuesCannotAddHeaders) {
  ServerThread server([&](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    exchange->respond(200, {{"X-Request-Id", "a\r\nX-Evil: 1"}}, "");
  });
  const std::string got = ask(server.port(), post("/", ""), "\r\n\r\n");
  EXPECT_THAT(got, HasSubstr("X-Request-Id: aX-Evil: 1\r\n"));
}

TEST(HttpServer, DrainFinishesWhatIsInFlight) {
  std::shared_ptr<Exchange> held;
  std::atomic<bool> started{false};
  ServerThread server([&](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    held = exchange;
    started = true;
  });
  TestSocket idle(TestSocket::connect_to(server.port()));
  TestSocket busy(TestSocket::connect_to(server.port()));
  busy.write(post("/", ""));
  EXPECT_TRUE(server.soon([&] { return started && server.server().open_connections() == 2; }));
  server.on_loop([&] {
    server.server().stop_accepting();
    return 0;
  });
  EXPECT_EQ(idle.read_all(), "");
  const int refused = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = TestSocket::loopback(server.port());
  EXPECT_EQ(::connect(refused, reinterpret_cast<const sockaddr*>(&address), sizeof address), -1);
  ::close(refused);
  server.on_loop([&] {
    held->respond(200, {}, "done");
    held.reset();
    return 0;
  });
  const std::string got = busy.read_all();
  EXPECT_THAT(got, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(got, EndsWith("done"));
}

TEST(HttpServer, PortInUseIsAnError) {
  EventLoop loop;
  auto first = HttpServer::create(loop, {}, echo);
  ASSERT_TRUE(first.ok());
  const uint16_t port = first.value()->port();
  const auto second = HttpServer::create(loop, {.port = port}, echo);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kEnvironment);
  EXPECT_EQ(second.error().message,
            fmt::format("cannot listen on 127.0.0.1:{}: address already in use", port));
  const auto nowhere = HttpServer::create(loop, {.host = "203.0.113.9"}, echo);
  EXPECT_FALSE(nowhere.ok());
}

TEST(HttpServer, ExchangeMayOutliveTheServer) {
  std::shared_ptr<Exchange> held;
  {
    std::atomic<bool> started{false};
    ServerThread server([&](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
      held = exchange;
      exchange->start_stream(200, {});
      started = true;
    });
    TestSocket socket(TestSocket::connect_to(server.port()));
    socket.write(post("/", ""));
    EXPECT_TRUE(server.soon([&] { return started.load(); }));
    server.join();
  }
  EXPECT_FALSE(held->open());
  held->write("x");
  held->finish();
}

}  // namespace
}  // namespace prony::net
