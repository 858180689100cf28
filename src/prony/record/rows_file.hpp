// requests.jsonl: one RequestRow a line, in the order of the schedule.
// Fields and their order are the contract in docs/metrics.md. Values that are not known are null;
// ttft_ms, tpot_ms and e2e_ms are derived on writing and ignored on reading, so that a row read
// back equals the row written (given the same options). Thread safety: functions any thread;
// RowsWriter one thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/file.hpp"
#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/record/request_row.hpp"
#include "prony/record/row_source.hpp"

namespace prony::record {

struct RowFormat {
  bool detailed = false;  // --save-detailed: adds events [[t_kernel_ns, t_user_ns, tokens], ...]
  bool text = false;      // --save-text: adds text, reasoning, tool_calls
};

core::Json row_to_json(const RequestRow& row, const RowFormat& format);
/// Strict: every field there, of its type, none unknown. Error: kInvalidArgument,
/// "WHERE: /status: found 'okay', expected one of ok, http_4xx, ...".
Result<RequestRow> row_from_json(const core::Json& json, std::string_view where);
/// What no program could have measured: negative counts, a last token before the first, events out
/// of order. Error: kInvalidArgument, naming the field.
Result<void> check_row(const RequestRow& row, std::string_view where);

/// The JSON Schema (draft 2020-12) of a line, docs/schema/prony.requests.1.json.
core::Json row_json_schema();

/// Writes rows as they finish; the file appears as a whole at commit().
class RowsWriter {
 public:
  static Result<RowsWriter> create(const std::string& path, const RowFormat& format);
  void append(const RequestRow& row);
  Result<void> commit();

 private:
  RowsWriter(core::AtomicFile file, const RowFormat& format);
  core::AtomicFile file_;
  RowFormat format_;
};

Result<void> write_rows(const std::string& path, const RowSource& rows, const RowFormat& format);
/// Error: as read_file, or the first bad line as "PATH:LINE: ...".
Result<std::vector<RequestRow>> read_rows(const std::string& path);

}  // namespace prony::record
