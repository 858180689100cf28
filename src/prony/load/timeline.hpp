// Timeline: the life of one request as a state machine, from the first byte sent to the end of its
// stream. It takes what the connection reports (stamps, pieces of body, the end), reads the events
// through a dialect, and fills a RequestRow whose stamps and status follow docs/metrics.md.
//
//   waiting --head 200--> sniffing --"data:"--> streaming --[DONE]--> done
//      |                     |                     |  error event, broken event
//      | head not 200        | no such stream      v
//      v                     v                   failed (closes at once)
//   http error           not a stream
//
// One of on_complete(), on_error(), on_stopped() ends it from any state and fixes the row; after
// the end marker every one of them means success.
// Success: HTTP 200, a stream of events, at least one token, the end marker ([DONE], a
// finish_reason that is not an abort, or what the dialect has in their place), no error event.
// Thread safety: none; lives on one event loop. Steady state allocates nothing: buffers keep their
// size, and room for the events is made when the request begins.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "prony/load/dialect.hpp"
#include "prony/load/meters.hpp"
#include "prony/load/token_count.hpp"
#include "prony/net/http_client.hpp"
#include "prony/net/line_framer.hpp"
#include "prony/net/sse.hpp"
#include "prony/record/request_row.hpp"

namespace prony::load {

/// The four bounds on a request [ns]. Whatever a server does, one of them ends it.
struct Timeouts {
  core::Nanos connect_ns = 10 * core::kNanosPerSecond;
  core::Nanos first_token_ns = 600 * core::kNanosPerSecond;  // from the send
  core::Nanos stall_ns = 120 * core::kNanosPerSecond;        // silence after the first token
  core::Nanos total_ns = 3600 * core::kNanosPerSecond;       // from the send
};

class Timeline final : private net::SseFramer::Sink {
 public:
  struct Options {
    bool keep_text = false;  // --save-text
    /// A larger event ends the stream as broken: no model writes it, and memory has an end.
    size_t event_limit_bytes = size_t{64} << 20;
  };

  /// `parser` and `meters` belong to the loop and are shared by its timelines.
  Timeline(EventParser& parser, LoopMeters& meters, const Options& options);

  /// A new request; `row` brings index, id, t_intended_ns and what was asked.
  void begin(record::RequestRow row);
  /// The same request on another connection, because the first died before a byte came back.
  void begin_again();

  /// The connection was opened for this request: its handshake.
  void on_connected(core::Nanos t_begin_ns, core::Nanos t_ready_ns) {
    row_.t_connect_begin_ns = t_begin_ns;
    row_.t_connect_ns = t_ready_ns;
  }
  /// The send begins. A server that answers before it has read a long request leaves no better
  /// stamp of it, because on_sent() never comes.
  void on_sending(core::Nanos now_ns) { row_.t_send_ns = now_ns; }
  void on_sent(core::Nanos t_send_ns, core::Nanos t_sent_ns);
  /// The HTTP message that was sent, before on_head(); only where the parser's form echoes_prompt.
  void on_request(std::string_view message) { parser_.on_request(message, memory_); }
  void on_head(const net::ResponseHead& head, const net::ReceiveStamp& stamp);
  void on_body(std::string_view piece, const net::ReceiveStamp& stamp);

  /// The outcome is fixed and the rest of the stream worthless: close the connection and call
  /// on_stopped().
  bool wants_close() const { return phase_ == Phase::kFailed; }
  bool saw_token() const { return row_.t_first_token_ns.has_value(); }
  /// [DONE] came: only the end of the HTTP body is missing.
  bool saw_done() const { return phase_ == Phase::kDone; }
  /// Last time the server said something that is no comment; 0 before the head. A ping does not
  /// count: proxies send them while the engine hangs.
  core::Nanos last_activity_ns() const { return last_activity_ns_; }
  core::Nanos t_send_ns() const { return row_.t_send_ns.value_or(0); }
  const record::RequestRow& row() const { return row_; }

  /// When the request must end unless something more comes, and as what. Requires a send.
  struct Deadline {
    core::Nanos at_ns = 0;
    record::Status status = record::Status::kTimeoutTotal;
  };
  Deadline deadline(const Timeouts& timeouts) const;

  /// The response is whole.
  void on_complete(const net::ReceiveStamp& stamp);
  /// The connection failed or closed.
  void on_error(const net::NetError& error, const net::ReceiveStamp& stamp);
  /// We end it: a time-out, the user, the end of the run. `status` stands unless the outcome is
  /// already known.
  void on_stopped(record::Status status, std::string_view why, core::Nanos now_ns);
  /// Requires an end (checked).
  record::RequestRow take_row();

 private:
  enum class Phase {
    kIdle,
    kWaiting,
    kHttpError,
    kSniffing,
    kNotStream,
    kStreaming,
    kDone,
    kFailed,
    kEnded
  };

  bool on_event(const net::SseEvent& event) override;
  void on_comment() override { saw_comment_ = true; }
  void on_other_field(std::string_view name, std::string_view value) override;

  core::Nanos arrival(const net::ReceiveStamp& stamp);
  void sniff(std::string_view piece);
  void start_read(const net::ReceiveStamp& stamp);
  void keep_body(std::string_view piece);
  void feed(std::string_view piece);
  bool by_lines() const { return parser_.form().framing == StreamForm::Framing::kLines; }
  void count_merged(int32_t events);
  void finish_framing();
  void on_chunk(const Delta& delta);
  void on_token_event(const Delta& delta, int32_t tokens);
  void fail(record::Status status, std::string_view why);
  /// Fixes the row: what was known already wins, then the end marker, then `status`.
  void end(record::Status status, std::string_view why, core::Nanos t_close_ns);

  EventParser& parser_;
  LoopMeters& meters_;
  Options options_;
  net::SseFramer framer_;
  net::LineFramer lines_;  // used instead where by_lines()
  StreamMemory memory_;
  TokenCount count_;
  Delta delta_;
  record::RequestRow row_;
  std::string body_;  // of an answer that is no stream, its beginning

  Phase phase_ = Phase::kIdle;
  net::ReceiveStamp stamp_;    // of the read being handled
  core::Nanos t_read_ns_ = 0;  // arrival() of that stamp
  core::Nanos t_last_read_ns_ = 0;
  core::Nanos last_activity_ns_ = 0;
  int32_t unmerged_ = 0;  // token events of this read that a later write would merge
  // Token events after which their read went on with the beginning of another event: merged, if
  // that one bears tokens.
  int32_t suspects_ = 0;
  bool suspects_of_this_read_ = false;
  bool sse_content_type_ = false;
  bool json_content_type_ = false;
  bool chunked_ = false, until_close_ = false;
  bool saw_comment_ = false;  // in the piece being handled
  bool saw_event_ = false;    // in the piece being handled
  bool saw_marker_ = false;   // finish_reason, [DONE], or whatever ends the dialect's streams
  bool saw_cut_ = false;      // the last event was not whole
  int64_t data_events_ = 0;
};

}  // namespace prony::load
