// Plan: everything about one answer of the mock that can vary, decided when the request arrives and
// before a byte of the answer exists. A fault is a small change of the plan (faults.hpp);
// timeline.hpp turns it into instants, render.hpp into bytes. Times are relative to the receipt of
// the request, so that an answer never drifts. Thread safety: a value.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/net/http_server.hpp"

namespace prony::mock {

/// What a fault may look at.
struct RequestFacts {
  bool chat = true;
  bool stream = true;
  bool include_usage = false;     // stream_options.include_usage
  bool continuous_usage = false;  // stream_options.continuous_usage_stats
  int64_t tokens_asked = 16;
  int64_t prompt_tokens = 0;
  uint64_t index = 0;                // of the request in this process
  uint64_t index_on_connection = 0;  // of the request on its connection
};

enum class Role { kNone, kWithFirstToken, kAtOnce, kNullContent, kInEveryChunk };
enum class Channel { kContent, kReasoning, kReasoningContent, kToolCall };
enum class Text { kWords, kMultiByte, kSeparators, kMarkup };
enum class Usage { kAsAsked, kNever, kAlways, kEveryChunk, kNullInChunks, kWithFinish };
enum class Framing {
  kChunked,
  kExtensions,
  kTrailers,
  kUntilClose,
  kHttp10,
  kRawPieces,
  kEarlyHints,  // a 103 head before the head, then chunks
};

/// What happens when `cut_at_tokens` tokens are out.
enum class Cut {
  kNone,
  kError,        // an error event, then the end marker
  kErrorNoDone,  // an error event, then the end of the body
  kErrorField,   // the error as a field of its own, as older llama.cpp did
  kEof,          // the body ends in order, but without a finish and an end marker
  kClose,        // the connection closes, the body unfinished
  kCloseInEvent,
  kReset,
  kBadChunk,  // what follows is no HTTP chunk
  kStall,     // silence for ever
  kPings,     // comments for ever
};

/// What happens to the connection after a whole answer.
enum class After { kKeep, kCloseSilently, kCloseAnnounced };

struct Wire {
  std::string_view line_end = "\n";
  bool space_after_colon = true;
  bool two_data_lines = false;  // one event, its JSON broken over two data: lines
  bool byte_order_mark = false;
  bool id_event_retry = false;  // the other SSE fields beside every data line
  bool final_blank = true;      // the empty line after the end marker
  size_t piece_bytes = 0;       // writes of at most so many bytes; 0: an event is one write
  bool cut_characters = false;  // two writes an event, cut inside a multi-byte character
  bool merge_instant = false;   // events of one instant go out in one write
  Framing framing = Framing::kChunked;
};

struct Plan {
  // A whole answer instead of a stream, if `whole`.
  bool whole = false;
  bool raw = false;  // `body` is all there is: no head, and the connection closes after it
  int status = 200;
  net::Headers headers;
  std::string content_type = "application/json";
  std::string body;
  bool never_answer = false;
  bool close_unanswered = false;

  core::Nanos ttft_ns = 0;
  core::Nanos itl_ns = 0;
  bool head_at_first_token = false;

  int64_t tokens = 16;
  std::vector<int64_t> chunk_tokens = {1};  // tokens a chunk, used in turn
  int64_t group_chunks = 1;   // so many chunks leave together, when the last of them is due
  bool rest_at_once = false;  // one token at TTFT, all others in one chunk when the last is due
  int64_t held_every = 0;     // every so many-th token never shows in a chunk
  Role role = Role::kWithFirstToken;
  Channel channel = Channel::kContent;
  Text text = Text::kWords;
  Usage usage = Usage::kAsAsked;
  std::string finish_reason = "length";
  bool finish_event = true;       // an event with finish_reason
  bool finish_with_text = false;  // it is the last token's
  bool done_marker = true;
  bool done_twice = false;
  bool hold_open_after_end = false;

  Cut cut = Cut::kNone;
  int64_t cut_at_tokens = 0;

  bool pings = false;
  bool progress = false;       // prompt_progress events before the first token
  bool empty_first = false;    // token-less chunks before the first token
  bool empty_between = false;  // and between tokens
  bool no_choices = false;     // events whose choices are missing or null
  bool garbage = false;        // an event that is not JSON
  bool huge = false;           // an event of 1 MiB

  Wire wire;
  After after = After::kKeep;
};

}  // namespace prony::mock
