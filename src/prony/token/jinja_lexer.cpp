#include "prony/token/jinja_lexer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "prony/token/jinja_text.hpp"
#include "prony/token/quote.hpp"

namespace prony::token::jinja {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}
bool is_name(char c) {
  return is_name_start(c) || is_digit(c);
}
bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Line ends as "\n"; a last one is not part of a template.
std::string normal_lines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    text += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  Lexer(std::string source, std::string_view name) : source_(std::move(source)), name_(name) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size() && !error_) read_outside();
    if (error_) return std::move(*error_);
    push(Token::Kind::kEnd);
    return std::move(tokens_);
  }

 private:
  using Kind = Token::Kind;

  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool next_is(std::string_view text) const { return rest().starts_with(text); }

  // Moves on, counting lines.
  void move_to(size_t at) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                         source_.begin() + static_cast<ptrdiff_t>(at), '\n'));
    at_ = at;
  }
  void skip_space() {
    size_t at = at_;
    while (at < source_.size() && is_space(source_[at])) ++at;
    move_to(at);
  }
  void skip_line_end() {
    if (next_is("\n")) move_to(at_ + 1);
  }
  Token& push(Kind kind, std::string text = {}) {
    tokens_.push_back({kind, line_, std::move(text)});
    return tokens_.back();
  }
  void fail(int line, std::string_view message) {
    if (!error_) error_ = invalid_argument(fmt::format("{}:{}: {}", name_, line, message));
  }

  // Text up to the next brace pair, and what that opens.
  void read_outside() {
    size_t open = at_;
    for (;; ++open) {
      open = source_.find('{', open);
      if (open == std::string::npos || open + 1 >= source_.size()) {
        push(Kind::kText, std::string(rest()));
        return move_to(source_.size());
      }
      const char c = source_[open + 1];
      if (c == '{' || c == '%' || c == '#') break;
    }
    const char kind = source_[open + 1];
    const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
    std::string text = source_.substr(at_, open - at_);
    if (sign == '-') {
      while (!text.empty() && is_space(text.back())) text.pop_back();
    } else if (sign != '+' && kind != '{') {
      strip_indent(text);
    }
    if (!text.empty()) push(Kind::kText, std::move(text));
    move_to(open + 2);
    if (sign == '-' || sign == '+') move_to(at_ + 1);
    if (kind == '#') return skip_comment();
    if (kind == '{') return read_inside(Kind::kPrintBegin, Kind::kPrintEnd, "}}");
    if (skip_raw_begin()) return read_raw();
    read_inside(Kind::kBlockBegin, Kind::kBlockEnd, "%}");
  }

  // Spaces between the begin of a line and a block are not printed.
  void strip_indent(std::string& text) const {
    const size_t line_end = text.rfind('\n');
    const size_t begin = line_end == std::string::npos ? 0 : line_end + 1;
    const bool at_line_begin = begin > 0 || at_ == 0 || source_[at_ - 1] == '\n';
    if (at_line_begin &&
        std::all_of(text.begin() + static_cast<ptrdiff_t>(begin), text.end(), is_space)) {
      text.resize(begin);
    }
  }

  void skip_comment() {
    const size_t close = source_.find("#}", at_);
    if (close == std::string::npos) return fail(line_, "found no #}, expected the comment to end");
    const char sign = close > at_ ? source_[close - 1] : '\0';
    move_to(close + 2);
    if (sign == '-') {
      skip_space();
    } else if (sign != '+') {
      skip_line_end();
    }
  }

  bool skip_raw_begin() {
    size_t at = at_;
    while (at < source_.size() && is_space(source_[at])) ++at;
    if (!std::string_view(source_).substr(at).starts_with("raw")) return false;
    at += 3;
    while (at < source_.size() && is_space(source_[at])) ++at;
    const bool trims = at < source_.size() && source_[at] == '-';
    if (trims) ++at;
    if (!std::string_view(source_).substr(at).starts_with("%}")) return false;
    move_to(at + 2);
    if (trims) skip_space();
    return true;
  }

  void read_raw() {
    for (size_t open = source_.find("{%", at_); open != std::string::npos;
         open = source_.find("{%", open + 2)) {
      size_t at = open + 2;
      const char sign = at < source_.size() ? source_[at] : '\0';
      if (sign == '-' || sign == '+') ++at;
      while (at < source_.size() && is_space(source_[at])) ++at;
      if (!std::string_view(source_).substr(at).starts_with("endraw")) continue;
      at += 6;
      while (at < source_.size() && is_space(source_[at])) ++at;
      const char end_sign = at < source_.size() ? source_[at] : '\0';
      if (end_sign == '-' || end_sign == '+') ++at;
      if (!std::string_view(source_).substr(at).starts_with("%}")) continue;
      std::string text = source_.substr(at_, open - at_);
      if (sign == '-') {
        while (!text.empty() && is_space(text.back())) text.pop_back();
      } else if (sign != '+') {
        strip_indent(text);
      }
      push(Kind::kText, std::move(text));
      move_to(at + 2);
      if (end_sign == '-') {
        skip_space();
      } else if (end_sign != '+') {
        skip_line_end();
      }
      return;
    }
    fail(line_, "found no {% endraw %}, expected raw text to end");
  }

  void read_inside(Kind begin, Kind end, std::string_view close) {
    push(begin);
    const int opened_line = line_;
    std::string open_brackets;
    while (!error_) {
      skip_space();
      if (at_ >= source_.size()) {
        return fail(opened_line, fmt::format("found no {}, expected the tag to end", close));
      }
      if (open_brackets.empty() && take_end(end, close)) return;
      read_word(open_brackets);
    }
  }

  bool take_end(Kind end, std::string_view close) {
    const bool trims = source_[at_] == '-', keeps = source_[at_] == '+' && end == Kind::kBlockEnd;
    const size_t at = at_ + (trims || keeps ? 1 : 0);
    if (!std::string_view(source_).substr(at).starts_with(close)) return false;
    push(end);
    move_to(at + 2);
    if (trims) {
      skip_space();
    } else if (!keeps && end == Kind::kBlockEnd) {
      skip_line_end();
    }
    return true;
  }

  void read_word(std::string& open_brackets) {
    const char c = source_[at_];
    if (is_digit(c)) return read_number();
    if (c == '\'' || c == '"') return read_string(c);
    if (is_name_start(c)) {
      size_t end = at_;
      while (end < source_.size() && is_name(source_[end])) ++end;
      push(Kind::kName, source_.substr(at_, end - at_));
      return move_to(end);
    }
    for (const std::string_view sign : {"//", "**", "==", "!=", ">=", "<="}) {
      if (!next_is(sign)) continue;
      push(Kind::kSign, std::string(sign));
      return move_to(at_ + 2);
    }
    if (std::string_view("+-*/%~[](){}<>=.,:|").find(c) == std::string_view::npos) {
      return fail(line_, fmt::format("found {}, expected a name, number, string or sign",
                                     quote(rest().substr(0, 1))));
    }
    constexpr std::string_view kOpen = "([{", kClose = ")]}";
    if (kOpen.find(c) != std::string_view::npos) open_brackets += c;
    if (const size_t which = kClose.find(c); which != std::string_view::npos) {
      if (open_brackets.empty() || open_brackets.back() != kOpen[which]) {
        return fail(line_, fmt::format("found '{}', expected it to be opened before", c));
      }
      open_brackets.pop_back();
    }
    push(Kind::kSign, std::string(1, c));
    move_to(at_ + 1);
  }

  // Digits with single underscores between them, from `at` on; where they end.
  size_t digits_end(size_t at) const {
    while (at < source_.size() &&
           (is_digit(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() &&
                                      is_digit(source_[at + 1]) && is_digit(source_[at - 1])))) {
      ++at;
    }
    return at;
  }

  void read_number() {
    if (source_[at_] == '0' && at_ + 1 < source_.size()) {
      const char c = static_cast<char>(source_[at_ + 1] | 0x20);
      const int base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
      if (base != 0) return read_integer(at_ + 2, base);
    }
    size_t end = digits_end(at_);
    bool is_float = false;
    const auto digit_at = [this](size_t at) {
      return at < source_.size() && is_digit(source_[at]);
    };
    if (end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      end = digits_end(end + 1);
      is_float = true;
    }
    if (end < source_.size() && (source_[end] | 0x20) == 'e') {
      size_t exponent = end + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) {
        ++exponent;
      }
      if (digit_at(exponent)) {
        end = digits_end(exponent);
        is_float = true;
      }
    }
    if (!is_float) return read_integer(at_, 10);
    std::string digits = source_.substr(at_, end - at_);
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    push(Kind::kFloat).real = std::strtod(digits.c_str(), nullptr);
    move_to(end);
  }

  void read_integer(size_t begin, int base) {
    std::string digits;
    size_t end = begin;
    while (end < source_.size() &&
           (std::isalnum(static_cast<unsigned char>(source_[end])) != 0 || source_[end] == '_')) {
      if (base == 10 && !is_digit(source_[end]) && source_[end] != '_') break;
      if (source_[end] != '_') digits += source_[end];
      ++end;
    }
    int64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (digits.empty() || read.ec != std::errc() || read.ptr != digits.data() + digits.size()) {
      return fail(line_, fmt::format("found {}, expected a number of at most 64 bits",
                                     quote(source_.substr(at_, end - at_))));
    }
    push(Kind::kInteger).integer = value;
    move_to(end);
  }

  void read_string(char mark) {
    std::string value;
    size_t at = at_ + 1;
    for (; at < source_.size() && source_[at] != mark; ++at) {
      if (source_[at] != '\\') {
        value += source_[at];
      } else if (++at < source_.size()) {
        at = read_escape(at, value);
      }
    }
    if (at >= source_.size()) {
      return fail(line_, fmt::format("found no {}, expected the string to end", mark));
    }
    push(Kind::kString, std::move(value));
    move_to(at + 1);
  }

  // The character behind a backslash is at `at`; returns the last one that belongs to it.
  size_t read_escape(size_t at, std::string& value) {
    constexpr std::string_view kLetters = "abfnrtv\\'\"", kValues = "\a\b\f\n\r\t\v\\'\"";
    const char c = source_[at];
    if (c == '\n') return at;
    if (const size_t which = kLetters.find(c); which != std::string_view::npos) {
      value += kValues[which];
      return at;
    }
    const bool octal = c >= '0' && c <= '7';
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : octal ? 3 : 0;
    if (digits == 0) {
      value += '\\';
      value += c;
      return at;
    }
    const size_t begin = octal ? at : at + 1;
    size_t end = begin;
    const auto is_one = [octal](char d) {
      return octal ? d >= '0' && d <= '7' : std::isxdigit(static_cast<unsigned char>(d)) != 0;
    };
    while (end < source_.size() && end < begin + digits && is_one(source_[end])) ++end;
    uint32_t point = 0;
    std::from_chars(source_.data() + begin, source_.data() + end, point, octal ? 8 : 16);
    const bool is_character = point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
    if ((!octal && end != begin + digits) || !is_character) {
      fail(line_, fmt::format("found the escape {}, expected a character",
                              quote(source_.substr(at - 1, end - at + 1))));
      return at;
    }
    append_utf8(static_cast<int32_t>(point), value);
    return end - 1;
  }

  std::string source_;
  std::string name_;
  std::vector<Token> tokens_;
  std::optional<Error> error_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source, std::string_view name) {
  return Lexer(normal_lines(source), name).run();
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kText:
      return "text";
    case Token::Kind::kPrintBegin:
      return "'{{'";
    case Token::Kind::kPrintEnd:
      return "'}}'";
    case Token::Kind::kBlockBegin:
      return "'{%'";
    case Token::Kind::kBlockEnd:
      return "'%}'";
    case Token::Kind::kName:
    case Token::Kind::kSign:
      return quote(token.text);
    case Token::Kind::kString:
      return "the string " + quote(token.text);
    case Token::Kind::kInteger:
    case Token::Kind::kFloat:
      return "a number";
    case Token::Kind::kEnd:
      return "the end";
  }
  return "";
}

}  // namespace prony::token::jinja
