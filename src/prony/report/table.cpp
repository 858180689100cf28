#include "prony/report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "prony/report/format.hpp"

namespace prony::report {

struct UnitRule {
  std::string_view suffix;
  bool unit_only;  // the suffix is a unit, which the value shows anyway
  std::string (*format)(double);
};

namespace {

using core::Json;

constexpr size_t kValueCharactersMax = 400;
constexpr size_t kRowsMax = 200;  // of one JSON section: a page, not a dump
constexpr int kDepthMax = 6;
constexpr uint64_t kSeedLike = 1'000'000'000'000'000;

// Longest suffix first: "_tokens_per_s" is no "_s".
constexpr UnitRule kUnitRules[] = {
    {"_per_s", true, [](double v) { return format_setting(v) + " /s"; }},
    {"_fraction", true, format_percent},
    {"_busy", false, format_percent},
    {"_bytes", true, format_bytes},
    {"_ms", true, [](double v) { return format_setting(v) + " ms"; }},
    {"_us", true, [](double v) { return format_setting(v) + " \xC2\xB5s"; }},
    {"_ns", true, [](double v) { return format_setting(v / 1e6) + " ms"; }},
    {"_s", true, [](double v) { return format_setting(v) + " s"; }},
};

const UnitRule* rule_of(std::string_view key) {
  for (const auto& rule : kUnitRules) {
    if (key.ends_with(rule.suffix)) return &rule;
  }
  return nullptr;
}

// "kv_cache_dtype" -> "kv cache dtype", "stall_timeout_s" -> "stall timeout".
std::string words_of(std::string key, const UnitRule* rule) {
  if (rule && rule->unit_only) key.resize(key.size() - rule->suffix.size());
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

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

std::string value_text(const Json& json, const UnitRule* rule) {
  return rule && json.is_number() ? rule->format(json.get<double>()) : scalar_text(json);
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
  const size_t first = rows_;
  add_members("", json, nullptr, 0);
  if (rows_ - first >= kRowsMax) add("more", "see record.json");
}

void FactTable::add_members(const std::string& prefix, const Json& json, const UnitRule* outer,
                            int depth) {
  if (!json.is_object() || depth > kDepthMax) return;
  for (const auto& [key, value] : json.items()) {
    if (rows_ >= kRowsMax) return;
    // {"read_lag_ms": {"n": 9, "p99": 0.2}}: p99 has the unit of what it belongs to, n has none.
    const UnitRule* own = rule_of(key);
    const auto* inherited = key == "n" ? nullptr : outer;
    const UnitRule* rule = own ? own : inherited;
    const std::string label = prefix + words_of(key, own);
    if (value.is_object()) {
      add_members(label + ": ", value, rule, depth + 1);
    } else if (!value.is_array()) {
      add(label, value_text(value, rule));
    } else {
      std::string joined;
      size_t index = 0;
      for (const auto& item : value) {
        if (rows_ >= kRowsMax) return;
        if (item.is_object()) {
          add_members(fmt::format("{} {}: ", label, ++index), item, rule, depth + 1);
        } else if (!item.is_array() && joined.size() < kValueCharactersMax) {
          joined += (joined.empty() ? "" : ", ") + value_text(item, rule);
        }
      }
      add(label, joined);
    }
  }
}

std::string interval_text(const stats::Interval& interval, double like) {
  const int digits = digits_of(like);
  return fmt::format("{} \xE2\x80\x93 {}", format_fixed(interval.lower, digits),
                     format_fixed(interval.upper, digits));
}

}  // namespace prony::report
