// Test helper: what must hold for any bytes as JSON lines: the fuzzer's property, also run over its
// corpus by line_framer_test. Thread safety: pure function.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/net/line_framer.hpp"

namespace prony::net {

class LineRecorder final : public SseFramer::Sink {
 public:
  bool on_event(const SseEvent& event) override {
    seen += event.terminated ? 'e' : 'c';
    seen += std::to_string(event.data.size()) + ":";
    seen += event.data;
    return true;
  }
  std::string seen;
};

inline std::string lines_in_pieces(std::string_view text, size_t piece) {
  LineFramer framer(1 << 20);
  LineRecorder sink;
  while (!text.empty()) {
    // A heap block of the exact size: AddressSanitizer sees a byte too many, and a view kept.
    const auto part = text.substr(0, piece);
    const std::vector<char> copy(part.begin(), part.end());
    PRONY_CHECK(framer.feed({copy.data(), copy.size()}, sink));
    text.remove_prefix(part.size());
  }
  PRONY_CHECK(framer.finish(sink));
  return sink.seen;
}

/// The first byte is the piece size.
inline void check_any_lines(std::string_view input) {
  if (input.empty()) return;
  const size_t piece = 1 + static_cast<uint8_t>(input[0]) % 64;
  const auto text = input.substr(1);
  const auto whole = lines_in_pieces(text, text.size() + 1);
  PRONY_CHECK(lines_in_pieces(text, piece) == whole, "cut into pieces");
  PRONY_CHECK(lines_in_pieces(text, 1) == whole, "byte by byte");
}

}  // namespace prony::net
