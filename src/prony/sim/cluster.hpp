// Cluster: a schedule of requests through a router over replicas, on virtual time. A request
// arrives, waits for the engine's own time from client to scheduler, is served token by token, and
// leaves as a RequestRow: what a bench of such a cluster would have written, so its figures come
// from record::summarize. Equal schedule, options and seed give equal rows. Thread safety: none;
// several clusters may run in several threads.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/emulate/step_time.hpp"
#include "prony/record/request_row.hpp"
#include "prony/sim/replica.hpp"
#include "prony/sim/router.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::sim {

struct ClusterOptions {
  int32_t replicas = 1;
  RouterKind router = RouterKind::kRoundRobin;
  sched::SchedulerOptions scheduler;
  double request_s = 0;         // the engine's time of a request beside its steps
  int64_t max_concurrency = 0;  // of the clients together; 0: no limit
  bool closed_loop = false;     // requests start when one ends: max_concurrency users
  double noise_cv = 0;
  uint64_t seed = 0;
  bool macro_steps = true;
  bool token_events = true;  // every token's instant in its row: ITL needs them
};

/// Sums of a run, for its laws: arrived = finished + refused (nothing is left in flight).
struct ClusterTotals {
  int64_t arrived = 0, finished = 0, refused = 0;
  int64_t output_tokens = 0, steps = 0, scheduled_tokens = 0, preemptions = 0;
  int64_t prefix_hit_tokens = 0, prefix_query_tokens = 0;
  uint64_t events = 0;
  core::Nanos end_ns = 0;
  std::vector<ReplicaTotals> replicas;
};

using StepTimeMaker = std::function<Result<std::unique_ptr<emulate::StepTime>>()>;

/// Plays `schedule`; rows go to `sink` as they end, times count from 0. Error: kInvalidArgument for
/// options; kFailed if a law of conservation or the scheduler's integrity does not hold (a bug,
/// never an input).
Result<ClusterTotals> simulate(const workload::Schedule& schedule, const ClusterOptions& options,
                               const StepTimeMaker& make_time,
                               const std::function<void(record::RequestRow&&)>& sink);

}  // namespace prony::sim
