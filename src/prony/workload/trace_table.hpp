// Requests of one's own in a CSV or JSON Lines file whose columns are named by --column.
// Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "prony/core/result.hpp"
#include "prony/workload/trace.hpp"

namespace prony::workload {

/// Which column (or member) holds what.
struct ColumnMap {
  std::string input = "input_tokens", output = "output_tokens";
  std::string time;  // empty: the file has no times
  int64_t time_unit_ns = 1'000'000'000;
  bool time_is_date = false;  // "2023-11-16 18:15:46.68" instead of a number
  std::string session;        // empty: single requests
};

/// --column: "input=NAME,output=NAME,time=NAME[:s|ms|us|ns|date],session=NAME", in any order, each
/// at most once. Error: kInvalidArgument naming the flag.
Result<ColumnMap> parse_column_map(std::string_view text);

/// Rows with 0 tokens in prompt or answer are skipped and counted. With a session column the rows
/// of one name are the turns of one conversation, in file order, and `input` is what the turn adds;
/// then no time may be mapped: conversations start as the arrival flags say.
/// Error: kInvalidArgument "FILE:LINE: ...".
Result<Trace> parse_csv_trace(std::string_view content, const std::string& path,
                              const ColumnMap& columns);
Result<Trace> parse_jsonl_trace(std::string_view content, const std::string& path,
                                const ColumnMap& columns);

}  // namespace prony::workload
