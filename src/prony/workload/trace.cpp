#include "prony/workload/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "prony/core/file.hpp"
#include "prony/token/detokenizer.hpp"
#include "prony/workload/csv.hpp"
#include "prony/workload/timestamp.hpp"

namespace prony::workload {

// UTF-8, no control characters.
std::string trace_name(std::string_view path) {
  if (const auto slash = path.rfind('/'); slash != std::string_view::npos) {
    path.remove_prefix(slash + 1);
  }
  if (const auto dot = path.rfind('.'); dot != std::string_view::npos && dot > 0) {
    path = path.substr(0, dot);
  }
  std::string name;
  token::Utf8Stream stream;
  stream.push(path, name);
  stream.flush(name);
  for (char& c : name) {
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return name;
}

Result<Trace> finish_trace(Trace trace, const std::string& path) {
  if (trace.rows.empty()) {
    return invalid_argument(trace.skipped_rows > 0
                                ? fmt::format("{}: none of {} rows has both a prompt and an answer",
                                              path, trace.skipped_rows)
                                : fmt::format("{}: found no rows", path));
  }
  trace.name = trace_name(path);
  if (!trace.has_times) return trace;
  int64_t latest_ns = std::numeric_limits<int64_t>::min();
  for (const TraceRow& row : trace.rows) {
    if (row.t_ns < latest_ns) ++trace.moved_rows;
    latest_ns = std::max(latest_ns, row.t_ns);
  }
  std::stable_sort(trace.rows.begin(), trace.rows.end(),
                   [](const TraceRow& a, const TraceRow& b) { return a.t_ns < b.t_ns; });
  const int64_t first_ns = trace.rows.front().t_ns;
  for (TraceRow& row : trace.rows) row.t_ns -= first_ns;
  return trace;
}

Result<Trace> read_azure_trace(const std::string& path) {
  auto content = core::read_file(path);
  if (!content) return content.error();
  return parse_azure_trace(*content, path);
}

Result<Trace> parse_azure_trace(std::string_view content, const std::string& path) {
  auto reader = CsvReader::create(content, path);
  if (!reader) return reader.error();
  constexpr std::string_view kNames[] = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
  const auto columns = reader->columns(kNames);
  if (!columns) return columns.error();

  Trace trace;
  while (true) {
    const auto more = reader->next();
    if (!more) return more.error();
    if (!*more) break;
    const auto t_ns = parse_timestamp_ns(reader->field(columns->at(0)));
    if (!t_ns) return reader->unexpected(columns->at(0), "a time like 2023-11-16 18:15:46.6805900");
    const auto input = reader->positive_integer(columns->at(1));
    if (!input) return input.error();
    const auto output = reader->positive_integer(columns->at(2));
    if (!output) return output.error();
    trace.rows.push_back({*t_ns, *input, *output});
  }
  return finish_trace(std::move(trace), path);
}

Result<std::vector<int32_t>> read_token_column(const std::string& path, std::string_view column) {
  auto content = core::read_file(path);
  if (!content) return content.error();
  return parse_token_column(*content, path, column);
}

Result<std::vector<int32_t>> parse_token_column(std::string_view content, const std::string& path,
                                                std::string_view column) {
  auto reader = CsvReader::create(content, path);
  if (!reader) return reader.error();
  const auto place = reader->column(column);
  if (!place) return place.error();
  std::vector<int32_t> values;
  while (true) {
    const auto more = reader->next();
    if (!more) return more.error();
    if (!*more) break;
    const auto value = reader->positive_integer(*place);
    if (!value) return value.error();
    values.push_back(*value);
  }
  if (values.empty()) return invalid_argument(fmt::format("{}: found no rows", path));
  return values;
}

}  // namespace prony::workload
