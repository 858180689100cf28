// libFuzzer target: the parsers of HTTP responses and requests on any bytes at any cut. A message
// that is whole and good in one piece must be the same message in small pieces, and one that is bad
// must not become good. The first byte is the piece size, the lowest bit of it the parser.
// Run: ./run fuzz
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "prony/net/http_parser.hpp"

namespace {

using namespace prony::net;

/// A heap block of the exact size, so that AddressSanitizer sees a byte too many.
std::vector<char> copy_of(std::string_view text) {
  return {text.begin(), text.end()};
}

class Sink final : public ResponseParser::Sink {
 public:
  void on_head(const ResponseHead& head) override {
    seen = std::to_string(head.status) + "|" + std::string(head.content_type) + "|" +
           std::string(head.server) + (head.chunked ? "|chunked|" : "|");
  }
  void on_body(std::string_view piece) override { seen += piece; }
  std::string seen;
};

ResponseParser::Status respond(std::string_view text, size_t piece, std::string& seen) {
  Sink sink;
  ResponseParser parser(sink);
  auto status = ResponseParser::Status::kMore;
  while (!text.empty() && status == ResponseParser::Status::kMore) {
    const auto part = copy_of(text.substr(0, piece));
    status = parser.feed({part.data(), part.size()});
    text.remove_prefix(part.size());
  }
  if (status == ResponseParser::Status::kMore) status = parser.finish();
  seen = sink.seen;
  return status;
}

RequestParser::Status request(std::string_view text, size_t piece, std::string& seen) {
  RequestParser parser({.body_bytes = 300});  // near the header limit the cut matters
  auto status = RequestParser::Status::kMore;
  std::string pending;
  while (!text.empty() && status == RequestParser::Status::kMore) {
    pending += text.substr(0, piece);
    text.remove_prefix(std::min(piece, text.size()));
    const auto part = copy_of(pending);
    pending.erase(0, parser.feed({part.data(), part.size()}, status));
  }
  if (status == RequestParser::Status::kDone) {
    const HttpRequest& got = parser.request();
    seen = got.method + " " + got.path + "?" + got.query + "|" + got.body;
    for (const auto& [name, value] : got.headers) seen += "|" + name + ":" + value;
  }
  return status;
}

template <class Parse, class Status>
void compare(Parse parse, std::string_view text, size_t piece, Status done) {
  std::string whole, cut;
  const Status expected = parse(text, text.size() + 1, whole);
  const Status got = parse(text, piece, cut);
  if ((expected == done) != (got == done)) std::abort();
  if (expected == done && whole != cut) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const size_t piece = 1 + (data[0] >> 1) % 32;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1) != 0) {
    compare(respond, text, piece, ResponseParser::Status::kDone);
  } else {
    compare(request, text, piece, RequestParser::Status::kDone);
  }
  return 0;
}
