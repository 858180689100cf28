// SseFramer: splits a byte stream into server-sent events, at any split position. Lines end with
// LF, CRLF or CR; nothing else ends a line (U+2028, U+0085, VT and FF do not). `data:` with or
// without one space, several data lines join with LF, comments and id/retry lines are skipped, a
// BOM at the start is skipped, the last event may lack its empty line. No limit on the size of an
// event but `event_limit_bytes`. Allocates only while an event spans reads and the buffer grows.
// Source: WHATWG HTML, section 9.2.6. Thread safety: none; one per stream.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace prony::net {

struct SseEvent {
  std::string_view data;   // joined data lines; valid during the call
  std::string_view event;  // value of the `event:` field; empty if none
  bool terminated = true;  // false: the input ended before the empty line, so data may be cut
};

class SseFramer {
 public:
  /// What feed() calls per event: return false to stop reading.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual bool on_event(const SseEvent& event) = 0;
    /// A comment line (keep-alive pings).
    virtual void on_comment() {}
    /// A line whose field is none of data, event, id, retry. WHATWG ignores it; old llama.cpp
    /// servers report errors that way (`error: {json}`). Called when the line is whole.
    virtual void on_other_field(std::string_view /*name*/, std::string_view /*value*/) {}
  };

  explicit SseFramer(size_t event_limit_bytes = size_t{64} << 20)
      : event_limit_bytes_(event_limit_bytes) {}

  /// False: the sink stopped, or an event passed the limit (overflowed()); from then on every call
  /// is false until reset(). The sink must not call the framer.
  bool feed(std::string_view bytes, Sink& sink);
  /// End of input: hands over an event that lacks its empty line.
  bool finish(Sink& sink);
  void reset();
  bool overflowed() const { return overflowed_; }

 private:
  bool take_line(std::string_view line, Sink& sink);
  bool take_data(std::string_view value);
  bool dispatch(Sink& sink, bool terminated);
  bool overflow();
  void own_event();

  size_t event_limit_bytes_;
  std::string line_;       // a line that began in an earlier feed()
  std::string joined_;     // data that is not one slice of the current input
  std::string type_;       // value of `event:`
  std::string_view data_;  // the event so far: a slice of the input or of joined_
  bool has_data_ = false;
  bool at_start_ = true;   // no line seen yet: a BOM may come
  bool after_cr_ = false;  // the last line ended with CR: an LF belongs to it
  bool stopped_ = false;
  bool overflowed_ = false;
};

}  // namespace prony::net
