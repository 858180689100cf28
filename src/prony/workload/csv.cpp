#include "prony/workload/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

#include "prony/token/quote.hpp"
#include "prony/workload/lengths.hpp"
#include "prony/workload/numbers.hpp"

namespace prony::workload {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

}  // namespace

CsvReader::CsvReader(std::string_view content, std::string path)
    : rest_(content), path_(std::move(path)) {}

Result<CsvReader> CsvReader::create(std::string_view content, std::string path) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  CsvReader reader(content, std::move(path));
  std::string_view line;
  if (!reader.take_line(line)) {
    return invalid_argument(
        fmt::format("{}: found an empty file, expected a header line", reader.path_));
  }
  if (auto split = reader.split(line); !split) return split.error();
  reader.header_ = std::move(reader.fields_);
  reader.header_.resize(reader.field_count_);
  return reader;
}

Result<size_t> CsvReader::column(std::string_view name) const {
  std::optional<size_t> found;
  for (size_t i = 0; i < header_.size(); ++i) {
    if (!same_name(header_[i], name)) continue;
    if (found) return invalid_argument(fmt::format("{}: column {} is there twice", path_, name));
    found = i;
  }
  if (found) return *found;
  return invalid_argument(fmt::format("{}: found the columns {}, expected one called {}", path_,
                                      token::quote(fmt::format("{}", fmt::join(header_, ","))),
                                      name));
}

// The next line that is not blank, without its end.
bool CsvReader::take_line(std::string_view& line) {
  while (!rest_.empty()) {
    const size_t end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++line_;
    if (!trimmed(line).empty()) return true;
  }
  return false;
}

Result<void> CsvReader::split(std::string_view line) {
  field_count_ = 0;
  while (true) {
    if (field_count_ == fields_.size()) fields_.emplace_back();
    std::string& field = fields_[field_count_++];
    field.clear();
    const std::string_view ahead = trimmed(line);
    if (ahead.starts_with('"')) {
      line = ahead.substr(1);
      while (true) {
        const size_t mark = line.find('"');
        if (mark == std::string_view::npos) {
          return invalid_argument(
              fmt::format("{}:{}: found a quote that is not closed on its line", path_, line_));
        }
        field += line.substr(0, mark);
        line.remove_prefix(mark + 1);
        if (!line.starts_with('"')) break;
        field += '"';
        line.remove_prefix(1);
      }
      const size_t comma = line.find(',');
      if (!trimmed(line.substr(0, comma)).empty()) {
        return invalid_argument(
            fmt::format("{}:{}: found {} after a closing quote, expected a comma", path_, line_,
                        token::quote(line.substr(0, comma))));
      }
      if (comma == std::string_view::npos) return {};
      line.remove_prefix(comma + 1);
      continue;
    }
    const size_t comma = line.find(',');
    field = trimmed(line.substr(0, comma));
    if (comma == std::string_view::npos) return {};
    line.remove_prefix(comma + 1);
  }
}

Result<std::vector<size_t>> CsvReader::columns(std::span<const std::string_view> names) const {
  std::vector<size_t> places;
  for (const auto name : names) {
    const auto place = column(name);
    if (!place) return place.error();
    places.push_back(*place);
  }
  return places;
}

Result<bool> CsvReader::next() {
  std::string_view line;
  if (!take_line(line)) return false;
  if (auto result = split(line); !result) return result.error();
  if (field_count_ != header_.size()) {
    return invalid_argument(fmt::format("{}:{}: found {} fields, expected {} as in the header",
                                        path_, line_, field_count_, header_.size()));
  }
  return true;
}

Result<int32_t> CsvReader::positive_integer(size_t column) const {
  const std::string_view text = field(column);
  const auto value = parse_number<int64_t>(text);
  if (!value || *value < 1) return unexpected(column, "a positive integer");
  if (*value > kTokensMax) return unexpected(column, fmt::format("at most {}", kTokensMax));
  return static_cast<int32_t>(*value);
}

Result<int32_t> CsvReader::integer(size_t column) const {
  const auto value = parse_number<int64_t>(field(column));
  if (!value || *value < 0) return unexpected(column, "an integer >= 0");
  if (*value > kTokensMax) return unexpected(column, fmt::format("at most {}", kTokensMax));
  return static_cast<int32_t>(*value);
}

Error CsvReader::unexpected(size_t column, std::string_view what) const {
  return invalid_argument(fmt::format("{}:{}: column {}: found {}, expected {}", path_, line_,
                                      header_[column], token::quote(field(column)), what));
}

}  // namespace prony::workload
