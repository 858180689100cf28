// Delta: what one event of a stream says, in the words all dialects share. A dialect fills it, the
// Timeline judges it. Views point into the parser that filled it and die with its next event.
// Thread safety: a value. Source: the wire forms that servers really send, docs/dialects.md.
#pragma once
#include <cstdint>
#include <string_view>

namespace prony::load {

/// Token counts as the server states them; -1 where it said nothing.
struct Usage {
  int32_t prompt_tokens = -1;
  int32_t completion_tokens = -1;  // running total of the request, never an increment
  int32_t reasoning_tokens = -1;   // part of completion_tokens
  int32_t cached_tokens = -1;      // part of prompt_tokens found in the prefix cache
};

struct Delta {
  enum class Kind {
    kChunk,   // a piece of the answer, or of its bookkeeping
    kDone,    // the end marker alone: [DONE]
    kError,   // the server reports a fault; `message`
    kBroken,  // not what the dialect allows; `message`
  };
  Kind kind = Kind::kChunk;

  std::string_view text;           // added content
  std::string_view reasoning;      // added thinking
  std::string_view tool_calls;     // added function names and arguments
  int32_t token_ids = 0;           // number of token ids the event lists; 0: none
  std::string_view finish_reason;  // empty: not finished
  bool ended = false;              // the dialect's own end marker, which may lack a reason

  bool has_usage = false;
  Usage usage;

  std::string_view message;  // kError, kBroken
  int32_t error_code = 0;    // kError: the server's number, 0 if it gave none

  /// The definition of a token-bearing event (docs/metrics.md): role-only, usage-only, progress and
  /// finish-only events are not.
  bool bears_tokens() const {
    return !text.empty() || !reasoning.empty() || !tool_calls.empty() || token_ids > 0;
  }
};

}  // namespace prony::load
