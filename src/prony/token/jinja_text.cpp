#include "prony/token/jinja_text.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace prony::token::jinja {
namespace {

constexpr int32_t kSharpS = 0xDF;  // the one common letter whose capital is two

void append_range(std::vector<ByteRange>& ranges, size_t begin, size_t end) {
  if (begin == end) return;
  if (!ranges.empty() && ranges.back().end == begin) {
    ranges.back().end = end;
  } else {
    ranges.push_back({begin, end});
  }
}

void append_upper(int32_t point, std::string& out) {
  if (point == kSharpS) {
    out += "SS";
  } else {
    append_utf8(utf8proc_toupper(point), out);
  }
}

// A capital at the begin of a word: "Ss" and title-case digraphs.
void append_title(int32_t point, std::string& out) {
  if (point == kSharpS) {
    out += "Ss";
  } else {
    append_utf8(utf8proc_totitle(point), out);
  }
}

template <class Each>
void for_each_character(std::string_view text, Each&& each) {
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int32_t point = next_code_point(text, at);
    each(point, text.substr(begin, at - begin));
  }
}

bool has_case(int32_t point) {
  const auto category = utf8proc_category(point);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}

bool is_line_end(int32_t point) {
  return (point >= 0x0A && point <= 0x0D) || (point >= 0x1C && point <= 0x1E) || point == 0x85 ||
         point == 0x2028 || point == 0x2029;
}

bool is_printable(int32_t point) {
  if (point == ' ') return true;
  switch (utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

template <class IsStripped>
Text strip_if(const Text& text, Side side, IsStripped&& is_stripped) {
  const auto offsets = character_offsets(text.bytes);
  const auto stripped = [&](size_t i) {
    size_t at = offsets[i];
    return is_stripped(next_code_point(text.bytes, at));
  };
  size_t first = 0, last = offsets.size() - 1;
  while (side != Side::kRight && first < last && stripped(first)) ++first;
  while (side != Side::kLeft && last > first && stripped(last - 1)) --last;
  return text.slice(offsets[first], offsets[last]);
}

}  // namespace

Text Text::from_outside(std::string_view bytes) {
  Text text{std::string(bytes), {}};
  append_range(text.foreign, 0, bytes.size());
  return text;
}

Text& Text::append(std::string_view own) {
  bytes += own;
  return *this;
}

Text& Text::append(const Text& other) {
  const size_t shift = bytes.size();
  bytes += other.bytes;
  for (const auto& range : other.foreign) {
    append_range(foreign, shift + range.begin, shift + range.end);
  }
  return *this;
}

Text& Text::append_like(std::string_view more, const Text& like) {
  if (like.is_foreign()) append_range(foreign, bytes.size(), bytes.size() + more.size());
  bytes += more;
  return *this;
}

Text Text::slice(size_t begin, size_t end) const {
  Text part{bytes.substr(begin, end - begin), {}};
  for (const auto& range : foreign) {
    const size_t from = std::max(range.begin, begin), to = std::min(range.end, end);
    if (from < to) part.foreign.push_back({from - begin, to - begin});
  }
  return part;
}

int32_t next_code_point(std::string_view text, size_t& at) {
  utf8proc_int32_t point = 0;
  const auto size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                     static_cast<utf8proc_ssize_t>(text.size() - at), &point);
  at += size > 0 ? static_cast<size_t>(size) : 1;
  return size > 0 ? point : -1;
}

void append_utf8(int32_t point, std::string& out) {
  utf8proc_uint8_t buffer[4];
  const auto size = utf8proc_encode_char(point, buffer);
  out.append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(size));
}

int64_t length_of(std::string_view text) {
  int64_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) next_code_point(text, at);
  return count;
}

std::vector<size_t> character_offsets(std::string_view text) {
  std::vector<size_t> offsets;
  for (size_t at = 0; at < text.size();) {
    offsets.push_back(at);
    next_code_point(text, at);
  }
  offsets.push_back(text.size());
  return offsets;
}

bool is_python_space(int32_t point) {
  if ((point >= 0x09 && point <= 0x0D) || (point >= 0x1C && point <= 0x20) || point == 0x85) {
    return true;
  }
  if (point < 0x80) return false;
  const auto category = utf8proc_category(point);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

Text strip(const Text& text, Side side) {
  return strip_if(text, side, is_python_space);
}

Text strip(const Text& text, Side side, std::string_view characters) {
  return strip_if(text, side, [characters](int32_t point) {
    for (size_t at = 0; at < characters.size();) {
      if (next_code_point(characters, at) == point) return true;
    }
    return false;
  });
}

std::string upper(std::string_view text) {
  std::string out;
  for_each_character(text, [&](int32_t point, std::string_view bytes) {
    if (point < 0) {
      out += bytes;
    } else {
      append_upper(point, out);
    }
  });
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  for_each_character(text, [&](int32_t point, std::string_view bytes) {
    if (point < 0) {
      out += bytes;
    } else {
      append_utf8(utf8proc_tolower(point), out);
    }
  });
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  bool first = true;
  for_each_character(text, [&](int32_t point, std::string_view bytes) {
    if (point < 0) {
      out += bytes;
    } else if (std::exchange(first, false)) {
      append_title(point, out);
    } else {
      append_utf8(utf8proc_tolower(point), out);
    }
  });
  return out;
}

std::string title(std::string_view text) {
  std::string out;
  bool in_word = false;
  for_each_character(text, [&](int32_t point, std::string_view bytes) {
    if (point < 0) {
      out += bytes;
    } else if (in_word) {
      append_utf8(utf8proc_tolower(point), out);
    } else {
      append_title(point, out);
    }
    in_word = point >= 0 && has_case(point);
  });
  return out;
}

bool is_lower(std::string_view text) {
  bool any = false, other = false;
  for_each_character(text, [&](int32_t point, std::string_view) {
    if (point < 0 || !has_case(point)) return;
    any = true;
    if (utf8proc_category(point) != UTF8PROC_CATEGORY_LL) other = true;
  });
  return any && !other;
}

bool is_upper(std::string_view text) {
  bool any = false, other = false;
  for_each_character(text, [&](int32_t point, std::string_view) {
    if (point < 0 || !has_case(point)) return;
    any = true;
    if (utf8proc_category(point) != UTF8PROC_CATEGORY_LU) other = true;
  });
  return any && !other;
}

std::vector<Text> split_lines(const Text& text, bool keep_ends) {
  std::vector<Text> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.bytes.size();) {
    const size_t end = at;
    const int32_t point = next_code_point(text.bytes, at);
    if (!is_line_end(point)) continue;
    if (point == '\r' && at < text.bytes.size() && text.bytes[at] == '\n') ++at;
    lines.push_back(text.slice(begin, keep_ends ? at : end));
    begin = at;
  }
  if (begin < text.bytes.size()) lines.push_back(text.slice(begin, text.bytes.size()));
  return lines;
}

std::optional<int64_t> small_number(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const bool digits = !text.empty() && text.size() <= 9 && text[0] != '-';
  if (!digits || std::from_chars(text.data(), end, value).ptr != end) return std::nullopt;
  return value;
}

std::string repr(std::string_view text) {
  const bool doubles =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = doubles ? '"' : '\'';
  std::string out(1, quote);
  for_each_character(text, [&](int32_t point, std::string_view bytes) {
    if (point == quote || point == '\\') {
      out += '\\';
      out += bytes;
    } else if (point == '\n') {
      out += "\\n";
    } else if (point == '\r') {
      out += "\\r";
    } else if (point == '\t') {
      out += "\\t";
    } else if (point < 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes[0]));
    } else if (is_printable(point)) {
      out += bytes;
    } else if (point < 0x100) {
      out += fmt::format("\\x{:02x}", point);
    } else if (point < 0x10000) {
      out += fmt::format("\\u{:04x}", point);
    } else {
      out += fmt::format("\\U{:08x}", point);
    }
  });
  return out += quote;
}

std::string repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  // Python: the shortest digits that read back, with an exponent from 1e16 on and below 1e-4.
  const double size = std::fabs(number);
  const bool scientific = size != 0 && (size >= 1e16 || size < 1e-4);
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, number,
                    scientific ? std::chars_format::scientific : std::chars_format::fixed)
          .ptr;
  std::string text(buffer, end);
  if (!scientific && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace prony::token::jinja
