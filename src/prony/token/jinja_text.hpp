// Text: a string of a chat template with the parts that came from outside (messages, tools) marked,
// so that whoever encodes the prompt can keep control tokens written by a user plain text. Every
// operation carries the marks along; where letters change their length the whole result is marked.
// Lengths and positions of functions here are bytes; Python's are code points, which is what the
// functions that say so count.
// Thread safety: a value; pure functions. Text is UTF-8; other bytes count as one character each.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/token/tokenizer.hpp"

namespace prony::token::jinja {

struct Text {
  std::string bytes;
  std::vector<ByteRange> foreign;  // rising, disjoint, never empty

  static Text from_outside(std::string_view bytes);
  Text& append(std::string_view own);
  Text& append(const Text& other);
  /// As append(), but all of it marked if any of `like` is.
  Text& append_like(std::string_view bytes, const Text& like);
  Text slice(size_t begin, size_t end) const;
  bool is_foreign() const noexcept { return !foreign.empty(); }
};

/// Code points.
int64_t length_of(std::string_view text);
/// Byte offset of each character, and at last the size.
std::vector<size_t> character_offsets(std::string_view text);
/// What Python's str.isspace() says of a code point.
bool is_python_space(int32_t point);
/// Decodes the character at `at` and moves behind it; -1 for a byte that is no UTF-8.
int32_t next_code_point(std::string_view text, size_t& at);
void append_utf8(int32_t point, std::string& out);

enum class Side { kBoth, kLeft, kRight };
/// Without the white space (or characters of `characters`) at its ends.
Text strip(const Text& text, Side side);
Text strip(const Text& text, Side side, std::string_view characters);

/// Python's str.upper() and so on, character by character.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);  // str.title(): a letter begins a word behind no letter
bool is_lower(std::string_view text);      // some letter with case, and none that is not lower
bool is_upper(std::string_view text);

/// A number of at most nine decimal digits and nothing else.
std::optional<int64_t> small_number(std::string_view text);
/// Python's str.splitlines().
std::vector<Text> split_lines(const Text& text, bool keep_ends = false);
/// Python's repr() of a string and of a float.
std::string repr(std::string_view text);
std::string repr(double number);

}  // namespace prony::token::jinja
