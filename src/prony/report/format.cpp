#include "prony/report/format.hpp"

#include <fmt/format.h>

#include <cmath>

namespace prony::report {
namespace {

// Commas between groups of three in the whole part of a plain decimal number.
std::string group(std::string text) {
  const size_t sign = text.starts_with('-') ? 1 : 0;
  size_t end = text.find('.');
  if (end == std::string::npos) end = text.size();
  for (size_t at = end; at > sign + 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

}  // namespace

int digits_of(double value) {
  const double size = std::abs(value);
  if (size == 0 || size >= 99.95) return 0;
  return size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
}

std::string format_fixed(double value, int digits) {
  if (!std::isfinite(value)) return kNone;
  std::string text = fmt::format("{:.{}f}", value, digits);
  // "-0.00" says something that "0.00" does not.
  if (text.starts_with('-') && text.find_first_not_of("-0.") == std::string::npos) text.erase(0, 1);
  return group(std::move(text));
}

std::string format_number(double value) {
  return format_fixed(value, digits_of(value));
}

std::string format_setting(double value) {
  if (!std::isfinite(value)) return kNone;
  std::string text = fmt::format("{:.6g}", value);
  return text.find('e') == std::string::npos ? group(std::move(text)) : text;
}

std::string format_number(std::optional<double> value) {
  return value ? format_number(*value) : kNone;
}

std::string format_count(int64_t value) {
  return group(std::to_string(value));
}

std::string format_percent(double fraction) {
  const double percent = fraction * 100;
  if (percent == std::round(percent)) return format_fixed(percent, 0) + " %";
  // Near both ends the distance to the end is what matters: 99.98 %, 0.02 %.
  const double distance = std::min(std::abs(percent), std::abs(100 - percent));
  return format_fixed(percent, distance < 1 ? 2 : 1) + " %";
}

std::string format_bytes(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  return format_number(bytes) + " " + units[unit];
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return kNone;
  if (std::abs(seconds) < 1) return format_number(seconds * 1000) + " ms";
  if (std::abs(seconds) < 120) return format_number(seconds) + " s";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 7200) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace prony::report
