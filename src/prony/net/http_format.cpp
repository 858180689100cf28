#include "prony/net/http_format.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>

namespace prony::net {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c - 0; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

void append_header(std::string& to, std::string_view name, std::string_view value) {
  const auto append = [&to](std::string_view text) {
    std::copy_if(text.begin(), text.end(), std::back_inserter(to),
                 [](char c) { return c != '\r' && c != '\n' && c != '\0'; });
  };
  append(name);
  to += ": ";
  append(value);
  to += "\r\n";
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

const std::string& HttpDate::text(core::Nanos realtime_ns) {
  const core::Nanos second = realtime_ns / core::kNanosPerSecond;
  if (second == second_) return text_;
  // Not strftime's %a and %b: those follow the locale.
  constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto seconds = static_cast<time_t>(second);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> rest{};
  const size_t size = std::strftime(rest.data(), rest.size(), " %Y %H:%M:%S GMT", &parts);
  std::array<char, 8> day{};
  const size_t day_size = std::strftime(day.data(), day.size(), ", %d ", &parts);
  text_ = kDays[static_cast<size_t>(parts.tm_wday)];
  text_.append(day.data(), day_size);
  text_ += kMonths[static_cast<size_t>(parts.tm_mon)];
  text_.append(rest.data(), size);
  second_ = second;
  return text_;
}

}  // namespace prony::net
