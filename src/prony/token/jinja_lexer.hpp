// The words of a chat template: text outside of braces, and names, numbers, strings and signs
// within, after white space control. Thread safety: pure function.
// Source: Jinja 3.1, src/jinja2/lexer.py (rules of trimming and of numbers).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::token::jinja {

struct Token {
  enum class Kind : uint8_t {
    kText,        // text: to be printed as it is
    kPrintBegin,  // {{
    kPrintEnd,    // }}
    kBlockBegin,  // {%
    kBlockEnd,    // %}
    kName,        // text
    kString,      // text: its value
    kInteger,     // integer
    kFloat,       // real
    kSign,        // text
    kEnd,         // of the template
  };
  Kind kind = Kind::kEnd;
  int line = 1;
  std::string text = {};
  int64_t integer = 0;
  double real = 0;
};

/// The last token is kEnd. Error: kInvalidArgument, "NAME:LINE: found ..., expected ...".
Result<std::vector<Token>> tokenize(std::string_view source, std::string_view name);

/// As error messages name it: "'x'", "a text", "the end".
std::string describe(const Token& token);

}  // namespace prony::token::jinja
