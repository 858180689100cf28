#include "prony/fit/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "prony/core/file.hpp"
#include "prony/record/record.hpp"

namespace prony::fit {
namespace {

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
}

// False if a quote is left open.
bool split(std::string_view line, std::vector<std::string>& fields) {
  fields.clear();
  std::string field;
  bool quoted = false, was_quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        field += line[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"' && trimmed(field).empty()) {
      quoted = was_quoted = true;
      field.clear();
    } else if (c == ',') {
      fields.push_back(was_quoted ? field : trimmed(field));
      field.clear();
      was_quoted = false;
    } else {
      field += c;
    }
  }
  fields.push_back(was_quoted ? field : trimmed(field));
  return !quoted;
}

std::string text_of(double value) {
  return fmt::format("{}", value);
}

}  // namespace

Result<Dataset> Dataset::from_csv(std::string_view text, std::string_view name) {
  Dataset out;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  int64_t number = 0;
  std::vector<std::string> fields;
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (trimmed(line).empty()) continue;
    std::string where = fmt::format("{}:{}", name, number);
    if (!split(line, fields)) {
      return invalid_argument(fmt::format("{}: a quote is left open", where));
    }
    if (out.header_.empty()) {
      for (size_t i = 0; i < fields.size(); ++i) {
        if (std::find(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(i), fields[i]) !=
            fields.begin() + static_cast<std::ptrdiff_t>(i)) {
          return invalid_argument(fmt::format("{}: column '{}' is there twice", where, fields[i]));
        }
      }
      out.header_ = fields;
      continue;
    }
    if (fields.size() != out.header_.size()) {
      return invalid_argument(fmt::format("{}: found {} fields, expected {} as in the header",
                                          where, fields.size(), out.header_.size()));
    }
    out.lines_.push_back({std::move(where), fields});
  }
  if (out.lines_.empty()) {
    return invalid_argument(fmt::format("{}: no rows, expected a header and data", name));
  }
  return out;
}

Result<Dataset> Dataset::from_record(const std::string& text, const std::string& path) {
  const auto json = core::parse_json(text, path);
  if (!json) return json.error();
  const auto record = record::record_from_json(*json, path);
  if (!record) return record.error();
  Dataset out;
  Line line{path, {}};
  const auto add = [&](std::string_view name, std::string value) {
    out.header_.emplace_back(name);
    line.fields.push_back(std::move(value));
  };
  const auto number = [&](std::string_view name, const std::optional<double>& value) {
    if (value) add(name, text_of(*value));
  };
  add("source", record::source_name(record->source));
  add("model", record->system.model);
  add("device", record->system.device);
  add("server", record->system.server);
  // Integers and numbers of the free sections: tp, lengths, ...
  for (const auto* details : {&record->system.details, &record->workload.details}) {
    for (const auto& [key, value] : details->items()) {
      if (value.is_number() && !out.find(key)) add(key, text_of(value.get<double>()));
    }
  }
  const auto& metrics = record->metrics;
  if (record->workload.max_concurrency) {
    number("concurrency", static_cast<double>(*record->workload.max_concurrency));
  }
  number("concurrency_mean", metrics.concurrency_mean);
  number("request_rate", record->workload.request_rate);
  number("request_throughput", metrics.request_throughput);
  number("output_throughput", metrics.output_throughput);
  number("total_throughput", metrics.total_throughput);
  number("ttft_ms", metrics.ttft_ms.mean);
  number("tpot_ms", metrics.tpot_ms.mean);
  number("e2e_ms", metrics.e2e_ms.mean);
  out.lines_.push_back(std::move(line));
  return out;
}

Result<Dataset> Dataset::read(const std::vector<std::string>& paths) {
  std::optional<Dataset> all;
  for (const auto& path : paths) {
    const auto text = core::read_file(path);
    if (!text) return text.error();
    const bool json = trimmed(std::string_view(*text).substr(0, 64)).starts_with("{");
    auto next = json ? from_record(*text, path) : from_csv(*text, path);
    if (!next) return next.error();
    if (!all) {
      all = std::move(*next);
      continue;
    }
    Dataset both;
    std::vector<size_t> left, right;
    for (size_t i = 0; i < all->header_.size(); ++i) {
      const auto found = next->find(all->header_[i]);
      if (!found) continue;
      both.header_.push_back(all->header_[i]);
      left.push_back(i);
      right.push_back(*found);
    }
    const auto take = [&both](const Dataset& from, const std::vector<size_t>& places) {
      for (const auto& line : from.lines_) {
        Line copy{line.where, {}};
        for (const size_t place : places) copy.fields.push_back(line.fields[place]);
        both.lines_.push_back(std::move(copy));
      }
    };
    take(*all, left);
    take(*next, right);
    all = std::move(both);
  }
  if (!all) return invalid_argument("no data, expected a CSV file or records");
  return std::move(*all);
}

std::optional<size_t> Dataset::find(std::string_view column) const {
  const auto found = std::find(header_.begin(), header_.end(), column);
  if (found == header_.end()) return std::nullopt;
  return static_cast<size_t>(found - header_.begin());
}

Error Dataset::no_column(std::string_view column) const {
  return invalid_argument(
      fmt::format("column '{}' is missing, found {}; name another one with "
                  "--column {}=NAME",
                  column, fmt::join(header_, ", "), column));
}

Result<std::vector<std::string>> Dataset::words(std::string_view column) const {
  const auto place = find(column);
  if (!place) return no_column(column);
  std::vector<std::string> out;
  for (const auto& line : lines_) out.push_back(line.fields[*place]);
  return out;
}

Result<std::vector<double>> Dataset::numbers(std::string_view column) const {
  const auto place = find(column);
  if (!place) return no_column(column);
  std::vector<double> out;
  for (const auto& line : lines_) {
    const auto& text = line.fields[*place];
    double value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
      return invalid_argument(
          fmt::format("{}: column {}: found '{}', expected a number", line.where, column, text));
    }
    out.push_back(value);
  }
  return out;
}

Result<void> Dataset::alias(std::string_view from, std::string_view to) {
  const auto place = find(from);
  if (!place) return no_column(from);
  if (const auto old = find(to)) {
    if (*old != *place) {
      for (auto& line : lines_) line.fields[*old] = line.fields[*place];
    }
    return {};
  }
  header_.emplace_back(to);
  for (auto& line : lines_) line.fields.push_back(line.fields[*place]);
  return {};
}

Result<void> Dataset::keep(std::string_view column, std::string_view word) {
  const auto place = find(column);
  if (!place) return no_column(column);
  std::erase_if(lines_, [&](const Line& line) { return line.fields[*place] != word; });
  if (lines_.empty()) {
    return invalid_argument(fmt::format("--where: no row has '{}' in column {}", word, column));
  }
  return {};
}

}  // namespace prony::fit
