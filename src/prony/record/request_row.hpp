// RequestRow: everything known about one request of a run, one line of requests.jsonl. Measured by
// load, simulated by sim; all metrics of a Record are computed from these rows, nowhere else.
// Instants are CLOCK_MONOTONIC ns (virtual ns when simulated), nullopt where the event never came.
// Thread safety: a value. Source of the definitions: docs/metrics.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/json.hpp"
#include "prony/core/result.hpp"

namespace prony::record {

enum class Status {
  kOk,
  kHttp4xx,
  kHttp5xx,
  kStreamError,  // an error object inside the stream
  kTruncated,    // the stream ended without its end marker
  kEmpty,        // a whole stream without a single token
  kNotStream,    // 200 with JSON or HTML although a stream was asked for
  kParse,        // an event that is not what the dialect allows
  kInterrupted,  // in flight when the user pressed Ctrl-C
  kConnect,      // no connection
  kTimeoutConnect,
  kTimeoutTtft,
  kTimeoutStall,
  kTimeoutTotal,
  kCancelled,   // given up on purpose by the client
  kUnfinished,  // in flight when the run's drain limit passed
};
/// "ok", "http_4xx", ... as in requests.jsonl.
const char* status_name(Status status);
std::optional<Status> parse_status(const std::string& name);

/// Where output_tokens came from; a run that mixes sources is flagged.
enum class TokenSource { kNone, kUsage, kTokenIds, kContinuousUsage, kTokenizer, kEventCount };
/// "none", "usage", "token_ids", "continuous_usage", "tokenizer", "event_count".
const char* token_source_name(TokenSource source);
std::optional<TokenSource> parse_token_source(const std::string& name);

/// One token-bearing event: arrival in the kernel (user stamp where there is no kernel stamp),
/// arrival in our process, and how many tokens it holds (0: unknown).
struct TokenEvent {
  core::Nanos t_kernel_ns = 0;
  core::Nanos t_user_ns = 0;
  int32_t tokens = 0;
};

struct RequestRow {
  int64_t index = 0;  // position in the schedule
  std::string id;     // sent as X-Request-Id
  Status status = Status::kUnfinished;
  std::optional<int32_t> http_status;
  std::string error;               // one line; empty if ok
  int32_t retries = 0;             // resends on a dead keep-alive connection, no byte received
  std::optional<int64_t> session;  // conversation it belongs to
  std::optional<int32_t> turn;     // of it, from 0
  std::optional<int32_t> stage;    // of a load in stages, from 0
  int32_t input_tokens_asked = 0;
  std::optional<int32_t> prompt_tokens;  // the server's count
  int32_t output_tokens_asked = 0;
  std::optional<int32_t> output_tokens;  // N, by token_source
  TokenSource token_source = TokenSource::kNone;
  std::string finish_reason;

  core::Nanos t_intended_ns = 0;
  std::optional<core::Nanos> t_connect_begin_ns;  // name lookup began; unset if reused
  std::optional<core::Nanos> t_connect_ns;        // this connection was ready; unset if reused
  std::optional<core::Nanos> t_send_ns;           // first byte handed to the kernel
  std::optional<core::Nanos> t_sent_ns;           // last body byte handed to the kernel
  std::optional<core::Nanos> t_headers_ns;
  std::optional<core::Nanos> t_first_event_ns;
  std::optional<core::Nanos> t_first_token_ns;
  std::optional<core::Nanos> t_first_output_ns;  // first token that is not reasoning
  std::optional<core::Nanos> t_last_token_ns;
  std::optional<core::Nanos> t_done_ns;  // end marker
  std::optional<core::Nanos> t_close_ns;

  std::vector<TokenEvent> events;       // token-bearing events in order
  int32_t first_event_tokens = 0;       // tokens of the first token-bearing event; 0: unknown
  bool tokens_per_event_exact = false;  // every event's count is known, so ITL is per token
  int32_t merged_events = 0;            // events that shared a kernel read with a later one
  std::optional<core::Nanos> read_lag_max_ns;  // largest user - kernel stamp of this request
  /// How long after it was free to go the request left, without its handshake: the client's own
  /// part of the wait. Unset: never sent, or simulated.
  std::optional<core::Nanos> issue_lag_ns;

  std::string text, reasoning, tool_calls;  // kept only with --save-text

  bool operator==(const RequestRow&) const = default;
};
inline bool operator==(const TokenEvent& a, const TokenEvent& b) {
  return a.t_kernel_ns == b.t_kernel_ns && a.t_user_ns == b.t_user_ns && a.tokens == b.tokens;
}

}  // namespace prony::record
