// Trace: requests that somebody really sent: when, how long the prompt, how long the answer. Read
// from files of public data sets; replayed as they are, or used as a source of lengths.
// Rows are sorted by time; time counts from the first row.
// Source of the format: Azure/AzurePublicDataset, LLM inference traces 2023 and 2024.
// Thread safety: a value; functions any thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::workload {

struct TraceRow {
  int64_t t_ns = 0;           // since the first row, >= 0
  int32_t input_tokens = 0;   // >= 1
  int32_t output_tokens = 0;  // >= 1
  bool operator==(const TraceRow&) const = default;
};

struct Trace {
  std::string name;            // file name without folder and extension
  std::vector<TraceRow> rows;  // by rising t_ns; equal instants in file order; never empty
  int64_t moved_rows = 0;      // rows that stood before an earlier one in the file
};

/// Azure LLM inference trace: a header with TIMESTAMP, ContextTokens and GeneratedTokens in any
/// order and case (more columns are ignored), LF or CRLF. TIMESTAMP is a date and a time of day
/// with up to 9 decimals, perhaps with "Z" or an offset; it is read as integers, never as doubles,
/// because 100 ns ticks since 1970 do not fit in one.
/// Error: kEnvironment if the file cannot be read; kInvalidArgument for bad content:
/// "FILE:LINE: column GeneratedTokens: found 'x', expected a positive integer".
Result<Trace> read_azure_trace(const std::string& path);
/// The same from memory; `path` is for messages and the name.
Result<Trace> parse_azure_trace(std::string_view content, const std::string& path);

/// One column of positive integers of a CSV file with a header, in file order, for empirical laws.
/// Error: as above.
Result<std::vector<int32_t>> read_token_column(const std::string& path, std::string_view column);
Result<std::vector<int32_t>> parse_token_column(std::string_view content, const std::string& path,
                                                std::string_view column);

}  // namespace prony::workload
