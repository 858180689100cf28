#include "prony/net/line_framer.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace prony::net {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kEnds{"\n\r\0", 3};
// A buffer that one huge line grew is given back at reset() above this.
constexpr size_t kKeptBytes = 16 << 10;

// Where the next line end lies. The next of each kind is remembered, so that a stream that uses one
// kind is not searched again and again for the others.
class Ends {
 public:
  explicit Ends(std::string_view bytes) : bytes_(bytes) { next_.fill(kUnknown); }
  size_t from(size_t at) {
    size_t nearest = bytes_.size();
    for (size_t kind = 0; kind < kEnds.size(); ++kind) {
      if (next_[kind] == kUnknown || next_[kind] < at) {
        const void* hit = std::memchr(bytes_.data() + at, kEnds[kind], bytes_.size() - at);
        next_[kind] = hit == nullptr
                          ? bytes_.size()
                          : static_cast<size_t>(static_cast<const char*>(hit) - bytes_.data());
      }
      nearest = std::min(nearest, next_[kind]);
    }
    return nearest;
  }

 private:
  static constexpr size_t kUnknown = static_cast<size_t>(-1);
  std::string_view bytes_;
  std::array<size_t, kEnds.size()> next_;
};

}  // namespace

bool LineFramer::feed(std::string_view bytes, SseFramer::Sink& sink) {
  if (stopped_ || overflowed_) return false;
  Ends ends(bytes);
  size_t at = 0;
  while (at < bytes.size()) {
    const size_t end = ends.from(at);
    if (end == bytes.size()) break;
    const auto part = bytes.substr(at, end - at);
    at = end + 1;
    if (line_.empty()) {
      if (!take_line(part, true, sink)) return false;
    } else {
      line_ += part;
      const bool going_on = take_line(line_, true, sink);
      line_.clear();
      if (!going_on) return false;
    }
  }
  if (at < bytes.size()) line_ += bytes.substr(at);
  overflowed_ = line_.size() > event_limit_bytes_;
  return !overflowed_;
}

bool LineFramer::finish(SseFramer::Sink& sink) {
  if (stopped_ || overflowed_) return false;
  const bool going_on = take_line(line_, false, sink);
  line_.clear();
  return going_on;
}

void LineFramer::reset() {
  line_.clear();
  if (line_.capacity() > kKeptBytes) line_.shrink_to_fit();
  at_start_ = true;
  stopped_ = overflowed_ = false;
}

bool LineFramer::take_line(std::string_view line, bool terminated, SseFramer::Sink& sink) {
  if (at_start_ && !line.empty()) {
    at_start_ = false;
    if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  }
  if (line.empty()) return true;
  if (line.size() > event_limit_bytes_) {
    overflowed_ = true;
    return false;
  }
  stopped_ = !sink.on_event({.data = line, .event = {}, .terminated = terminated});
  return !stopped_;
}

}  // namespace prony::net
