// Trace: requests that somebody really sent: when, how long the prompt, how long the answer. Read
// from files of public data sets; replayed as they are, or used as a source of lengths.
// Rows are sorted by time; time counts from the first row. One parser a format, in a file of its
// own: Azure here, others in trace_formats.hpp, trace_table.hpp, sharegpt.hpp, servegen.hpp.
// Source of the format: Azure/AzurePublicDataset, LLM inference traces 2023 and 2024.
// Thread safety: a value; functions any thread.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::workload {

struct TraceRow {
  int64_t t_ns = 0;           // since the first row, >= 0
  int32_t input_tokens = 0;   // >= 1
  int32_t output_tokens = 0;  // >= 1
  int32_t turn = 0;           // of its conversation, from 0
  int64_t session = -1;       // its rows stand together, by rising turn; -1: a request alone
  int64_t first_block = 0;    // block_count ids in Trace::blocks from here
  int32_t block_count = 0;
  bool operator==(const TraceRow&) const = default;
};

struct Trace {
  std::string name;            // file name without folder and extension
  std::vector<TraceRow> rows;  // by rising t_ns; equal instants in file order; never empty
  int64_t moved_rows = 0;      // rows that stood before an earlier one in the file
  int64_t skipped_rows = 0;    // rows that are no requests: no prompt or no answer
  bool has_times = true;       // false: every t_ns is 0 and means nothing
  std::string note;            // what else its user must know, for the description; may be empty

  /// Prefix blocks: equal leading ids of two rows mean equal leading tokens, block_tokens an id.
  std::vector<int64_t> blocks;
  int32_t block_tokens = 0;  // 0: the trace has none

  bool has_sessions() const { return !rows.empty() && rows.front().session >= 0; }
  std::span<const int64_t> blocks_of(const TraceRow& row) const {
    return std::span(blocks).subspan(static_cast<size_t>(row.first_block),
                                     static_cast<size_t>(row.block_count));
  }
};

/// What every parser does last: refuses an empty trace, counts moved rows, sorts by time, lets time
/// begin at the first row. A trace with sessions keeps its order and must have no times.
Result<Trace> finish_trace(Trace trace, const std::string& path);
/// File name without folder and extension, fit for a description.
std::string trace_name(std::string_view path);

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
