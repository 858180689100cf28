// Timestamps of trace files as integers: "2023-11-16 18:15:46.6805900" to nanoseconds. A double
// cannot hold 100 ns ticks since 1970, and mktime() depends on the machine's time zone.
// Source: the proleptic Gregorian calendar; day count after Hinnant, "chrono-compatible low-level
// date algorithms". Thread safety: pure function.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace prony::workload {

/// Nanoseconds since 1970-01-01T00:00 of "YYYY-MM-DD", a space or T, "HH:MM:SS", perhaps 1 to 9
/// decimals, perhaps "Z" or an offset "+HH:MM" (which is taken off; no zone counts as UTC). Years
/// 1970 to 2261. nullopt for anything else, days that do not exist included.
std::optional<int64_t> parse_timestamp_ns(std::string_view text);

}  // namespace prony::workload
