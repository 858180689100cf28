// From BenchOptions to the schedule of a run: which trace is read, which laws are drawn from.
// Thread safety: pure functions but for reading files.
#pragma once
#include <memory>
#include <optional>

#include "prony/core/result.hpp"
#include "prony/load/bench_options.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::load {

/// The dataset is a file of requests that were sent, or are drawn from such.
bool is_trace(const BenchOptions& options);
/// The dataset brings its own instants.
bool has_own_times(const BenchOptions& options);
/// --stages, --on-off, --diurnal or a ramp over --duration; null for other rates.
/// Error: kInvalidArgument naming the flag.
Result<std::shared_ptr<const workload::RateCurve>> rate_curve(const BenchOptions& options);
/// vLLM's ramp, over the requests. Error: likewise.
Result<std::optional<workload::IndexRamp>> index_ramp(const BenchOptions& options);

/// What generate_schedule() is asked for. Requires another dataset than "schedule".
/// Error: kInvalidArgument for options out of range or a bad file, kEnvironment for a missing one.
Result<workload::ScheduleOptions> make_schedule_options(const BenchOptions& options,
                                                        const LoadShape& shape);

}  // namespace prony::load
