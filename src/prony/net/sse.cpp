#include "prony/net/sse.hpp"

#include <algorithm>
#include <cstring>

namespace prony::net {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
// Buffers that one huge event grew are given back at reset() above this.
constexpr size_t kKeptBytes = 16 << 10;

size_t find(std::string_view text, char what, size_t from) {
  const void* hit = std::memchr(text.data() + from, what, text.size() - from);
  return hit == nullptr ? text.size()
                        : static_cast<size_t>(static_cast<const char*>(hit) - text.data());
}

void clear(std::string& text) {
  text.clear();
  if (text.capacity() > kKeptBytes) text.shrink_to_fit();
}

}  // namespace

// Two memchr passes over each line cost less than one loop that looks for both ends. The next LF is
// remembered, so that a stream that ends its lines with CR alone is not searched again and again.
bool SseFramer::feed(std::string_view bytes, Sink& sink) {
  if (stopped_ || overflowed_) return false;
  size_t at = 0;
  size_t next_lf = 0;
  bool lf_known = false;
  while (at < bytes.size()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes[at] == '\n') {
        ++at;
        continue;
      }
    }
    if (!lf_known || next_lf < at) {
      next_lf = find(bytes, '\n', at);
      lf_known = true;
    }
    const size_t end = at + find(bytes.substr(at, next_lf - at), '\r', 0);
    if (end == bytes.size()) break;
    const std::string_view part = bytes.substr(at, end - at);
    after_cr_ = bytes[end] == '\r';
    at = end + 1;
    if (line_.empty()) {
      if (!take_line(part, sink)) return false;
    } else {
      line_ += part;
      const bool going_on = take_line(line_, sink);
      own_event();  // its data may be a slice of line_
      line_.clear();
      if (!going_on) return false;
    }
  }
  own_event();
  if (at < bytes.size()) line_ += bytes.substr(at);
  return line_.size() + joined_.size() <= event_limit_bytes_ || overflow();
}

bool SseFramer::finish(Sink& sink) {
  if (stopped_ || overflowed_) return false;
  if (!line_.empty()) {
    const bool going_on = take_line(line_, sink);
    own_event();
    line_.clear();
    if (!going_on) return false;
  }
  return !has_data_ || dispatch(sink, false);
}

void SseFramer::reset() {
  clear(line_);
  clear(joined_);
  clear(type_);
  data_ = {};
  has_data_ = after_cr_ = stopped_ = overflowed_ = false;
  at_start_ = true;
}

bool SseFramer::take_line(std::string_view line, Sink& sink) {
  if (at_start_) {
    at_start_ = false;
    if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  }
  if (line.empty()) {
    if (has_data_) return dispatch(sink, true);
    type_.clear();
    return true;
  }
  if (line.front() == ':') {
    sink.on_comment();
    return true;
  }
  const size_t colon = find(line, ':', 0);
  const std::string_view name = line.substr(0, colon);
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "data") return take_data(value);
  if (name == "event") {
    type_ = value;
  } else if (name != "id" && name != "retry") {
    sink.on_other_field(name, value);
  }
  return true;
}

bool SseFramer::take_data(std::string_view value) {
  if (!has_data_) {
    has_data_ = true;
    data_ = value;
    return value.size() <= event_limit_bytes_ || overflow();
  }
  own_event();
  joined_ += '\n';
  joined_ += value;
  data_ = joined_;
  return joined_.size() <= event_limit_bytes_ || overflow();
}

bool SseFramer::dispatch(Sink& sink, bool terminated) {
  const SseEvent event{.data = data_, .event = type_, .terminated = terminated};
  const bool going_on = sink.on_event(event);
  has_data_ = false;
  data_ = {};
  joined_.clear();
  type_.clear();
  stopped_ = !going_on;
  return going_on;
}

/// The event's data outlives the buffer that it is a slice of.
void SseFramer::own_event() {
  if (!has_data_ || data_.data() == joined_.data()) return;
  joined_.assign(data_);
  data_ = joined_;
}

bool SseFramer::overflow() {
  overflowed_ = true;
  return false;
}

}  // namespace prony::net
