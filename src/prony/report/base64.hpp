// Bytes as text of the standard alphabet with padding (RFC 4648, section 4), for formats that hold
// numbers in text. Thread safety: pure function.
#pragma once
#include <string>
#include <string_view>

namespace prony::report {

std::string base64(std::string_view bytes);

}  // namespace prony::report
