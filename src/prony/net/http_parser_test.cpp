// ResponseParser and RequestParser without sockets: the fuzz corpus at every piece size (a good
// message is the same message however it is cut, a bad one never becomes good), and stopping.
#include "prony/net/http_parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "prony/core/file.hpp"

namespace prony::net {
namespace {

class Sink final : public ResponseParser::Sink {
 public:
  void on_head(const ResponseHead& head) override {
    seen += std::to_string(head.status) + "|" + std::string(head.content_type) + "|";
  }
  void on_body(std::string_view piece) override {
    seen += piece;
    if (stop_at_body != nullptr) stop_at_body->stop();
  }
  std::string seen;
  ResponseParser* stop_at_body = nullptr;
};

struct Parsed {
  bool good = false;
  std::string seen;
};

Parsed respond(std::string_view text, size_t piece) {
  Sink sink;
  ResponseParser parser(sink);
  auto status = ResponseParser::Status::kMore;
  while (!text.empty() && status == ResponseParser::Status::kMore) {
    status = parser.feed(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
  if (status == ResponseParser::Status::kMore) status = parser.finish();
  if (status == ResponseParser::Status::kBad) {
    EXPECT_FALSE(parser.error().empty());
  }
  return {status == ResponseParser::Status::kDone, sink.seen};
}

Parsed request(std::string_view text, size_t piece) {
  RequestParser parser({});
  auto status = RequestParser::Status::kMore;
  std::string pending;
  while (!text.empty() && status == RequestParser::Status::kMore) {
    pending += text.substr(0, piece);
    text.remove_prefix(std::min(piece, text.size()));
    pending.erase(0, parser.feed(pending, status));
  }
  const HttpRequest& got = parser.request();
  return {status == RequestParser::Status::kDone,
          got.method + " " + got.path + "?" + got.query + " " + got.body};
}

TEST(HttpFuzzCorpus, CutsDoNotMatter) {
  int good = 0, files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(PRONY_SOURCE_DIR) + "/tests/fuzz/http")) {
    SCOPED_TRACE(entry.path().filename().string());
    const std::string input = core::read_file(entry.path().string()).value();
    const std::string_view text = std::string_view(input).substr(1);  // the first byte is options
    ++files;
    for (auto* parse : {respond, request}) {
      const Parsed whole = parse(text, text.size() + 1);
      good += whole.good;
      for (size_t piece = 1; piece < 20; ++piece) {
        const Parsed cut = parse(text, piece);
        ASSERT_EQ(cut.good, whole.good) << piece;
        if (whole.good) {
          ASSERT_EQ(cut.seen, whole.seen) << piece;
        }
      }
    }
  }
  EXPECT_GE(files, 15);
  EXPECT_GE(good, 10);
}

TEST(ResponseParser, StopsWithinTheSink) {
  const std::string text =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n";
  for (const size_t piece : {text.size(), size_t{1}}) {
    Sink sink;
    ResponseParser parser(sink);
    sink.stop_at_body = &parser;
    for (size_t at = 0; at < text.size() && sink.seen != "200||a"; at += piece) {
      parser.feed(std::string_view(text).substr(at, piece));
    }
    EXPECT_EQ(sink.seen, "200||a");
    parser.reset();
    sink.stop_at_body = nullptr;
    EXPECT_EQ(parser.feed("HTTP/1.1 204 \r\n\r\n"), ResponseParser::Status::kDone);
    EXPECT_TRUE(parser.reusable());
  }
}

TEST(RequestParser, LeavesTheNextRequestAlone) {
  RequestParser parser({});
  auto status = RequestParser::Status::kMore;
  const std::string_view two = "\r\nGET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n";
  const size_t used = parser.feed(two, status);
  EXPECT_EQ(status, RequestParser::Status::kDone);
  EXPECT_EQ(parser.request().path, "/1");
  parser.reset();
  EXPECT_FALSE(parser.started());
  EXPECT_EQ(used + parser.feed(two.substr(used), status), two.size());
  EXPECT_EQ(parser.request().path, "/2");
}

}  // namespace
}  // namespace prony::net
