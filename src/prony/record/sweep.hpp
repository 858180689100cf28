// Sweep: the document of a grid of runs, prony.sweep/1 (docs/schema/prony.sweep.1.json): axes,
// cells with what came out of each, and what is read off them: points (a cell over its repeated
// runs) and knees. Definitions: docs/sweeps.md. Every metric is copied from the cell's own Record.
// Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/record/record.hpp"

namespace prony::record {

inline constexpr const char* kSweepSchema = "prony.sweep/1";

struct SweepAxis {
  std::string name;                 // "concurrency", "target"
  std::vector<std::string> values;  // "4", "inf", "fp16"
  bool target = false;
};

struct SweepTarget {
  std::string name, url, command;  // a server by URL or by the command that starts it
};

enum class CellStatus {
  kPending,      // not run yet
  kDone,         // at least one request completed
  kFailed,       // ran, nothing completed
  kError,        // could not be run with these options
  kUnreachable,  // the endpoint was gone, or never came
  kInterrupted,  // by the user, in the middle
};
const char* cell_status_name(CellStatus status);

struct SweepCell {
  std::string slug;                 // its folder below cells/
  std::vector<std::string> values;  // one an axis
  int64_t run = 1;
  uint64_t seed = 0;
  std::string options_hash;
  CellStatus status = CellStatus::kPending;
  std::string error;        // one line, where status says so
  std::string record_path;  // relative to the sweep's folder; empty: not kept
  bool resumed = false;     // taken over from an earlier run of the same sweep
  std::string system_kind;  // of its record: "endpoint", "mock", ...
  Validity validity;
  std::optional<bool> slo_met;
  Metrics metrics;

  bool has_metrics() const { return status == CellStatus::kDone || status == CellStatus::kFailed; }
};

struct Sweep {
  std::vector<SweepAxis> axes;  // the target first, if there is one
  std::vector<SweepTarget> targets;
  std::vector<SweepCell> cells;  // in the order of the run
  int64_t num_runs = 1;
  uint64_t seed = 0;
  std::string started_at;  // UTC
  std::vector<std::string> command;
  std::string label;
  std::string model;  // of the first record
  Environment environment;

  int64_t count(CellStatus status) const;
  int64_t count_invalid() const;
};

/// What the page and the table show of each cell; `lower` and `upper` bound it where they are
/// known. One run: its value and its own 95 % interval. Several: the median of the runs, from the
/// least to the greatest of them.
struct SweepValue {
  std::optional<double> value, lower, upper;
};
struct SweepMetric {
  const char* key;    // "ttft_p99_ms"
  const char* label;  // "TTFT p99"
  const char* unit;   // "ms"
  bool higher_is_better;
};
/// Throughputs first, then latencies.
const std::vector<SweepMetric>& sweep_metrics();
/// One of sweep_metrics() from the metrics of a run.
SweepValue sweep_value(const Metrics& metrics, std::string_view key);

/// A cell over its repeated runs. Invalid runs and runs without a completed request give no value;
/// with none left the point has none.
struct SweepPoint {
  std::vector<std::string> values;  // one an axis
  int64_t runs = 0;                 // of them measured
  int64_t runs_valid = 0;
  bool overloaded = false;          // in any run
  std::vector<size_t> cells;        // indices
  std::vector<SweepValue> metrics;  // beside sweep_metrics()
  SweepValue metric(std::string_view key) const;
};
std::vector<SweepPoint> sweep_points(const Sweep& sweep);

/// Along an axis of load (concurrency, request-rate), all else equal: the point where throughput
/// over latency (completed requests/s by mean E2E) is greatest.
/// Source: Kleinrock, "Power and deterministic rules of thumb for probabilistic problems in
/// computer communications", ICC 1979 (power = throughput / delay).
struct SweepKnee {
  size_t axis = 0;           // the axis of load
  size_t point = 0;          // index into sweep_points()
  bool at_the_edge = false;  // the last value of the axis: the knee may lie beyond
};
/// Only series of three or more points with values have a knee.
std::vector<SweepKnee> sweep_knees(const Sweep& sweep, const std::vector<SweepPoint>& points);
/// The axis of load that curves and knees go along; nullopt if the sweep has none.
std::optional<size_t> load_axis(const Sweep& sweep);

core::Json sweep_to_json(const Sweep& sweep);
/// Draft 2020-12, docs/schema/prony.sweep.1.json.
core::Json sweep_json_schema();
/// Valid pretty JSON with a final newline. Error: a document that does not keep the schema, then a
/// bug of ours.
Result<std::string> sweep_text(const Sweep& sweep);

}  // namespace prony::record
