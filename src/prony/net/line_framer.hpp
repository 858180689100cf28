// LineFramer: splits a byte stream of JSON lines into events, at any split position. A line ends
// with LF, CR or NUL (older vLLM demo servers), none of which JSON may hold unescaped; empty lines
// are skipped, and so is a BOM at the start; the last line may lack its end. Beside SseFramer, with
// the same Sink. Allocates only while a line spans reads and the buffer grows.
// Source: ndjson (https://github.com/ndjson/ndjson-spec). Thread safety: none; one per stream.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "prony/net/sse.hpp"

namespace prony::net {

class LineFramer {
 public:
  explicit LineFramer(size_t event_limit_bytes = size_t{64} << 20)
      : event_limit_bytes_(event_limit_bytes) {}

  /// As SseFramer::feed().
  bool feed(std::string_view bytes, SseFramer::Sink& sink);
  /// End of input: hands over a line that lacks its end.
  bool finish(SseFramer::Sink& sink);
  void reset();
  bool overflowed() const { return overflowed_; }

 private:
  bool take_line(std::string_view line, bool terminated, SseFramer::Sink& sink);

  size_t event_limit_bytes_;
  std::string line_;  // that began in an earlier feed()
  bool at_start_ = true;
  bool stopped_ = false;
  bool overflowed_ = false;
};

}  // namespace prony::net
