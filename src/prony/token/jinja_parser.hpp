// Parses a chat template into statements. Thread safety: pure function.
// Source: Jinja 3.1, src/jinja2/parser.py.
#pragma once
#include <string_view>

#include "prony/core/result.hpp"
#include "prony/token/jinja_ast.hpp"

namespace prony::token::jinja {

/// Error: kInvalidArgument, "NAME:LINE: found ..., expected ...".
Result<Body> parse_body(std::string_view source, std::string_view name);

}  // namespace prony::token::jinja
