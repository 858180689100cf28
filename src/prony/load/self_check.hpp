// Self-check: what the client did to its own measurement, and whether that spoilt the run. A run is
// refused when the client's share could move the highest percentile that the run shows of TTFT
// (from the send, and from the intended start) or of the gaps between events by more than max(1 %,
// 1 ms), when more than 0.5 % of the token events lost their own stamp or never had one, when an
// event loop was over 90 % busy, when the host lost over 2 % of its time to its hypervisor, or when
// the wall clock was stepped. With kernel stamps only merged events can move a gap.
// Thread safety: pure functions.
#pragma once
#include <optional>

#include "prony/core/json.hpp"
#include "prony/load/driver.hpp"
#include "prony/record/latency_collector.hpp"
#include "prony/record/metrics.hpp"
#include "prony/record/record.hpp"
#include "prony/record/row_source.hpp"
#include "prony/record/summary.hpp"

namespace prony::load {

struct SelfCheckLimits {
  double share_relative = 0.01, share_ms = 1.0;  // the larger of both
  double merged_fraction = 0.005;                // also of unstamped events
  double loop_busy = 0.90;
  double steal = 0.02;
  double clock_step_ms = 1.0;
};

/// How far the client moved a percentile: of `measured` against `measured - share`, element by
/// element [ms]. nullopt if there are no samples. Exact for the samples that a LatencyCollector
/// keeps; beyond, both percentiles are within 0.1 %.
struct Shift {
  double quantile = 0, value_ms = 0, shift_ms = 0;
};
class ClientShift {
 public:
  void add(double measured_ms, double share_ms);
  std::optional<Shift> finish();

 private:
  record::LatencyCollector measured_{record::kExactValuesMax}, corrected_{record::kExactValuesMax};
};

struct SelfCheck {
  record::Validity validity;
  core::Json client;  // the record's section of that name
};
/// `at_once`: everything was meant at one instant, which no client can keep, so the time that the
/// sending took is a warning and no reason.
SelfCheck check_client(const record::RowSource& rows, const ClientMeters& client,
                       const record::Metrics& metrics, std::optional<double> steal_fraction,
                       bool at_once, const SelfCheckLimits& limits = {});

}  // namespace prony::load
