// StreamMemory: what a dialect must remember of one stream between its events: servers that repeat
// the whole text so far in every event, or the prompt in front of it, are understood by what came
// before. A few words a stream; the text itself is not kept.
// Thread safety: a value; one a stream.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "prony/core/hash.hpp"

namespace prony::load {

struct StreamMemory {
  enum class Text : uint8_t {
    kUnknown,  // too early to tell
    kWhole,    // every event repeats all text so far
    kPieces,   // every event brings what is new
  };
  Text text = Text::kUnknown;
  uint8_t growths = 0;      // events in a row that began with all text before them
  int32_t text_events = 0;  // that brought text
  int32_t token_ids = 0;    // listed so far
  size_t text_bytes = 0;    // of the text so far, an echoed prompt included
  size_t prompt_bytes = 0;  // of the prompt that may be echoed
  core::Fnv1a text_hash;    // of text_bytes; kept up while kUnknown
  core::Fnv1a prompt_hash;  // of prompt_bytes
};

/// What `text`, the text of the next event, adds to the stream. While it is unknown whether events
/// are whole or pieces: an event that begins with everything before it and is longer speaks for
/// whole (twice in a row settles it), any other text settles pieces. A repetition of exactly the
/// text so far settles pieces too, because two equal tokens are commoner than an event without
/// news, unless `repeats` says that the server is known to send such events.
std::string_view added_text(std::string_view text, bool repeats, StreamMemory& memory);

/// The text of an event that ends the stream: what it adds, if it repeats two or more earlier
/// events in front of that, else all of it. Of pieces only.
std::string_view last_added_text(std::string_view text, StreamMemory& memory);
/// The text of an event before the last; keeps what last_added_text() needs.
void remember_text(std::string_view text, StreamMemory& memory);

/// Notes the prompt that the answer may begin with.
void remember_prompt(std::string_view prompt, StreamMemory& memory);

}  // namespace prony::load
