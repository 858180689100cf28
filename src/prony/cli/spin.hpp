// --spin-us of bench and mock: how long a loop polls before a deadline.
// Thread safety: functions any thread.
#pragma once
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "prony/core/result.hpp"

namespace prony::cli {

/// "auto" (nullopt: learnt), or microseconds. Error: kInvalidArgument.
inline Result<std::optional<int64_t>> parse_spin_us(std::string_view text) {
  if (text == "auto") return std::optional<int64_t>();
  int64_t value = -1;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < 0 || value > 1'000'000) {
    return invalid_argument(
        fmt::format("--spin-us: found '{}', expected auto or 0 to 1000000", text));
  }
  return std::optional<int64_t>(value);
}

}  // namespace prony::cli
