// The series of record.telemetry as the page draws them: {"series": [{"name", "unit", "source",
// "t_ns": [...], "values": [...]}], "notes": [...]}, t_ns on CLOCK_MONOTONIC. Reads what a file may
// hold: whatever is not of that shape is left out. Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/json.hpp"

namespace prony::report {

struct TelemetrySeries {
  std::string name, unit, source;
  std::vector<core::Nanos> t_ns;
  std::vector<double> values;  // finite
};
/// At most kTelemetrySeriesMax, those that ever change first.
inline constexpr size_t kTelemetrySeriesMax = 24;
std::vector<TelemetrySeries> read_telemetry(const core::Json& telemetry);
std::vector<std::string> telemetry_notes(const core::Json& telemetry);

/// For the script: [{"name", "unit", "source", "t": seconds from origin, "v"}], thinned to 400
/// points a series (the first and the last stay).
core::Json telemetry_series(const core::Json& telemetry, core::Nanos origin_ns);

}  // namespace prony::report
