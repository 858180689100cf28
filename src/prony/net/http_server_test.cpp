// HttpServer against clients made of raw sockets: pipelining, limits, timeouts, malformed requests,
// slow readers, peers that go; and against our own client.
#include "prony/net/http_server.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "prony/net/http_format.hpp"
#include "prony/net/server_testing.hpp"

namespace prony::net {
namespace {

using core::kNanosPerMilli;
using core::kNanosPerSecond;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(HttpServer, AnswersWithHeaders) {
  ServerThread server(echo);
  const std::string got = ask(server.port(), post("/a/b?x=1&y", "hi"), "hi");
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK\r\nServer: prony\r\nDate: "));
  EXPECT_THAT(got, HasSubstr(" GMT\r\nContent-Type: text/plain\r\nContent-Length: 18\r\n\r\n"));
  EXPECT_EQ(body_of(got), "POST /a/b x=1&y hi");
}

TEST(HttpServer, RequestFields) {
  std::string seen;
  ServerThread server([&](const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    seen = fmt::format("{}|{}|{}", request.header("x-ID"), request.header("none"),
                       request.t_received_ns > 0);
    exchange->respond(204, {}, "");
  });
  EXPECT_THAT(
      ask(server.port(), "GET http://host:1/p HTTP/1.1\r\nHost: h\r\nX-Id: 7 \r\n\r\n", "\r\n\r\n"),
      Not(HasSubstr("Content-Length")));
  server.join();
  EXPECT_EQ(seen, "7||true");
}

TEST(HttpServer, EveryPieceSizeAndChunkedRequests) {
  ServerThread server(echo);
  const std::string chunked =
      "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n";
  for (const std::string& request : {post("/l", "abcde"), chunked}) {
    for (const size_t size : {1U, 2U, 3U, 50U}) {
      TestSocket socket(TestSocket::connect_to(server.port()));
      socket.write_pieces(request, size);
      EXPECT_THAT(body_of(socket.read_until("abcde")), EndsWith(" abcde"));
    }
  }
}

TEST(HttpServer, PipelinedRequestsAreAnsweredInOrder) {
  std::vector<std::shared_ptr<Exchange>> held;
  ServerThread server([&](const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    EXPECT_EQ(request.path, fmt::format("/{}", request.index_on_connection));
    // Some at once, some later: each must wait for the one before.
    if (request.path.ends_with('3')) {
      server.loop.post([exchange, body = request.body] { exchange->respond(200, {}, body); });
    } else {
      exchange->respond(200, {}, request.body);
    }
  });
  std::string all, expected;
  for (int i = 0; i < 30; ++i) all += post(fmt::format("/{}", i), fmt::format("[{}]", i));
  TestSocket socket(TestSocket::connect_to(server.port()));
  socket.write(all);
  const std::string got = socket.read_until("[29]");
  size_t at = 0;
  for (int i = 0; i < 30; ++i) {
    const size_t next = got.find(fmt::format("[{}]", i), at);
    ASSERT_NE(next, std::string::npos) << i;
    at = next;
  }
}

TEST(HttpServer, PipelinedMegabytesDoNotPileUp) {
  std::atomic<int> served{0};
  ServerThread server([&](const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    ++served;
    server.loop.post(
        [exchange, n = request.body.size()] { exchange->respond(200, {}, std::to_string(n)); });
  });
  TestSocket socket(TestSocket::connect_to(server.port()));
  const std::string one = post("/", std::string(100'000, 'x'));
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) socket.write(one);
  });
  std::string got;
  while (served < 50 && socket.read_some(got)) {
  }
  writer.join();
  EXPECT_EQ(served, 50);
}

TEST(HttpServer, KeepsAliveByVersionAndHeader) {
  ServerThread server(echo);
  const auto closes = [&](std::string_view request) {
    TestSocket socket(TestSocket::connect_to(server.port()));
    socket.write(request);
    std::string got = socket.read_until("GET / ");
    const timeval limit{.tv_sec = 0, .tv_usec = 100'000};
    ::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char c = 0;
    ssize_t n = 0;
    while ((n = ::recv(socket.fd(), &c, 1, 0)) == 1) got += c;
    const bool closed = n == 0;
    EXPECT_EQ(closed, got.find("Connection: close\r\n") != std::string::npos) << got;
    return closed;
  };
  EXPECT_FALSE(closes("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
  EXPECT_TRUE(closes("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
  EXPECT_TRUE(closes("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_FALSE(closes("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

TEST(HttpServer, HeadHasNoBody) {
  ServerThread server(echo);
  const std::string got =
      ask(server.port(), "HEAD /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(got, HasSubstr("Content-Length: 9\r\n"));
  EXPECT_EQ(body_of(got), "");
}

// ---- refusals

TEST(HttpServer, MalformedRequestsAre400) {
  ServerThread server(echo);
  for (const std::string request :
       {"garbage\r\n\r\n", "GET / HTTP/3.0\r\n\r\n", "GET /\r\n\r\n",
        "GET / HTTP/1.1\r\nBad Name: x\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"}) {
    SCOPED_TRACE(request);
    const std::string got = ask(server.port(), request);
    EXPECT_THAT(got, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
    EXPECT_THAT(got, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(body_of(got), StartsWith(R"({"error":{"message":"not an http/1.1 request: )"));
  }
}

TEST(HttpServer, TooLargeIs413Or431AndTheClientReadsIt) {
  ServerThread server(echo, {.body_limit_bytes = 1000, .header_limit_bytes = 2000});
  // All of the body is under way: the answer must survive the reset that unread bytes cause.
  EXPECT_THAT(ask(server.port(), post("/", std::string(1'000'000, 'x'))),
              StartsWith("HTTP/1.1 413 Content Too Large\r\n"));
  EXPECT_THAT(ask(server.port(),
                  "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "320\r\n" +
                      std::string(800, 'x') + "\r\n320\r\n"),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask(server.port(), "GET / HTTP/1.1\r\nX: " + std::string(3000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask(server.port(), "GET /" + std::string(3000, 'x')), StartsWith("HTTP/1.1 431 "));
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 200; ++i) many += fmt::format("X-{}: 0123456789\r\n", i);
  TestSocket slow(TestSocket::connect_to(server.port()));
  slow.write_pieces(many, 40, 100);
  EXPECT_THAT(slow.read_all(), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask(server.port(), post("/", std::string(1000, 'x')), "xxx"),
              StartsWith("HTTP/1.1 200 "));
}

TEST(HttpServer, ExpectContinue) {
  ServerThread server(echo, {.body_limit_bytes = 1000});
  TestSocket socket(TestSocket::connect_to(server.port()));
  socket.write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(socket.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  socket.write("body");
  EXPECT_THAT(socket.read_until("body"), StartsWith("HTTP/1.1 200 OK\r\n"));
  // Too large: refused before the body is sent.
  EXPECT_THAT(
      ask(server.port(), "POST / HTTP/1.1\r\nContent-Length: 4000\r\nExpect: 100-continue\r\n\r\n"),
      StartsWith("HTTP/1.1 413 "));
  // The body came along with the head: no need to ask for it.
  EXPECT_THAT(ask(server.port(), post("/", "x", "Expect: 100-continue\r\n"), "/  x"),
              StartsWith("HTTP/1.1 200 "));
}

TEST(HttpServer, SlowRequestsAndIdleConnectionsAreClosed) {
  ServerThread server(
      echo, {.idle_timeout_ns = 100 * kNanosPerMilli, .request_timeout_ns = 50 * kNanosPerMilli});
  TestSocket idle(TestSocket::connect_to(server.port()));
  TestSocket slow(TestSocket::connect_to(server.port()));
  slow.write("GET / HTTP/1.1\r\nHo");
  EXPECT_THAT(slow.read_all(), StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_TRUE(server.soon([&] { return server.server().open_connections() <= 1; }));
}

// Our client and server on one loop: many connections, many requests, random sizes.
TEST(HttpServer, OurClientAgrees) {
  EventLoop loop;
  auto server = std::move(HttpServer::create(loop, {}, echo)).value();
  const Origin origin = local_origin(server->port());
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> requests;
    for (int i = 0; i < 20; ++i) {
      requests.push_back(format_request("POST", origin, "/p", {},
                                        std::string(static_cast<size_t>(i * i * round), 'a')));
    }
    TestClient client(loop, origin, requests);
    client.run();
    ASSERT_EQ(client.responses.size(), 20U);
    for (size_t i = 0; i < 20; ++i) {
      EXPECT_TRUE(client.responses[i].complete);
      EXPECT_EQ(client.responses[i].body.size(), 9 + i * i * static_cast<size_t>(round));
    }
    EXPECT_EQ(client.last().server, "prony");
  }
}

TEST(HttpDate, Imf) {
  HttpDate date;
  EXPECT_EQ(date.text(784111777LL * kNanosPerSecond), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date.text(784111777LL * kNanosPerSecond + 999), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date.text(784111778LL * kNanosPerSecond), "Sun, 06 Nov 1994 08:49:38 GMT");
}

}  // namespace
}  // namespace prony::net
