// CsvReader: the rows of a CSV file with a header line, and the field parsers that name file, line
// and column when they refuse. Fields may stand in double quotes ("" is a quote inside); a line
// break inside quotes is refused. LF and CRLF, a byte order mark and blank lines are accepted.
// Source: RFC 4180, without multi-line fields. Thread safety: none.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::workload {

class CsvReader {
 public:
  /// Reads the header. Keeps `content` by reference; `path` is for messages.
  /// Error: kInvalidArgument if there is no header line.
  static Result<CsvReader> create(std::string_view content, std::string path);

  /// Place of the column called `name`, case and surrounding spaces aside.
  /// Error: kInvalidArgument, naming the columns found, if it is missing or there twice.
  Result<size_t> column(std::string_view name) const;
  /// Places of several, in the order of `names`.
  Result<std::vector<size_t>> columns(std::span<const std::string_view> names) const;

  /// Reads the next row; false at the end. Error: kInvalidArgument if the number of fields differs
  /// from the header's or a quote is left open.
  Result<bool> next();

  /// Field of the current row, spaces around it removed. Requires next() to have said true.
  std::string_view field(size_t column) const { return fields_[column]; }
  /// Field as a token count in 1..kTokensMax.
  Result<int32_t> positive_integer(size_t column) const;
  /// Field as a token count in 0..kTokensMax.
  Result<int32_t> integer(size_t column) const;
  /// "FILE:LINE: column NAME: found 'x', expected WHAT".
  Error unexpected(size_t column, std::string_view what) const;

 private:
  CsvReader(std::string_view content, std::string path);
  bool take_line(std::string_view& line);
  Result<void> split(std::string_view line);

  std::string_view rest_;
  std::string path_;
  int64_t line_ = 0;  // of the current row, from 1
  std::vector<std::string> header_, fields_;
  size_t field_count_ = 0;  // of fields_, whose strings are reused
};

}  // namespace prony::workload
