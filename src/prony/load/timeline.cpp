#include "prony/load/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "prony/core/check.hpp"

namespace prony::load {
namespace {

using record::Status;

constexpr size_t kBodyKept = 4096;  // of an answer that is no stream, for its error message
constexpr int32_t kEventsReserved = 1 << 16;
/// After [DONE] only the end of the HTTP body is missing, which servers send with it.
constexpr core::Nanos kLinger = core::kNanosPerSecond;

bool is_abort(std::string_view finish_reason) {
  return finish_reason == "abort" || finish_reason == "error" || finish_reason == "cancelled" ||
         finish_reason == "failed";
}

bool same_read(const net::ReceiveStamp& a, const net::ReceiveStamp& b) {
  return a.user_ns == b.user_ns && a.kernel_ns == b.kernel_ns;
}

}  // namespace

Timeline::Timeline(EventParser& parser, LoopMeters& meters, const Options& options)
    : parser_(parser),
      meters_(meters),
      options_(options),
      framer_(options.event_limit_bytes),
      lines_(options.event_limit_bytes) {}

void Timeline::begin(record::RequestRow row) {
  row_ = std::move(row);
  // At most one event a token, and a few more for servers that exceed what was asked.
  const auto room = std::clamp(row_.output_tokens_asked + 8, 16, kEventsReserved);
  row_.events.reserve(static_cast<size_t>(room));
  begin_again();
}

void Timeline::begin_again() {
  if (phase_ != Phase::kIdle) ++row_.retries;
  framer_.reset();
  lines_.reset();
  memory_ = {};
  count_.reset();
  body_.clear();
  phase_ = Phase::kWaiting;
  stamp_ = {};
  t_last_read_ns_ = last_activity_ns_ = 0;
  unmerged_ = suspects_ = 0;
  suspects_of_this_read_ = false;
  sse_content_type_ = json_content_type_ = false;
  chunked_ = until_close_ = saw_marker_ = saw_cut_ = false;
  data_events_ = 0;
  row_.t_connect_begin_ns.reset();
  row_.t_connect_ns.reset();
  row_.t_send_ns.reset();
  row_.t_sent_ns.reset();
}

void Timeline::on_sent(core::Nanos t_send_ns, core::Nanos t_sent_ns) {
  row_.t_send_ns = t_send_ns;
  row_.t_sent_ns = t_sent_ns;
}

// The kernel's stamp, unless it cannot be true: the wall clock, from which it was converted, may
// have been stepped.
core::Nanos Timeline::arrival(const net::ReceiveStamp& stamp) {
  if (!stamp.from_kernel) return stamp.user_ns;
  const core::Nanos earliest = std::max(t_last_read_ns_, row_.t_send_ns.value_or(0));
  if (stamp.kernel_ns >= earliest && stamp.kernel_ns <= stamp.user_ns) return stamp.kernel_ns;
  ++meters_.stamp_faults;
  return std::max(stamp.user_ns, earliest);
}

void Timeline::start_read(const net::ReceiveStamp& stamp) {
  if (same_read(stamp, stamp_) && t_last_read_ns_ != 0) return;
  stamp_ = stamp;
  t_read_ns_ = t_last_read_ns_ = arrival(stamp);
  unmerged_ = 0;
  suspects_of_this_read_ = false;
}

void Timeline::on_head(const net::ResponseHead& head, const net::ReceiveStamp& stamp) {
  if (phase_ != Phase::kWaiting) return;
  start_read(stamp);
  row_.t_headers_ns = t_read_ns_;
  row_.http_status = head.status;
  last_activity_ns_ = stamp.user_ns;
  chunked_ = head.chunked;
  until_close_ = head.until_close;
  json_content_type_ = head.content_type == "application/json";
  sse_content_type_ = head.content_type == "text/event-stream" || head.content_type.empty();
  phase_ = head.status == 200 ? Phase::kSniffing : Phase::kHttpError;
}

void Timeline::on_body(std::string_view piece, const net::ReceiveStamp& stamp) {
  if (piece.empty()) return;
  start_read(stamp);
  saw_comment_ = saw_event_ = false;
  if (phase_ == Phase::kSniffing) sniff(piece);
  if (phase_ == Phase::kHttpError || phase_ == Phase::kNotStream) {
    keep_body(piece);
  } else if (phase_ == Phase::kSniffing || phase_ == Phase::kStreaming) {
    feed(piece);
  }
  if (saw_event_ || !saw_comment_) last_activity_ns_ = stamp.user_ns;
}

// The body says what it is, whatever the content type claims: gateways mislabel both ways. Only a
// stream of JSON lines looks like a JSON document: one that was whole before its head was sent, so
// that its length is known, and is called a document is none.
void Timeline::sniff(std::string_view piece) {
  const auto first = piece.find_first_not_of("\xEF\xBB\xBF \t\r\n");
  if (first == std::string_view::npos) return;
  const char c = piece[first];
  bool is_stream = c != '{' && c != '[' && c != '<';
  if (by_lines()) is_stream = c == '{' && (chunked_ || until_close_ || !json_content_type_);
  phase_ = is_stream ? Phase::kStreaming : Phase::kNotStream;
}

void Timeline::keep_body(std::string_view piece) {
  body_.append(piece.substr(0, kBodyKept - std::min(kBodyKept, body_.size())));
}

void Timeline::feed(std::string_view piece) {
  const int32_t earlier = unmerged_;
  if (by_lines()) {
    lines_.feed(piece, *this);
  } else {
    framer_.feed(piece, *this);
  }
  if (framer_.overflowed() || lines_.overflowed())
    fail(Status::kParse, "an event is larger than its limit");
  // Events of one chunk were one write of the server: their common stamp is exact. An event of an
  // earlier write of this read has lost its own.
  const bool fresh = unmerged_ > earlier;
  if (chunked_ && fresh && earlier > 0) {
    count_merged(earlier);
    unmerged_ -= earlier;
  }
  const char last = piece.back();
  const bool in_a_line = last != '\n' && last != '\r' && !(by_lines() && last == '\0');
  if (in_a_line && unmerged_ > 0 && !(chunked_ && fresh)) {
    suspects_ = unmerged_;
    suspects_of_this_read_ = true;
  }
}

void Timeline::count_merged(int32_t events) {
  row_.merged_events += events;
  meters_.merged_events += events;
}

bool Timeline::on_event(const net::SseEvent& event) {
  if (phase_ == Phase::kDone) return true;  // whatever follows the end marker
  if (phase_ == Phase::kFailed) return false;
  saw_event_ = true;
  parser_.parse(event.data, event.event, memory_, delta_);
  if (!event.terminated && delta_.kind == Delta::Kind::kBroken) {  // cut, not broken
    saw_cut_ = true;
    return false;
  }
  ++data_events_;
  if (!row_.t_first_event_ns) row_.t_first_event_ns = t_read_ns_;
  switch (delta_.kind) {
    case Delta::Kind::kChunk:
      on_chunk(delta_);
      break;
    case Delta::Kind::kDone:
      saw_marker_ = true;
      row_.t_done_ns = t_read_ns_;
      phase_ = Phase::kDone;
      break;
    case Delta::Kind::kError:
      fail(Status::kStreamError,
           delta_.error_code == 0
               ? fmt::format("error event: {}", delta_.message)
               : fmt::format("error event: {} (code {})", delta_.message, delta_.error_code));
      break;
    case Delta::Kind::kBroken:
      fail(Status::kParse, fmt::format("event {}: {}, found '{}'", data_events_, delta_.message,
                                       one_line(event.data, 120)));
      break;
  }
  return phase_ != Phase::kFailed;
}

// Old llama.cpp servers report a fault as a line `error: {json}`.
void Timeline::on_other_field(std::string_view name, std::string_view value) {
  if (name != "error" || phase_ == Phase::kDone || phase_ == Phase::kFailed) return;
  saw_event_ = true;
  fail(Status::kStreamError, fmt::format("error line: {}", error_text(value)));
}

void Timeline::on_chunk(const Delta& delta) {
  const int32_t tokens = count_.on_chunk(delta);
  if (delta.bears_tokens()) on_token_event(delta, tokens);
  suspects_ = 0;
  if (delta.finish_reason.empty() && !delta.ended) return;
  row_.finish_reason = one_line(delta.finish_reason, 64);
  if (is_abort(delta.finish_reason)) {
    fail(Status::kStreamError, fmt::format("finish_reason '{}'", row_.finish_reason));
    return;
  }
  saw_marker_ = true;
  if (!row_.t_done_ns) row_.t_done_ns = t_read_ns_;  // [DONE], if it comes, is later and wins
}

void Timeline::on_token_event(const Delta& delta, int32_t tokens) {
  if (!row_.t_first_token_ns) {
    row_.t_first_token_ns = t_read_ns_;
    row_.first_event_tokens = tokens;
    meters_.live.ttft.add(t_read_ns_ - t_send_ns());
  }
  if (!row_.t_first_output_ns && (!delta.text.empty() || !delta.tool_calls.empty())) {
    row_.t_first_output_ns = t_read_ns_;
  }
  row_.t_last_token_ns = t_read_ns_;
  row_.events.push_back({t_read_ns_, stamp_.user_ns, tokens});

  if (suspects_ > 0) {
    count_merged(suspects_);
    if (suspects_of_this_read_) unmerged_ -= suspects_;
  }
  if (!chunked_) {  // no chunks to tell writes apart: every event but the last of a read is merged
    count_merged(unmerged_);
    unmerged_ = 0;
  }
  ++unmerged_;
  ++meters_.token_events;
  LiveCounters::bump(meters_.live.tokens, std::max(tokens, 1));
  if (stamp_.from_kernel) {
    const core::Nanos lag = std::max<core::Nanos>(stamp_.user_ns - t_read_ns_, 0);
    row_.read_lag_max_ns = std::max(row_.read_lag_max_ns.value_or(0), lag);
    meters_.read_lag_ns.record(static_cast<uint64_t>(lag));
  } else {
    ++meters_.unstamped_events;
  }
  if (options_.keep_text) {
    row_.text.append(delta.text);
    row_.reasoning.append(delta.reasoning);
    row_.tool_calls.append(delta.tool_calls);
  }
}

void Timeline::fail(Status status, std::string_view why) {
  phase_ = Phase::kFailed;
  row_.status = status;
  row_.error = why;
}

void Timeline::finish_framing() {
  if (phase_ != Phase::kStreaming) return;
  if (by_lines()) {
    lines_.finish(*this);
  } else {
    framer_.finish(*this);
  }
}

Timeline::Deadline Timeline::deadline(const Timeouts& timeouts) const {
  const core::Nanos sent = t_send_ns();
  Deadline soonest{sent + timeouts.total_ns, Status::kTimeoutTotal};
  const auto consider = [&soonest](core::Nanos at_ns, Status status) {
    if (at_ns < soonest.at_ns) soonest = {at_ns, status};
  };
  switch (phase_) {
    case Phase::kDone:
      consider(last_activity_ns_ + kLinger, Status::kTimeoutStall);
      break;
    case Phase::kHttpError:
    case Phase::kNotStream:
      consider(last_activity_ns_ + timeouts.stall_ns, Status::kTimeoutStall);
      break;
    default:
      if (saw_token() || saw_marker_) {
        consider(last_activity_ns_ + timeouts.stall_ns, Status::kTimeoutStall);
      } else {
        consider(sent + timeouts.first_token_ns, Status::kTimeoutTtft);
      }
  }
  return soonest;
}

void Timeline::on_complete(const net::ReceiveStamp& stamp) {
  start_read(stamp);
  finish_framing();
  if (parser_.form().ends_with_body && phase_ == Phase::kStreaming && data_events_ > 0 &&
      !until_close_ && !saw_cut_) {
    saw_marker_ = true;
    row_.t_done_ns = t_read_ns_;
  }
  const bool nothing =
      phase_ == Phase::kSniffing || (phase_ == Phase::kStreaming && data_events_ == 0);
  if (nothing && sse_content_type_) {
    end(Status::kEmpty, "the stream holds no event", t_read_ns_);
  } else if (phase_ == Phase::kSniffing || nothing) {
    end(Status::kNotStream, "the answer is empty, expected an event stream", t_read_ns_);
  } else {
    end(Status::kTruncated,
        parser_.form().ends_with_body ? "the stream was cut"
                                      : "the stream ended without its end marker",
        t_read_ns_);
  }
}

void Timeline::on_error(const net::NetError& error, const net::ReceiveStamp& stamp) {
  if (row_.t_send_ns) start_read(stamp);
  finish_framing();
  const core::Nanos now = stamp.user_ns;
  switch (error.kind) {
    case net::NetErrorKind::kConnect:
      end(Status::kConnect, error.message, now);
      break;
    case net::NetErrorKind::kProtocol:
      end(Status::kParse, error.message, now);
      break;
    case net::NetErrorKind::kClosed:
      end(Status::kTruncated, error.message, now);
      break;
  }
}

void Timeline::on_stopped(Status status, std::string_view why, core::Nanos now_ns) {
  end(status, why, now_ns);
}

void Timeline::end(Status status, std::string_view why, core::Nanos t_close_ns) {
  PRONY_CHECK(phase_ != Phase::kIdle && phase_ != Phase::kEnded, "a request in flight");
  const Phase last = std::exchange(phase_, Phase::kEnded);
  row_.t_close_ns = std::max(t_close_ns, t_last_read_ns_);

  const auto total = count_.finish(saw_marker_ && last != Phase::kFailed, row_.events);
  row_.output_tokens = total.tokens;
  row_.token_source = total.source;
  row_.tokens_per_event_exact = total.per_event_exact;
  if (!row_.events.empty()) row_.first_event_tokens = row_.events.front().tokens;
  if (count_.prompt_tokens() >= 0) row_.prompt_tokens = count_.prompt_tokens();

  if (last == Phase::kFailed) return;  // fail() wrote status and error
  row_.status = status;
  row_.error = why;
  if (last == Phase::kHttpError) {
    const int code = *row_.http_status;
    row_.status = code >= 500   ? Status::kHttp5xx
                  : code >= 400 ? Status::kHttp4xx
                                : Status::kNotStream;
    const auto text = error_text(body_);
    row_.error = fmt::format("http {}{}{}", code, text.empty() ? "" : ": ", text);
  } else if (last == Phase::kNotStream) {
    row_.status = Status::kNotStream;
    row_.error = fmt::format("http 200 with a body that is no event stream: {}", error_text(body_));
  } else if (saw_marker_) {
    const bool empty = row_.events.empty();
    row_.status = empty ? Status::kEmpty : Status::kOk;
    row_.error = empty ? "the stream holds no token" : "";
  }
}

record::RequestRow Timeline::take_row() {
  PRONY_CHECK(phase_ == Phase::kEnded, "the request has not ended");
  phase_ = Phase::kIdle;
  return std::move(row_);
}

}  // namespace prony::load
