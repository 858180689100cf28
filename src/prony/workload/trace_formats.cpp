#include "prony/workload/trace_formats.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "prony/core/json.hpp"
#include "prony/workload/csv.hpp"
#include "prony/workload/json_lines.hpp"

namespace prony::workload {

std::optional<int64_t> parse_decimal_ns(std::string_view text, int64_t unit_ns) {
  constexpr int64_t kMost = int64_t{1} << 62;
  int64_t whole = 0;
  size_t i = 0;
  const auto digit = [&](size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  for (; digit(i); ++i) {
    whole = whole * 10 + (text[i] - '0');
    if (whole > kMost / unit_ns) return std::nullopt;
  }
  if (i == 0) return std::nullopt;
  int64_t ns = whole * unit_ns;
  if (i == text.size()) return ns;
  if (text[i] != '.' || !digit(i + 1)) return std::nullopt;
  int64_t unit = unit_ns;
  for (++i; digit(i); ++i) {
    if (unit % 10 != 0) {  // below a nanosecond: cut
      unit = 0;
      continue;
    }
    unit /= 10;
    ns += unit * (text[i] - '0');
  }
  return i == text.size() ? std::optional(ns) : std::nullopt;
}

Result<Trace> parse_mooncake_trace(std::string_view content, const std::string& path) {
  constexpr int32_t kBlockTokens = 512;
  Trace trace;
  JsonLines lines(content, path);
  while (true) {
    const auto more = lines.next();
    if (!more) return more.error();
    if (!*more) break;
    const auto t_ms = lines.number("timestamp");
    if (!t_ms) return t_ms.error();
    constexpr double kLatestMs = 1e13;  // 317 years
    if (*t_ms > kLatestMs) return lines.unexpected("timestamp", "milliseconds from the start");
    const auto input = lines.tokens("input_length");
    if (!input) return input.error();
    const auto output = lines.tokens("output_length");
    if (!output) return output.error();
    if (*input == 0 || *output == 0) {
      ++trace.skipped_rows;
      continue;
    }
    TraceRow row;
    row.t_ns = std::llround(*t_ms * 1e6);
    row.input_tokens = *input;
    row.output_tokens = *output;
    if (const auto* ids = lines.find("hash_ids"); ids != nullptr && !ids->is_null()) {
      row.first_block = static_cast<int64_t>(trace.blocks.size());
      const int64_t begun = (int64_t{*input} + kBlockTokens - 1) / kBlockTokens;
      if (!ids->is_array() || static_cast<int64_t>(ids->size()) > begun) {
        return lines.unexpected("hash_ids", fmt::format("a list of at most {} ids ({} tokens each)",
                                                        begun, kBlockTokens));
      }
      for (const auto& id : *ids) {
        if (!id.is_number_integer() || id.get<int64_t>() < 0) {
          return lines.unexpected("hash_ids", "integers >= 0");
        }
        trace.blocks.push_back(id.get<int64_t>());
      }
      row.block_count = static_cast<int32_t>(ids->size());
    }
    trace.rows.push_back(row);
  }
  if (!trace.blocks.empty()) trace.block_tokens = kBlockTokens;
  return finish_trace(std::move(trace), path);
}

Result<Trace> parse_burstgpt_trace(std::string_view content, const std::string& path) {
  auto reader = CsvReader::create(content, path);
  if (!reader) return reader.error();
  constexpr std::string_view kNames[] = {"Timestamp", "Request tokens", "Response tokens"};
  const auto columns = reader->columns(kNames);
  if (!columns) return columns.error();
  Trace trace;
  while (true) {
    const auto more = reader->next();
    if (!more) return more.error();
    if (!*more) break;
    const auto t_ns = parse_decimal_ns(reader->field(columns->at(0)), 1'000'000'000);
    if (!t_ns) return reader->unexpected(columns->at(0), "seconds >= 0");
    const auto input = reader->integer(columns->at(1));
    if (!input) return input.error();
    const auto output = reader->integer(columns->at(2));
    if (!output) return output.error();
    if (*input == 0 || *output == 0) {
      ++trace.skipped_rows;
      continue;
    }
    trace.rows.push_back({*t_ns, *input, *output});
  }
  return finish_trace(std::move(trace), path);
}

}  // namespace prony::workload
