// summarize: rows of requests to Metrics, by the definitions of docs/metrics.md and nowhere else.
// The same for measured and simulated rows. Pure: equal rows and options give equal bits.
// Latencies are over the population's completed requests; counts, goodput and error shares over
// everything attempted; throughput over every token that arrived, of failed requests too.
// Memory is bounded but for some 80 bytes a request: passes over the rows (window; steady part;
// counts and values; intervals of what hangs together), which may lie in a file.
// Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "prony/core/clock.hpp"
#include "prony/core/slo.hpp"
#include "prony/record/metrics.hpp"
#include "prony/record/request_row.hpp"
#include "prony/record/row_source.hpp"

namespace prony::record {

inline constexpr int64_t kExactValuesMax = 500'000;

struct SummaryOptions {
  /// Arrivals fixed in advance at a finite rate. False: rate inf or closed loop.
  bool open_loop = true;
  /// Start of the window; default the first intended start. Rows intended before it are warm-up:
  /// in no count and no latency, but their tokens count in the window's throughput.
  std::optional<core::Nanos> window_begin_ns;
  /// End of the window. Default: the last intended start (open loop), or the last completion (rate
  /// inf, closed loop, or a schedule of a single instant). Rows intended later are left out.
  std::optional<core::Nanos> window_end_ns;
  /// Leaves out the start of the run where it is unlike the rest (steady_window.hpp), and in a
  /// closed loop the end, where users have stopped asking. Not beside a given begin or end.
  bool steady_part_only = false;
  core::RequestSlo goodput;
  std::optional<double> requested_rate_per_s;
  /// Values of one latency kept for exact percentiles; beyond, a histogram (<= 0.1 %) takes over.
  /// Sixteen latencies of 4 MB at most.
  int64_t exact_values_max = kExactValuesMax;
};

/// The measurement window [begin_ns, end_ns] and the rule that gave it.
struct Window {
  core::Nanos begin_ns = 0, end_ns = 0;
  const char* rule = "";
  bool holds(core::Nanos t) const { return begin_ns <= t && t <= end_ns; }
  bool holds(const std::optional<core::Nanos>& t) const { return t && holds(*t); }
};
/// Requires rows not empty (checked).
Window measurement_window(const RowSource& rows, const SummaryOptions& options);
/// The same without regard to steady_part_only.
Window whole_window(const RowSource& rows, const SummaryOptions& options);

/// Each row must satisfy check_row (rows_file.hpp). No rows: zero counts, no values.
Metrics summarize(const RowSource& rows, const SummaryOptions& options);
/// The same of rows in memory, in any order.
Metrics summarize(std::span<const RequestRow> rows, const SummaryOptions& options);

}  // namespace prony::record
