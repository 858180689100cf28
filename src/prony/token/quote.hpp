// quote(): foreign text inside an error message: in single quotes, on one line, cut when long, so
// that a hostile file or request can neither forge a second line nor drive a terminal.
// Thread safety: pure function.
#pragma once
#include <string>
#include <string_view>

namespace prony::token {

/// `text` in single quotes. Control characters and bytes that are not UTF-8 become '?'; more than
/// 60 bytes are cut at a character and end in "...".
std::string quote(std::string_view text);

}  // namespace prony::token
