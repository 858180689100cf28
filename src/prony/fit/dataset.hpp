// Dataset: the rows a fit works on, named columns of numbers and of words, read from CSV files or
// from records. One row of a record file is the whole run.
// Thread safety: values; the readers are pure but for the read of the file.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::fit {

class Dataset {
 public:
  /// CSV with a header line: RFC 4180 without line breaks inside quotes. `name` is for messages.
  static Result<Dataset> from_csv(std::string_view text, std::string_view name);
  /// CSV by its header, or a prony.record by its schema; several files are put together by column
  /// name, and columns of only some of them are dropped.
  static Result<Dataset> read(const std::vector<std::string>& paths);

  size_t rows() const { return lines_.size(); }
  const std::vector<std::string>& columns() const { return header_; }
  std::optional<size_t> find(std::string_view column) const;

  /// Error: kInvalidArgument, naming the known columns.
  Result<std::vector<std::string>> words(std::string_view column) const;
  /// Error: the same, or "FILE:LINE: column NAME: found 'x', expected a number".
  Result<std::vector<double>> numbers(std::string_view column) const;

  /// Gives column `from` a second name. Error: kInvalidArgument if there is no such column.
  Result<void> alias(std::string_view from, std::string_view to);
  /// Keeps rows whose `column` is `word`. Error: kInvalidArgument if none is left.
  Result<void> keep(std::string_view column, std::string_view word);

 private:
  struct Line {
    std::string where;  // "FILE:LINE"
    std::vector<std::string> fields;
  };
  static Result<Dataset> from_record(const std::string& text, const std::string& path);
  Error no_column(std::string_view column) const;

  std::vector<std::string> header_;
  std::vector<Line> lines_;
};

}  // namespace prony::fit
