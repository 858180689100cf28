// Test helper: drives a Timeline without a network: pieces of a body with chosen stamps.
// Thread safety: none.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/load/dialect.hpp"
#include "prony/load/timeline.hpp"

namespace prony::load {

inline net::ReceiveStamp stamp_at(core::Nanos t_ns, core::Nanos lag_ns = 0) {
  return {.kernel_ns = t_ns, .user_ns = t_ns + lag_ns, .from_kernel = true};
}

inline net::ResponseHead sse_head(int status = 200,
                                  std::string_view content_type = "text/event-stream") {
  net::ResponseHead head;
  head.status = status;
  head.content_type = content_type;
  head.chunked = true;
  return head;
}

/// A timeline with its parser and meters, sent at t = 1000, ready for the head.
struct TimelineRig {
  explicit TimelineRig(const Dialect& dialect = openai_chat(), Timeline::Options options = {true})
      : parser(dialect.make_parser()), timeline(*parser, meters, options) {
    begin();
  }
  void begin() {
    record::RequestRow row;
    row.index = 7;
    row.id = "test-7";
    row.t_intended_ns = 900;
    row.input_tokens_asked = 10;
    row.output_tokens_asked = 20;
    timeline.begin(std::move(row));
    timeline.on_sent(1000, 1001);
  }
  void head(core::Nanos t_ns = 2000) { timeline.on_head(sse_head(), stamp_at(t_ns)); }
  void body(std::string_view piece, core::Nanos t_ns) { timeline.on_body(piece, stamp_at(t_ns)); }
  /// A data event of its own piece and read.
  void event(std::string_view data, core::Nanos t_ns) {
    body("data: " + std::string(data) + "\n\n", t_ns);
  }
  record::RequestRow complete(core::Nanos t_ns) {
    timeline.on_complete(stamp_at(t_ns));
    return timeline.take_row();
  }
  /// Closes as the worker does when the outcome is fixed, else completes.
  record::RequestRow finish(core::Nanos t_ns) {
    if (!timeline.wants_close()) return complete(t_ns);
    timeline.on_stopped(record::Status::kCancelled, "closed", t_ns);
    return timeline.take_row();
  }

  LoopMeters meters;
  std::unique_ptr<EventParser> parser;
  Timeline timeline;
};

/// {"choices":[{"index":0,"delta":{"content":TEXT}}]} and other chat chunks.
inline std::string chat_chunk(std::string_view delta, std::string_view finish_reason = "",
                              std::string_view usage = "") {
  std::string out = R"({"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":)";
  out += delta;
  out += R"(,"finish_reason":)";
  out += finish_reason.empty() ? "null" : "\"" + std::string(finish_reason) + "\"";
  out += "}]";
  if (!usage.empty()) out += R"(,"usage":)" + std::string(usage);
  return out + "}";
}
inline std::string content(std::string_view text, std::string_view usage = "") {
  return chat_chunk(R"({"content":")" + std::string(text) + "\"}", "", usage);
}
inline std::string usage_json(int prompt, int completion) {
  return R"({"prompt_tokens":)" + std::to_string(prompt) + R"(,"completion_tokens":)" +
         std::to_string(completion) + R"(,"total_tokens":)" + std::to_string(prompt + completion) +
         "}";
}

/// What must hold for any bytes as the body of a stream: the fuzzer's property, also run over its
/// corpus by wire_test. The first two bytes say how: dialect, kind of end, framing; piece size. The
/// third to sixth bit of the first name one of all dialects; 0: the lowest one of the two oldest.
inline void check_any_stream(std::string_view input) {
  if (input.size() < 2) return;
  const auto how = static_cast<uint8_t>(input[0]);
  const size_t number = how >> 3;
  const auto& dialect = number > 0       ? *dialects()[(number - 1) % dialects().size()]
                        : (how & 1) != 0 ? openai_chat()
                                         : openai_completions();
  const bool closes = (how & 2) != 0;
  const size_t step =
      static_cast<uint8_t>(input[1]) == 0 ? input.size() : static_cast<uint8_t>(input[1]);
  const auto body = input.substr(2);
  TimelineRig rig(dialect, {.keep_text = true, .event_limit_bytes = 1 << 16});
  auto head = sse_head();
  head.chunked = (how & 4) != 0;
  head.until_close = !head.chunked && (how & 1) != 0;
  rig.timeline.on_request("POST / HTTP/1.1\r\n\r\n{\"prompt\":\"hi\",\"text_input\":\"hi\"}");
  rig.timeline.on_head(head, stamp_at(2000));
  for (size_t at = 0; at < body.size() && !rig.timeline.wants_close(); at += step) {
    rig.body(body.substr(at, step), 3000 + static_cast<core::Nanos>(at));
  }
  const auto end = stamp_at(1'000'000'000);
  if (rig.timeline.wants_close()) {
    rig.timeline.on_stopped(record::Status::kCancelled, "closed", end.user_ns);
  } else if (closes) {
    rig.timeline.on_error({net::NetErrorKind::kClosed, "closed", true}, end);
  } else {
    rig.timeline.on_complete(end);
  }
  const auto row = rig.timeline.take_row();
  const bool ok = row.status == record::Status::kOk;
  PRONY_CHECK(ok == row.error.empty(), "a failure says why");
  PRONY_CHECK(!ok || !row.events.empty(), "a success has a token");
  PRONY_CHECK(!ok || row.t_done_ns.has_value(), "a success has an end marker");
  PRONY_CHECK(!ok || row.output_tokens.value_or(0) > 0, "a success counts its tokens");
  PRONY_CHECK(row.t_first_token_ns.has_value() == !row.events.empty(), "first token stamp");
  PRONY_CHECK(row.error.find('\n') == std::string::npos, "one line");
}

}  // namespace prony::load
