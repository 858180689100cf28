// Numbers as the page writes them: few significant digits, grouped thousands, always a unit. The
// script in web/src/format.ts follows the same rules. Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace prony::report {

inline constexpr const char* kNone = "\xE2\x80\x94";  // em dash: not known, not applicable

/// 0.412, 4.12, 41.2, 412, 4,120: about three significant digits, thousands grouped.
std::string format_number(double value);
/// A number that somebody chose, as chosen: 40, 2.5, 0.125 (at most six significant digits).
std::string format_setting(double value);
/// With exactly `digits` (>= 0) after the point: columns and intervals that are read together.
std::string format_fixed(double value, int digits);
/// Digits after the point that format_number would use.
int digits_of(double value);
std::string format_count(int64_t value);      // 12,345
std::string format_percent(double fraction);  // 99.2 %
std::string format_bytes(double bytes);       // 62.8 GiB
std::string format_seconds(double seconds);   // 950 ms, 12.3 s, 4 min 05 s

/// The same, kNone if there is no value.
std::string format_number(std::optional<double> value);

}  // namespace prony::report
