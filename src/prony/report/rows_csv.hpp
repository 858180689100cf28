// requests.csv: the rows of a run for spreadsheets and data frames. The columns are the keys of
// requests.jsonl without the events and texts, in that order; what is unknown is empty. RFC 4180
// with line feeds. A text that a spreadsheet would take for a formula (a server's error message can
// be one) begins with an apostrophe. Thread safety: functions any thread.
#pragma once
#include <string>

#include "prony/core/result.hpp"
#include "prony/record/row_source.hpp"

namespace prony::report {

/// Header line and, for a row, its line; both end with a line feed.
std::string csv_header();
std::string csv_line(const record::RequestRow& row);

/// Error: kEnvironment.
Result<void> write_rows_csv(const std::string& path, const record::RowSource& rows);

}  // namespace prony::report
