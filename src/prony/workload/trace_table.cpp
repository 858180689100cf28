#include "prony/workload/trace_table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "prony/token/quote.hpp"
#include "prony/workload/csv.hpp"
#include "prony/workload/json_lines.hpp"
#include "prony/workload/timestamp.hpp"
#include "prony/workload/trace_formats.hpp"

namespace prony::workload {
namespace {

struct Unit {
  std::string_view name;
  int64_t ns;
};
constexpr Unit kUnits[] = {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}};
constexpr double kLatestNs = 0x1p62;

// Brings the rows of a session together, sessions in the order of their first row.
class Sessions {
 public:
  void add(std::string name, TraceRow row) {
    const auto [at, fresh] = numbers_.try_emplace(std::move(name), rows_.size());
    if (fresh) rows_.emplace_back();
    auto& turns = rows_[at->second];
    row.session = static_cast<int64_t>(at->second);
    row.turn = static_cast<int32_t>(turns.size());
    turns.push_back(row);
  }
  void move_to(std::vector<TraceRow>& out) {
    for (auto& turns : rows_) out.insert(out.end(), turns.begin(), turns.end());
  }

 private:
  std::map<std::string, size_t> numbers_;
  std::vector<std::vector<TraceRow>> rows_;
};

Error bad_map(std::string_view text) {
  return invalid_argument(
      fmt::format("--column: found {}, expected input=NAME,output=NAME,time=NAME[:s|ms|us|ns|date],"
                  "session=NAME",
                  token::quote(text)));
}

}  // namespace

Result<ColumnMap> parse_column_map(std::string_view text) {
  ColumnMap map;
  bool given[4] = {};
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals + 1 == part.size()) return bad_map(text);
    const std::string_view key = part.substr(0, equals);
    std::string_view name = part.substr(equals + 1);
    constexpr std::string_view kKeys[] = {"input", "output", "time", "session"};
    size_t k = 0;
    while (k < 4 && kKeys[k] != key) ++k;
    if (k == 4 || std::exchange(given[k], true)) return bad_map(text);
    if (k == 2) {
      if (const size_t colon = name.rfind(':'); colon != std::string_view::npos) {
        const std::string_view unit = name.substr(colon + 1);
        map.time_is_date = unit == "date";
        bool known = map.time_is_date;
        for (const auto& [unit_name, ns] : kUnits) {
          if (unit != unit_name) continue;
          map.time_unit_ns = ns;
          known = true;
        }
        if (!known || colon == 0) return bad_map(text);
        name = name.substr(0, colon);
      }
    }
    std::string* const targets[] = {&map.input, &map.output, &map.time, &map.session};
    *targets[k] = name;
  }
  if (!map.session.empty() && !map.time.empty()) {
    return invalid_argument(
        "--column: found time and session, expected one: conversations start by the arrival flags");
  }
  return map;
}

Result<Trace> parse_csv_trace(std::string_view content, const std::string& path,
                              const ColumnMap& columns) {
  auto reader = CsvReader::create(content, path);
  if (!reader) return reader.error();
  const auto input_at = reader->column(columns.input);
  if (!input_at) return input_at.error();
  const auto output_at = reader->column(columns.output);
  if (!output_at) return output_at.error();
  size_t time_at = 0, session_at = 0;
  for (const auto& [name, at] :
       {std::pair{&columns.time, &time_at}, std::pair{&columns.session, &session_at}}) {
    if (name->empty()) continue;
    const auto found = reader->column(*name);
    if (!found) return found.error();
    *at = *found;
  }
  Trace trace;
  trace.has_times = !columns.time.empty();
  Sessions sessions;
  while (true) {
    const auto more = reader->next();
    if (!more) return more.error();
    if (!*more) break;
    TraceRow row;
    if (trace.has_times) {
      const auto text = reader->field(time_at);
      const auto t_ns = columns.time_is_date ? parse_timestamp_ns(text)
                                             : parse_decimal_ns(text, columns.time_unit_ns);
      if (!t_ns) {
        return reader->unexpected(time_at, columns.time_is_date
                                               ? "a time like 2023-11-16 18:15:46.68"
                                               : "a decimal number >= 0");
      }
      row.t_ns = *t_ns;
    }
    const auto input = reader->integer(*input_at);
    if (!input) return input.error();
    const auto output = reader->integer(*output_at);
    if (!output) return output.error();
    if (*input == 0 || *output == 0) {
      ++trace.skipped_rows;
      continue;
    }
    row.input_tokens = *input;
    row.output_tokens = *output;
    if (columns.session.empty()) {
      trace.rows.push_back(row);
    } else {
      sessions.add(std::string(reader->field(session_at)), row);
    }
  }
  sessions.move_to(trace.rows);
  return finish_trace(std::move(trace), path);
}

Result<Trace> parse_jsonl_trace(std::string_view content, const std::string& path,
                                const ColumnMap& columns) {
  JsonLines lines(content, path);
  Trace trace;
  trace.has_times = !columns.time.empty();
  Sessions sessions;
  while (true) {
    const auto more = lines.next();
    if (!more) return more.error();
    if (!*more) break;
    TraceRow row;
    if (trace.has_times && columns.time_is_date) {
      const auto* value = lines.find(columns.time);
      const auto t_ns = value != nullptr && value->is_string()
                            ? parse_timestamp_ns(value->get<std::string>())
                            : std::nullopt;
      if (!t_ns) return lines.unexpected(columns.time, "a time like 2023-11-16 18:15:46.68");
      row.t_ns = *t_ns;
    } else if (trace.has_times) {
      const auto number = lines.number(columns.time);
      if (!number) return number.error();
      const double ns = *number * static_cast<double>(columns.time_unit_ns);
      if (ns > kLatestNs) return lines.unexpected(columns.time, "a time before the year 2116");
      row.t_ns = std::llround(ns);
    }
    const auto input = lines.tokens(columns.input);
    if (!input) return input.error();
    const auto output = lines.tokens(columns.output);
    if (!output) return output.error();
    if (*input == 0 || *output == 0) {
      ++trace.skipped_rows;
      continue;
    }
    row.input_tokens = *input;
    row.output_tokens = *output;
    if (columns.session.empty()) {
      trace.rows.push_back(row);
      continue;
    }
    const auto* name = lines.find(columns.session);
    if (name == nullptr || !(name->is_string() || name->is_number_integer())) {
      return lines.unexpected(columns.session, "the name or number of a conversation");
    }
    sessions.add(name->dump(-1, ' ', false, core::Json::error_handler_t::replace), row);
  }
  sessions.move_to(trace.rows);
  return finish_trace(std::move(trace), path);
}

}  // namespace prony::workload
