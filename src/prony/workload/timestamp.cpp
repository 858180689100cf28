#include "prony/workload/timestamp.hpp"

namespace prony::workload {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

// Takes exactly `digits` decimal digits off the front.
bool take_number(std::string_view& text, size_t digits, int64_t& value) {
  if (text.size() < digits) return false;
  value = 0;
  for (size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return true;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

int64_t days_of_month(int64_t year, int64_t month) {
  constexpr int64_t kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return kDays[month - 1] + (month == 2 && leap ? 1 : 0);
}

// Days since 1970-01-01 for year >= 1970: years start in March, so the leap day comes last.
int64_t days_since_epoch(int64_t year, int64_t month, int64_t day) {
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t era = y / 400;
  const int64_t year_of_era = y - era * 400;
  const int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146'097 + day_of_era - 719'468;
}

// "Z", "+HH:MM", "+HHMM", "+HH" or nothing, to the end of the text.
bool take_offset(std::string_view& text, int64_t& offset_s) {
  offset_s = 0;
  if (text.empty() || text == "Z" || text == "z") return true;
  const int64_t sign = text[0] == '+' ? 1 : -1;
  if (text[0] != '+' && text[0] != '-') return false;
  text.remove_prefix(1);
  int64_t hours = 0, minutes = 0;
  if (!take_number(text, 2, hours) || hours > 23) return false;
  if (!text.empty()) {
    take(text, ':');
    if (!take_number(text, 2, minutes) || minutes > 59) return false;
  }
  offset_s = sign * (hours * 3600 + minutes * 60);
  return text.empty();
}

}  // namespace

std::optional<int64_t> parse_timestamp_ns(std::string_view text) {
  int64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, offset_s = 0;
  if (!take_number(text, 4, year) || !take(text, '-') || !take_number(text, 2, month) ||
      !take(text, '-') || !take_number(text, 2, day)) {
    return std::nullopt;
  }
  if (!take(text, ' ') && !take(text, 'T')) return std::nullopt;
  if (!take_number(text, 2, hour) || !take(text, ':') || !take_number(text, 2, minute) ||
      !take(text, ':') || !take_number(text, 2, second)) {
    return std::nullopt;
  }
  int64_t nanos = 0;
  if (take(text, '.')) {
    size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
    if (digits < 1 || digits > 9 || !take_number(text, digits, nanos)) return std::nullopt;
    for (; digits < 9; ++digits) nanos *= 10;
  }
  if (!take_offset(text, offset_s)) return std::nullopt;
  if (year < 1970 || year > 2261 || month < 1 || month > 12 || day < 1 ||
      day > days_of_month(year, month) || hour > 23 || minute > 59 || second > 59) {
    return std::nullopt;
  }
  const int64_t seconds =
      days_since_epoch(year, month, day) * 86'400 + hour * 3600 + minute * 60 + second - offset_s;
  return seconds * kNanosPerSecond + nanos;
}

}  // namespace prony::workload
