#include "prony/report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "prony/report/format.hpp"

namespace prony::report {
namespace {

using core::Json;

constexpr size_t kValueCharactersMax = 400;
constexpr size_t kRowsMax = 200;  // of one JSON section: a page, not a dump
constexpr int kDepthMax = 6;
constexpr uint64_t kSeedLike = 1'000'000'000'000'000;

// "kv_cache_dtype" -> "kv cache dtype"; a unit that the value shows anyway is dropped.
std::string label_of(std::string key, std::string_view unit_suffix) {
  if (!unit_suffix.empty()) key.resize(key.size() - unit_suffix.size());
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

struct UnitRule {
  std::string_view suffix;
  std::string (*format)(double);
};
// Longest suffix first: "_tokens_per_s" is no "_s".
constexpr UnitRule kUnitRules[] = {
    {"_per_s", [](double v) { return format_setting(v) + " /s"; }},
    {"_fraction", format_percent},
    {"_bytes", format_bytes},
    {"_ms", [](double v) { return format_setting(v) + " ms"; }},
    {"_us", [](double v) { return format_setting(v) + " \xC2\xB5s"; }},
    {"_ns", [](double v) { return format_setting(v / 1e6) + " ms"; }},
    {"_s", [](double v) { return format_setting(v) + " s"; }},
};

std::string scalar_text(const Json& json) {
  if (json.is_boolean()) return json.get<bool>() ? "yes" : "no";
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number_integer()) {
    // Ports, seeds and identifiers are not amounts: no commas unless it is plainly a large count.
    if (json.is_number_unsigned() && json.get<uint64_t>() > kSeedLike) {
      return std::to_string(json.get<uint64_t>());
    }
    const auto value = json.get<int64_t>();
    return std::abs(value) < 100'000 ? std::to_string(value) : format_count(value);
  }
  if (json.is_number()) return format_setting(json.get<double>());
  return {};
}

}  // namespace

void number_cell(Html& html, std::optional<double> value) {
  html.raw("<td class=\"num\">").text(format_number(value)).raw("</td>");
}

void count_cell(Html& html, std::optional<int64_t> value) {
  html.raw("<td class=\"num\">").text(value ? format_count(*value) : kNone).raw("</td>");
}

void text_cell(Html& html, std::string_view text) {
  html.raw("<td>").text(shorten(text, kValueCharactersMax)).raw("</td>");
}

FactTable::FactTable(Html& html) : html_(html) {
  html_.raw("<div class=\"scroll\"><table class=\"facts\"><tbody>\n");
}
FactTable::~FactTable() {
  html_.raw("</tbody></table></div>\n");
}

void FactTable::add(std::string_view label, std::string_view value) {
  if (value.empty()) return;
  ++rows_;
  html_.raw("<tr><th scope=\"row\">").text(shorten(label, 80)).raw("</th><td>");
  html_.text(shorten(value, kValueCharactersMax)).raw("</td></tr>\n");
}

void FactTable::add(std::string_view label, std::optional<double> value, std::string_view unit) {
  if (value) add(label, fmt::format("{} {}", format_number(*value), unit));
}

void FactTable::add_percent(std::string_view label, std::optional<double> fraction) {
  if (fraction) add(label, format_percent(*fraction));
}

void FactTable::add_latency(std::string_view label, const record::LatencyStats& stats_ms) {
  if (!stats_ms.known()) return;
  std::string text;
  const auto piece = [&](const char* name, std::optional<double> value) {
    if (!value) return;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {} ms", name, format_number(*value));
  };
  piece("p50", stats_ms.p50);
  piece("p99", stats_ms.p99);
  piece("max", stats_ms.max);
  if (stats_ms.n) text += fmt::format(" (n = {})", format_count(*stats_ms.n));
  add(label, text);
}

void FactTable::add_json(const Json& json) {
  if (!json.is_object()) return;
  const size_t first = rows_;
  for (const auto& [key, value] : json.items()) add_json_value(key, value, 0);
  if (rows_ - first >= kRowsMax) add("more", "see record.json");
}

void FactTable::add_json_value(const std::string& label, const Json& json, int depth) {
  if (rows_ >= kRowsMax || depth > kDepthMax) return;
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      add_json_value(label + ": " + key, value, depth + 1);
    return;
  }
  if (json.is_array()) {
    std::string joined;
    size_t index = 0;
    for (const auto& item : json) {
      if (item.is_structured()) {
        add_json_value(fmt::format("{} {}", label, ++index), item, depth + 1);
      } else {
        joined += (joined.empty() ? "" : ", ") + scalar_text(item);
      }
    }
    add(label_of(label, {}), joined);
    return;
  }
  if (json.is_number()) {
    for (const auto& rule : kUnitRules) {
      if (label.ends_with(rule.suffix)) {
        add(label_of(label, rule.suffix), rule.format(json.get<double>()));
        return;
      }
    }
  }
  add(label_of(label, {}), scalar_text(json));
}

std::string interval_text(const stats::Interval& interval, double like) {
  const int digits = digits_of(like);
  return fmt::format("{} \xE2\x80\x93 {}", format_fixed(interval.lower, digits),
                     format_fixed(interval.upper, digits));
}

}  // namespace prony::report
