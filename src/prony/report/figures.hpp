// Figures: what the page draws, computed once a page, and its JSON for the script (the shape is
// web/src/data.ts). Shows the record's own population: requests meant to start inside the window.
// Thread safety: values and pure functions.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/record/record.hpp"
#include "prony/record/row_source.hpp"
#include "prony/record/summary.hpp"
#include "prony/report/request_list.hpp"
#include "prony/report/series.hpp"

namespace prony::report {

/// The rows that the record's metrics speak of.
struct Population {
  std::optional<record::Window> window;  // nullopt: not known, then every row counts
  bool holds(const record::RequestRow& row) const {
    return !window || window->holds(row.t_intended_ns);
  }
};
/// `summary` nullopt: inferred, see Options of report.hpp.
Population population(const record::RowSource& rows, const record::Metrics& metrics,
                      const std::optional<record::SummaryOptions>& summary);

struct CdfFigure {
  const char* key;                    // "ttft": colour and id
  const char* label;                  // "TTFT"
  const record::LatencyStats* stats;  // of the record
  CdfPoints points;
};

struct Figures {
  std::vector<CdfFigure> cdf;  // TTFT, TPOT, ITL, E2E, always all four
  Scatter scatter;
  std::optional<Timeline> timeline;
  std::optional<RequestList> requests;
  std::map<std::string, std::string> first_errors;  // status -> message of the first such request
  bool any() const;
};
/// `metrics` must outlive the result.
Figures make_figures(const record::RowSource& rows, const Population& population,
                     const record::Metrics& metrics);

/// With the record's telemetry series on the time axis of the run.
core::Json figures_to_json(const Figures& figures, const Population& population,
                           const core::Json& telemetry = {});

}  // namespace prony::report
