// Numbers written by people in flags: whole text or nothing, never the locale's.
// Thread safety: pure functions.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace prony::workload {

/// All of `text` as a number; nullopt if anything is left over or it does not fit. A double may be
/// "inf" or "nan": callers check what they can use.
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace prony::workload
