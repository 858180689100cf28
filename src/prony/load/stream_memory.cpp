#include "prony/load/stream_memory.hpp"

#include <algorithm>
#include <utility>

namespace prony::load {
namespace {

constexpr uint8_t kGrowthsThatSettle = 2;

bool begins_with(std::string_view text, size_t bytes, const core::Fnv1a& hash) {
  return text.size() >= bytes && core::fnv1a(text.substr(0, bytes)) == hash.value();
}

// The part of `text` behind `bytes`, from the beginning of a character: a server that rewrote the
// end of its text may have moved the border.
std::string_view behind(std::string_view text, size_t bytes) {
  bytes = std::min(bytes, text.size());
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) ++bytes;
  return text.substr(bytes);
}

std::string_view added_to_whole(std::string_view text, StreamMemory& memory) {
  const auto added = behind(text, memory.text_bytes);
  memory.text_bytes = std::max(memory.text_bytes, text.size());
  if (!added.empty()) ++memory.text_events;
  return added;
}

void remember(std::string_view added, size_t bytes, StreamMemory& memory) {
  memory.text_hash.add(added);
  memory.text_bytes = bytes;
  ++memory.text_events;
}

}  // namespace

void remember_text(std::string_view text, StreamMemory& memory) {
  if (!text.empty()) remember(text, memory.text_bytes + text.size(), memory);
}

std::string_view last_added_text(std::string_view text, StreamMemory& memory) {
  constexpr int32_t kEventsThatProve = 2;  // one token may well begin like the one before it
  if (memory.text_events >= kEventsThatProve &&
      begins_with(text, memory.text_bytes, memory.text_hash)) {
    return text.substr(memory.text_bytes);
  }
  return text;
}

void remember_prompt(std::string_view prompt, StreamMemory& memory) {
  memory.prompt_bytes = prompt.size();
  memory.prompt_hash = {};
  memory.prompt_hash.add(prompt);
}

std::string_view added_text(std::string_view text, bool repeats, StreamMemory& memory) {
  using Text = StreamMemory::Text;
  if (text.empty()) return {};
  if (memory.prompt_bytes > 0) {  // the first text of the stream
    const size_t bytes = std::exchange(memory.prompt_bytes, 0);
    if (begins_with(text, bytes, memory.prompt_hash)) {
      memory.text_bytes = bytes;
      memory.text_hash = memory.prompt_hash;
      if (text.size() == bytes) return {};
    }
  }
  switch (memory.text) {
    case Text::kPieces:
      ++memory.text_events;
      return text;
    case Text::kWhole:
      return added_to_whole(text, memory);
    case Text::kUnknown:
      break;
  }
  if (memory.text_bytes == 0) {
    remember(text, text.size(), memory);
    return text;
  }
  if (begins_with(text, memory.text_bytes, memory.text_hash)) {
    if (text.size() > memory.text_bytes) {
      const auto added = text.substr(memory.text_bytes);
      remember(added, text.size(), memory);
      if (++memory.growths >= kGrowthsThatSettle) memory.text = Text::kWhole;
      return added;
    }
    if (repeats) return {};
  }
  memory.text = Text::kPieces;
  ++memory.text_events;
  return text;
}

}  // namespace prony::load
