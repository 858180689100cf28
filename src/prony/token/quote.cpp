#include "prony/token/quote.hpp"

#include "prony/token/detokenizer.hpp"

namespace prony::token {
namespace {

constexpr size_t kBytesMax = 60;

bool is_continuation(char c) {
  return (static_cast<uint8_t>(c) & 0xC0) == 0x80;
}

}  // namespace

std::string quote(std::string_view text) {
  const bool cut = text.size() > kBytesMax;
  if (cut) {
    size_t end = kBytesMax;
    while (end > 0 && is_continuation(text[end])) --end;
    text = text.substr(0, end);
  }
  const bool utf8 = is_valid_utf8(text);
  std::string out = "'";
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    // C1 controls are C2 80..9F; a terminal obeys them as it obeys ESC.
    const bool c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<uint8_t>(text[i + 1]) < 0xA0;
    if (c1) ++i;
    const bool bad = c1 || byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8);
    out.push_back(bad ? '?' : text[i]);
  }
  out += cut ? "...'" : "'";
  return out;
}

}  // namespace prony::token
