// HttpConnection against servers made of raw sockets that say exactly what a case needs: every way
// a body may be framed, in every size of piece, and every way a peer may fail.
#include "prony/net/http_client.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>

#include "prony/net/test_peer.hpp"

namespace prony::net {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// One request; the server reads it and sends `answer` in pieces, then closes.
TestClient::Response exchange(const std::string& answer, size_t piece, NetError* error = nullptr) {
  RawServer server([&](TestSocket& socket, int) {
    socket.read_until("\r\n\r\n");
    socket.write_pieces(answer, piece);
  });
  EventLoop loop;
  TestClient client(loop, local_origin(server.port()), {std::string(kGet)});
  client.run();
  EXPECT_FALSE(client.timed_out);
  if (error != nullptr && !client.errors.empty()) *error = client.errors.front();
  return client.last();
}

class Framing : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(PieceSizes, Framing, ::testing::Values(1, 2, 3, 7, 100000));

TEST_P(Framing, ContentLength) {
  const auto r = exchange(
      "HTTP/1.1 200 OK\r\nContent-Type: Application/JSON ; charset=utf-8\r\n"
      "content-length: 11\r\nServer: s/1\r\nx-prony-device: emulated:h100-sxm\r\n\r\nhello world",
      GetParam());
  EXPECT_TRUE(r.complete);
  EXPECT_TRUE(r.reusable);
  EXPECT_EQ(r.status, 200);
  EXPECT_EQ(r.body, "hello world");
  EXPECT_EQ(r.content_type, "application/json");
  EXPECT_EQ(r.server, "s/1");
  EXPECT_EQ(r.prony_device, "emulated:h100-sxm");
  EXPECT_FALSE(r.chunked);
}

TEST_P(Framing, ChunkedWithExtensionsAndTrailers) {
  const auto r = exchange(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Server\r\n\r\n"
      "5;name=value;q=\"a b\"\r\nhello\r\n1\r\n \r\n00005 ; x\r\nworld\r\n"
      "0;last\r\nServer: not-this\r\nContent-Type: nor/this\r\n\r\n",
      GetParam());
  EXPECT_TRUE(r.complete);
  EXPECT_TRUE(r.reusable);
  EXPECT_EQ(r.body, "hello world");
  EXPECT_TRUE(r.chunked);
  EXPECT_EQ(r.server, "");
  EXPECT_EQ(r.content_type, "");
}

TEST_P(Framing, UntilClose) {
  const auto r = exchange("HTTP/1.1 200 OK\r\n\r\nhello world", GetParam());
  EXPECT_TRUE(r.complete);
  EXPECT_FALSE(r.reusable);
  EXPECT_EQ(r.body, "hello world");
}

TEST_P(Framing, NoBody) {
  for (const std::string status : {"204 No Content", "304 Not Modified"}) {
    const auto r = exchange("HTTP/1.1 " + status + "\r\n\r\n", GetParam());
    EXPECT_TRUE(r.complete);
    EXPECT_TRUE(r.reusable);
    EXPECT_EQ(r.body, "");
  }
  EXPECT_TRUE(exchange("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", GetParam()).complete);
}

TEST_P(Framing, InterimAnswersAreSkipped) {
  const auto r = exchange(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nServer: early\r\n\r\n"
      "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno",
      GetParam());
  EXPECT_TRUE(r.complete);
  EXPECT_EQ(r.status, 429);
  EXPECT_EQ(r.retry_after, "7");
  EXPECT_EQ(r.body, "no");
}

TEST_P(Framing, OldServersCloseAndSayNoReason) {
  const auto r = exchange("HTTP/1.0 200\r\nContent-Length: 2\r\n\r\nok", GetParam());
  // A status line without the space before its empty reason is not HTTP; with it, it is.
  const auto good = exchange("HTTP/1.0 200 \r\nContent-Length: 2\r\n\r\nok", GetParam());
  EXPECT_FALSE(r.complete);
  EXPECT_TRUE(good.complete);
  EXPECT_FALSE(good.reusable);
}

TEST_P(Framing, LastChunkAloneAndZerosInTheData) {
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_TRUE(exchange(head + "0\r\n\r\n", GetParam()).complete);
  EXPECT_TRUE(exchange(head + "0\r\nT: 0\r\n\r\n", GetParam()).complete);
  EXPECT_EQ(exchange(head + "3\r\n000\r\n01\r\n0\r\n0\r\n\r\n", GetParam()).body, "0000");
}

TEST(HttpClient, APieceNeverSpansTwoChunks) {
  std::string answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 50; ++i) answer += fmt::format("8\r\nchunk {:02}\r\n", i);
  const auto r = exchange(answer + "0\r\n\r\n", 100000);
  ASSERT_EQ(r.pieces.size(), 50U);
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(r.pieces[i].text, fmt::format("chunk {:02}", i));
}

TEST(HttpClient, LargeBodiesOfEveryKind) {
  std::string body;
  for (int64_t i = 0; body.size() < (5 << 20); ++i) body += std::to_string(i * 7919);
  const std::string size = std::to_string(body.size());
  EXPECT_EQ(
      exchange("HTTP/1.1 200 OK\r\nContent-Length: " + size + "\r\n\r\n" + body, 1 << 20).body,
      body);
  EXPECT_EQ(exchange("HTTP/1.1 200 OK\r\n\r\n" + body, 10001).body, body);
  std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (size_t at = 0; at < body.size(); at += 100000) {
    const std::string part = body.substr(at, 100000);
    chunked += fmt::format("{:X}\r\n{}\r\n", part.size(), part);
  }
  const auto r = exchange(chunked + "0\r\n\r\n", 70001);
  EXPECT_TRUE(r.complete);
  EXPECT_EQ(r.body, body);
}

// ---- failures

struct Failure {
  std::string answer;
  NetErrorKind kind;
  bool started;
  std::string message;
};

TEST(HttpClient, WhatIsNotAWholeResponseIsAnError) {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::vector<Failure> failures = {
      {"", NetErrorKind::kClosed, false, "closed by the peer before it answered"},
      {"HTTP/1.1 200 OK\r\nContent-", NetErrorKind::kClosed, true, "before the response was whole"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", NetErrorKind::kClosed, true, "whole"},
      {chunked, NetErrorKind::kClosed, true, "whole"},
      {chunked + "5\r\nhello\r\n", NetErrorKind::kClosed, true, "whole"},
      {chunked + "5\r\nhello\r\n0\r\n", NetErrorKind::kClosed, true, "whole"},
      {chunked + "5\r\nhelloXX\r\n", NetErrorKind::kProtocol, true, "not http/1.1"},
      {chunked + "zz\r\n", NetErrorKind::kProtocol, true, "not http/1.1"},
      {chunked + "FFFFFFFFFFFFFFFFFFFF\r\n", NetErrorKind::kProtocol, true, "not http/1.1"},
      {"garbage\r\n\r\n", NetErrorKind::kProtocol, true, "not http/1.1"},
      {"HTTP/2.0 200 OK\r\n\r\n", NetErrorKind::kProtocol, true, "not http/1.1"},
      {"HTTP/1.1 101 Switching\r\n\r\n", NetErrorKind::kProtocol, true, "not http/1.1"},
      {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", NetErrorKind::kProtocol, true,
       "Content-Length"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", NetErrorKind::kProtocol, true, "not"},
      {"HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n", NetErrorKind::kProtocol, true, "not http/1.1"},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(70000, 'x'), NetErrorKind::kProtocol, true, "not"},
      {chunked + "1;" + std::string(70000, 'x'), NetErrorKind::kProtocol, true, "not http/1.1"},
      {std::string("\0\x01\x02\x03", 4), NetErrorKind::kProtocol, true, "not http/1.1"},
  };
  for (const Failure& failure : failures) {
    for (const size_t piece : {size_t{1000000}, size_t{1}}) {
      if (piece == 1 && failure.answer.size() > 10000) continue;
      SCOPED_TRACE(::testing::PrintToString(failure.answer.substr(0, 100)));
      NetError error{.message = "none"};
      const auto r = exchange(failure.answer, piece, &error);
      EXPECT_FALSE(r.complete);
      EXPECT_EQ(error.kind, failure.kind) << error.message;
      EXPECT_EQ(error.response_started, failure.started) << error.message;
      EXPECT_THAT(error.message, HasSubstr(failure.message));
      EXPECT_THAT(error.message, Not(HasSubstr("\n")));
    }
  }
}

TEST(HttpClient, HeadersThatTrickleInWithoutEndAreRefused) {
  RawServer server([&](TestSocket& socket, int) {
    socket.read_until("\r\n\r\n");
    socket.write("HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 100000 && socket.write("X-Header: 0123456789012345678901234\r\n"); ++i) {
    }
  });
  EventLoop loop;
  TestClient client(loop, local_origin(server.port()), {std::string(kGet)});
  client.run();
  ASSERT_EQ(client.errors.size(), 1U);
  EXPECT_EQ(client.errors[0].kind, NetErrorKind::kProtocol);
}

TEST(HttpClient, ResetInTheMiddle) {
  RawServer server([&](TestSocket& socket, int) {
    socket.read_until("\r\n\r\n");
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    ::usleep(20'000);
    socket.reset();
  });
  EventLoop loop;
  TestClient client(loop, local_origin(server.port()), {std::string(kGet)});
  client.run();
  EXPECT_EQ(client.last().body, "hello");
  ASSERT_EQ(client.errors.size(), 1U);
  EXPECT_EQ(client.errors[0].kind, NetErrorKind::kClosed);
  EXPECT_TRUE(client.errors[0].response_started);
  EXPECT_THAT(client.errors[0].message, HasSubstr("connection reset by peer"));
}

TEST(HttpClient, RefusedAndUnreachable) {
  uint16_t port = 0;
  {
    port = RawServer([](TestSocket&, int) {}, 0).port();
  }
  EventLoop loop;
  TestClient refused(loop, local_origin(port), {std::string(kGet)});
  refused.run();
  ASSERT_EQ(refused.errors.size(), 1U);
  EXPECT_EQ(refused.errors[0].kind, NetErrorKind::kConnect);
  EXPECT_EQ(refused.errors[0].message, fmt::format("127.0.0.1:{}: connection refused", port));
  EXPECT_FALSE(refused.errors[0].response_started);

  // A failure that the system call reports at once still comes from the loop, not from connect().
  struct Handler final : HttpConnection::Handler {
    void on_connected(core::Nanos) override {}
    void on_sent(core::Nanos, core::Nanos) override {}
    void on_head(const ResponseHead&, const ReceiveStamp&) override {}
    void on_body(std::string_view, const ReceiveStamp&) override {}
    void on_complete(const ReceiveStamp&, bool) override {}
    void on_error(const NetError& error, const ReceiveStamp&) override {
      message = error.message;
      loop->stop();
    }
    EventLoop* loop = nullptr;
    std::string message;
  } handler;
  handler.loop = &loop;
  HttpConnection connection(loop, local_origin(80), {.ip = "not-an-ip", .port = 80}, handler);
  connection.connect();
  EXPECT_EQ(handler.message, "");
  loop.run();
  EXPECT_THAT(handler.message, HasSubstr("not-an-ip:80: not a numeric address"));
}

// ---- keep-alive

TEST(HttpClient, ManyRequestsOnOneConnection) {
  RawServer server([&](TestSocket& socket, int) {
    for (int i = 0; i < 20; ++i) {
      socket.read_until("\r\n\r\n");
      const std::string body(static_cast<size_t>(i), 'b');
      socket.write_pieces(
          i % 2 == 0 ? fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", i, body)
                     : fmt::format("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                   "{:x}\r\n{}\r\n0\r\n\r\n",
                                   i, body),
          i % 3 == 0 ? 1 : 1000);
    }
  });
  EventLoop loop;
  TestClient client(loop, local_origin(server.port()),
                    std::vector<std::string>(20, std::string(kGet)));
  client.run();
  ASSERT_EQ(client.responses.size(), 20U);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(client.responses[i].complete);
    EXPECT_EQ(client.responses[i].body.size(), i);
  }
}

TEST(HttpClient, ConnectionCloseIsNotReusable) {
  RawServer server([&](TestSocket& socket, int) {
    socket.read_until("\r\n\r\n");
    socket.write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    socket.read_all();
  });
  EventLoop loop;
  TestClient client(loop, local_origin(server.port()), {std::string(kGet), std::string(kGet)});
  client.run();
  EXPECT_TRUE(client.last().complete);
  EXPECT_FALSE(client.last().reusable);
  EXPECT_FALSE(client.connection().connected());
}

TEST(HttpClient, BytesBeyondTheResponseMakeItUnusable) {
  const auto r = exchange("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200", 100000);
  EXPECT_TRUE(r.complete);
  EXPECT_FALSE(r.reusable);
}

TEST(HttpClient, IdleCloseIsReported) {
  for (const bool says_why : {false, true}) {
    RawServer server([&](TestSocket& socket, int) {
      socket.read_until("\r\n\r\n");
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      ::usleep(20'000);
      if (says_why) socket.write("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
    });
    EventLoop loop;
    TestClient client(loop, local_origin(server.port()), {std::string(kGet)});
    client.wait_for_idle_close = true;
    client.run();
    EXPECT_TRUE(client.last().reusable);
    EXPECT_EQ(client.idle_closes, 1);
    EXPECT_TRUE(client.errors.empty());
    EXPECT_FALSE(client.connection().connected());
  }
}

// The peer closed the idle connection and the close has reached this host, but the loop has not
// looked: the second request must fail as "nothing came back", so that it may be sent again.
TEST(HttpClient, DeadKeepAliveSocketFailsWithoutAResponseStarted) {
  for (const bool reset : {false, true}) {
    RawServer server([&](TestSocket& socket, int) {
      socket.read_until("\r\n\r\n");
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      socket.read_until("\r\n\r\n");  // the second request arrives, and the server goes
      if (reset) socket.reset();
    });
    EventLoop loop;
    TestClient client(loop, local_origin(server.port()), {std::string(kGet), std::string(kGet)});
    client.run();
    ASSERT_EQ(client.responses.size(), 2U);
    ASSERT_EQ(client.errors.size(), 1U);
    EXPECT_EQ(client.errors[0].kind, NetErrorKind::kClosed);
    EXPECT_FALSE(client.errors[0].response_started);
    EXPECT_THAT(client.errors[0].message, HasSubstr("before it answered"));
  }
}

// ---- sending

TEST(HttpClient, LongRequestIsSentWholeAndStamped) {
  std::string body(8 << 20, 'x');
  std::string got;
  RawServer server([&](TestSocket& socket, int) {
    ::usleep(50'000);  // the kernel's buffer fills
    got = socket.read_until("END");
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  EventLoop loop;
  const Origin origin = local_origin(server.port());
  TestClient client(loop, origin, {format_request("POST", origin, "/", {}, body + "END")});
  const core::Nanos before = core::monotonic_ns();
  client.run();
  server.join();
  EXPECT_TRUE(client.last().complete);
  EXPECT_THAT(got.substr(0, 200), HasSubstr("Content-Length: 8388611\r\n"));
  EXPECT_EQ(got.size(), got.find("\r\n\r\n") + 4 + body.size() + 3);
  EXPECT_GE(client.last().t_send_ns, before);
  EXPECT_GT(client.last().t_sent_ns, client.last().t_send_ns + 20 * core::kNanosPerMilli);
  EXPECT_GE(client.last().head_stamp.kernel_ns, client.last().t_send_ns);
}

TEST(HttpClient, AnswerBeforeTheRequestIsSentIsTaken) {
  std::atomic<bool> answered{false};
  RawServer server([&](TestSocket& socket, int) {
    socket.write("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
    socket.shut_write();
    // Reads nothing; and a close now would be a reset, which takes the answer with it.
    for (int i = 0; i < 20'000 && !answered; ++i) ::usleep(1000);
  });
  EventLoop loop;
  const Origin origin = local_origin(server.port());
  TestClient client(loop, origin,
                    {format_request("POST", origin, "/", {}, std::string(32 << 20, 'x'))});
  client.run();
  answered = true;
  EXPECT_TRUE(client.last().complete);
  EXPECT_EQ(client.last().status, 413);
  EXPECT_EQ(client.last().body, "big");
  EXPECT_FALSE(client.last().reusable);
}

TEST(HttpClient, HandlerMayCloseInTheMiddle) {
  RawServer server([&](TestSocket& socket, int) {
    socket.read_until("\r\n\r\n");
    socket.write(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n1\r\nc\r\n");
    socket.read_all();
  });
  EventLoop loop;
  TestClient client(loop, local_origin(server.port()), {std::string(kGet)});
  client.on_piece = [&](std::string_view) {
    client.connection().close();
    loop.stop();
  };
  client.run();
  EXPECT_EQ(client.last().body, "a");
  EXPECT_FALSE(client.last().complete);
  EXPECT_TRUE(client.errors.empty());
}

// ---- kernel stamps

TEST(HttpClient, KernelStampsArePresentOrderedAndBeforeOurs) {
  constexpr int kPieces = 200;
  std::vector<core::Nanos> written;
  RawServer server([&](TestSocket& socket, int) {
    socket.read_until("\r\n\r\n");
    // The kernel starts to stamp some milliseconds after the first socket asks for it.
    ::usleep(100'000);
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < kPieces; ++i) {
      ::usleep(500);
      written.push_back(core::monotonic_ns());
      socket.write("1\r\nx\r\n");
    }
    socket.write("0\r\n\r\n");
  });
  EventLoop loop;
  TestClient client(loop, local_origin(server.port()), {std::string(kGet)});
  client.run();
  server.join();
  const auto& r = client.last();
  ASSERT_EQ(r.pieces.size(), static_cast<size_t>(kPieces));
  core::Nanos previous = 0;
  std::vector<double> lag_us, error_us;
  for (size_t i = 0; i < r.pieces.size(); ++i) {
    const ReceiveStamp& stamp = r.pieces[i].stamp;
    EXPECT_TRUE(stamp.from_kernel);
    EXPECT_LE(stamp.kernel_ns, stamp.user_ns);
    EXPECT_GE(stamp.kernel_ns, previous - 200);  // each conversion is good to tens of ns
    EXPECT_GE(stamp.kernel_ns, written[i] - 200);
    previous = stamp.kernel_ns;
    lag_us.push_back(static_cast<double>(stamp.user_ns - stamp.kernel_ns) / 1e3);
    error_us.push_back(static_cast<double>(stamp.kernel_ns - written[i]) / 1e3);
  }
  std::sort(lag_us.begin(), lag_us.end());
  std::sort(error_us.begin(), error_us.end());
  printf(
      "write to kernel stamp: p50 %.1f us, p99 %.1f us; kernel to user stamp: p50 %.1f us, "
      "p99 %.1f us (%d writes)\n",
      error_us[kPieces / 2], error_us[kPieces * 99 / 100], lag_us[kPieces / 2],
      lag_us[kPieces * 99 / 100], kPieces);
  EXPECT_LT(error_us[kPieces / 2], 1000);
}

}  // namespace
}  // namespace prony::net
