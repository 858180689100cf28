#include "prony/report/html.hpp"

#include <cstdint>

namespace prony::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct Decoded {
  uint32_t code = 0;
  size_t length = 0;  // bytes consumed, at least 1
  bool valid = false;
};

// One code point at the start of `text`, which is not empty. An invalid sequence consumes its
// longest valid prefix (WHATWG "maximal subpart"), at least one byte.
Decoded decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  size_t length = 0;
  uint8_t low = 0x80, high = 0xBF;  // bounds of the second byte: no overlong form, no surrogate
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {0, 1, false};
  }
  uint32_t code = lead & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {0, i, false};
    code = (code << 6) | (byte(i) & 0x3FU);
    low = 0x80;
    high = 0xBF;
  }
  return {code, length, true};
}

bool is_unwanted(uint32_t code) {
  if (code < 0x20) return code != '\n' && code != '\t';
  return code == 0x7F || (code >= 0x80 && code < 0xA0) ||  // C1 controls
         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

Html& Html::raw(Markup markup) {
  out_.append(markup.text());
  return *this;
}

Html& Html::asset(std::string_view trusted) {
  out_.append(trusted);
  return *this;
}

Html& Html::text(std::string_view untrusted) {
  while (!untrusted.empty()) {
    const Decoded at = decode(untrusted);
    if (!at.valid || is_unwanted(at.code)) {
      out_.append(kReplacement);
    } else {
      switch (at.code) {
        case '&':
          out_.append("&amp;");
          break;
        case '<':
          out_.append("&lt;");
          break;
        case '>':
          out_.append("&gt;");
          break;
        case '"':
          out_.append("&quot;");
          break;
        case '\'':
          out_.append("&#39;");
          break;
        default:
          out_.append(untrusted.substr(0, at.length));
      }
    }
    untrusted.remove_prefix(at.length);
  }
  return *this;
}

Result<void> Html::json(const core::Json& json) {
  const auto written = core::write_json(json);
  if (!written) return written.error();
  // These stand only inside JSON strings, where \u escapes mean the same: no "</script", no
  // "<!--", and no line separator that older parsers take for the end of a line.
  std::string_view rest = *written;
  while (!rest.empty()) {
    if (rest.front() == '<') {
      out_.append("\\u003c");
    } else if (rest.front() == '>') {
      out_.append("\\u003e");
    } else if (rest.front() == '&') {
      out_.append("\\u0026");
    } else if (rest.starts_with("\xE2\x80\xA8")) {
      out_.append("\\u2028");
      rest.remove_prefix(2);
    } else if (rest.starts_with("\xE2\x80\xA9")) {
      out_.append("\\u2029");
      rest.remove_prefix(2);
    } else {
      out_.push_back(rest.front());
    }
    rest.remove_prefix(1);
  }
  return {};
}

std::string shorten(std::string_view text, size_t max_characters) {
  size_t bytes = 0;
  for (size_t count = 0; bytes < text.size(); ++count) {
    if (count == max_characters) return std::string(text.substr(0, bytes)) + "\xE2\x80\xA6";
    bytes += decode(text.substr(bytes)).length;
  }
  return std::string(text);
}

}  // namespace prony::report
