#include "prony/token/detokenizer.hpp"

namespace prony::token {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// What follows a lead byte: how many bytes, and the range of the first of them.
struct Lead {
  int needed;
  uint8_t lower, upper;
};

Lead lead_of(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

void Utf8Stream::push(std::string_view bytes, std::string& out) {
  for (size_t at = 0; at < bytes.size();) {
    const auto byte = static_cast<uint8_t>(bytes[at]);
    if (needed_ > 0) {
      if (byte < lower_ || byte > upper_) {
        // The held bytes can become nothing; this byte starts afresh, so `at` stays.
        out += kReplacement;
        held_count_ = needed_ = 0;
        continue;
      }
      lower_ = 0x80;
      upper_ = 0xBF;
      ++at;
      if (--needed_ > 0) {
        held_[static_cast<size_t>(held_count_++)] = static_cast<char>(byte);
        continue;
      }
      out.append(held_.data(), static_cast<size_t>(held_count_));
      out.push_back(static_cast<char>(byte));
      held_count_ = 0;
      continue;
    }
    if (byte < 0x80) {
      size_t end = at + 1;  // ASCII comes in runs
      while (end < bytes.size() && static_cast<uint8_t>(bytes[end]) < 0x80) ++end;
      out.append(bytes.substr(at, end - at));
      at = end;
      continue;
    }
    ++at;
    const Lead lead = lead_of(byte);
    if (lead.needed == 0) {
      out += kReplacement;
      continue;
    }
    needed_ = lead.needed;
    lower_ = lead.lower;
    upper_ = lead.upper;
    held_[0] = static_cast<char>(byte);
    held_count_ = 1;
  }
}

void Utf8Stream::flush(std::string& out) {
  if (needed_ > 0) out += kReplacement;
  held_count_ = needed_ = 0;
}

Detokenizer::Detokenizer(const Tokenizer& tokenizer, const DecodeOptions& options)
    : tokenizer_(tokenizer), options_(options) {}

void Detokenizer::push(TokenId id, std::string& out) {
  scratch_.clear();
  tokenizer_.append_bytes(id, options_, scratch_);
  options_.at_text_start = false;
  stream_.push(scratch_, out);
}

void Detokenizer::flush(std::string& out) {
  stream_.flush(out);
}

bool is_valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<uint8_t>(text[at++]);
    if (byte < 0x80) continue;
    Lead lead = lead_of(byte);
    if (lead.needed == 0) return false;
    for (; lead.needed > 0; --lead.needed, ++at) {
      if (at == text.size()) return false;
      const auto next = static_cast<uint8_t>(text[at]);
      if (next < lead.lower || next > lead.upper) return false;
      lead.lower = 0x80;
      lead.upper = 0xBF;
    }
  }
  return true;
}

}  // namespace prony::token
