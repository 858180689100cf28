// Pieces of tables that several sections share: key-value lists, cells of numbers.
// Thread safety: none; one a page, as Html.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "prony/core/json.hpp"
#include "prony/record/metrics.hpp"
#include "prony/report/html.hpp"

namespace prony::report {

struct UnitRule;  // table.cpp: how a value with a unit in its key is written

/// <td class=num>...</td>, a dash if there is no value.
void number_cell(Html& html, std::optional<double> value);
void count_cell(Html& html, std::optional<int64_t> value);
void text_cell(Html& html, std::string_view text);

/// Rows of two columns. Values that are empty are left out, so that a page shows what is known.
class FactTable {
 public:
  explicit FactTable(Html& html);
  ~FactTable();
  FactTable(const FactTable&) = delete;
  FactTable& operator=(const FactTable&) = delete;

  void add(std::string_view label, std::string_view value);
  void add(std::string_view label, std::optional<double> value, std::string_view unit);
  void add_percent(std::string_view label, std::optional<double> fraction);
  /// "p50 0.1 ms, p99 0.4 ms, max 1.2 ms (n = 400)".
  void add_latency(std::string_view label, const record::LatencyStats& stats_ms);
  /// Every scalar below `json`, keys as labels; units from the last word of a key (_ms, _s, _bytes,
  /// _fraction), which members of an object inherit.
  void add_json(const core::Json& json);

 private:
  /// `outer`: the unit of the object that these are members of, or null.
  void add_members(const std::string& prefix, const core::Json& json, const UnitRule* outer,
                   int depth);
  Html& html_;
  size_t rows_ = 0;
};

/// "0.1 to 0.4 ms" needs both ends alike: the interval with as many digits as `like` has.
std::string interval_text(const stats::Interval& interval, double like);

}  // namespace prony::report
