// URLs, request heads, name lookup, and fetch(): what is text or one exchange around the client.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/net/http_client.hpp"
#include "prony/net/test_peer.hpp"

namespace prony::net {
namespace {

using ::testing::HasSubstr;

TEST(ParseUrl, Good) {
  struct Case {
    std::string text;
    bool tls;
    std::string host;
    uint16_t port;
    std::string path;
  };
  for (const Case& c : std::vector<Case>{
           {"http://localhost:8000", false, "localhost", 8000, ""},
           {"http://localhost:8000/", false, "localhost", 8000, ""},
           {"https://api.example.com/v1/", true, "api.example.com", 443, "/v1"},
           {"HTTP://127.0.0.1", false, "127.0.0.1", 80, ""},
           {"http://[::1]:9/a/b//", false, "::1", 9, "/a/b"},
       }) {
    const auto url = parse_url(c.text, "--base-url");
    ASSERT_TRUE(url.ok()) << c.text << ": " << url.error().message;
    EXPECT_EQ(url->origin.tls, c.tls);
    EXPECT_EQ(url->origin.host, c.host);
    EXPECT_EQ(url->origin.port, c.port);
    EXPECT_EQ(url->path, c.path);
  }
}

TEST(ParseUrl, Bad) {
  for (const std::string text :
       {"", "localhost:8000", "ftp://x", "http://", "http://a b", "http://x:0", "http://x:70000",
        "http://x:ab", "http://x:8a", "http://user@x", "http://x/?q=1", "http://x#f", "/v1",
        "http//x"}) {
    const auto url = parse_url(text, "--base-url");
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(url.error().message, ::testing::StartsWith("--base-url: found '" + text + "'"));
    EXPECT_THAT(url.error().message, HasSubstr("expected http://"));
  }
}

TEST(FormatRequest, HeadersAndBody) {
  const Origin origin{.host = "h", .port = 8000};
  EXPECT_EQ(format_request("POST", origin, "/v1/x", {{"X-Request-Id", "7"}}, "{}"),
            "POST /v1/x HTTP/1.1\r\nHost: h:8000\r\nX-Request-Id: 7\r\n"
            "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(format_request("GET", {.tls = true, .host = "::1", .port = 443}, "", {}, ""),
            "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n");
  EXPECT_EQ(format_request("POST", origin, "/", {{"content-type", "t"}, {"A", "b\r\nC: d"}}, "x"),
            "POST / HTTP/1.1\r\nHost: h:8000\r\ncontent-type: t\r\nA: bC: d\r\n"
            "Content-Length: 1\r\n\r\nx");
}

TEST(Resolve, NumericNamedAndUnknown) {
  EXPECT_EQ(resolve({.host = "127.0.0.1", .port = 5}).value()[0].ip, "127.0.0.1");
  EXPECT_EQ(resolve({.host = "::1", .port = 5}).value()[0].port, 5);
  const auto bad = resolve({.host = "no such host", .port = 5});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(bad.error().message, HasSubstr("cannot resolve host 'no such host': "));
}

TEST(Fetch, AnswersRefusalsAndTimeouts) {
  RawServer server(
      [&](TestSocket& socket, int connection) {
        const std::string got = socket.read_until("\r\n\r\n");
        EXPECT_THAT(got, ::testing::StartsWith("GET /health HTTP/1.1\r\n"));
        if (connection == 0) {
          socket.write("HTTP/1.1 503 Busy\r\nX-Prony-Device: d\r\nContent-Length: 2\r\n\r\nno");
        } else {
          socket.read_all();  // never answers
        }
      },
      2);
  const Url url{.origin = local_origin(server.port()), .path = "/health"};
  const auto answer = fetch(url, "GET", "", {}, 5 * core::kNanosPerSecond);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->body, "no");
  EXPECT_EQ(answer->prony_device, "d");
  const auto late = fetch(url, "GET", "", {}, 50 * core::kNanosPerMilli);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, ErrorCode::kEnvironment);
  EXPECT_EQ(late.error().message,
            fmt::format("http://127.0.0.1:{}/health: no answer in time", server.port()));
}

}  // namespace
}  // namespace prony::net
