// Heads of HTTP/1.1 messages as text, shared by client and server. Thread safety: functions any
// thread; HttpDate none.
#pragma once
#include <string>
#include <string_view>

#include "prony/core/clock.hpp"

namespace prony::net {

bool equal_ignoring_case(std::string_view a, std::string_view b);

/// "NAME: VALUE\r\n" without the line breaks and NULs that either may hold, so that a value cannot
/// add a header of its own.
void append_header(std::string& to, std::string_view name, std::string_view value);

/// "OK" for 200; "Status" for a code without a name of its own.
std::string_view reason_phrase(int status);

/// The Date header (RFC 9110, section 5.6.7), formatted once a second.
class HttpDate {
 public:
  const std::string& text(core::Nanos realtime_ns);

 private:
  core::Nanos second_ = -1;
  std::string text_;
};

}  // namespace prony::net
