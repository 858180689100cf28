// Replications: the same cluster under several independent schedules, each with a seed of its own,
// in several threads. What comes out does not depend on their number. Thread safety: one caller;
// makers are called from the worker threads, each for one replication at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "prony/sim/cluster.hpp"

namespace prony::sim {

struct Replication {
  uint64_t seed = 0;
  std::vector<record::RequestRow> rows;  // by index
  ClusterTotals totals;
};

/// `make_schedule(seed)` for seeds seed .. seed + count - 1. Error: the first replication's, by
/// number.
Result<std::vector<Replication>> replicate(
    int count, int threads, const ClusterOptions& options, const StepTimeMaker& make_time,
    const std::function<Result<workload::Schedule>(uint64_t seed)>& make_schedule);

/// Rows of all replications one after the other, as one run: each begins where the last arrival of
/// the one before was, so that rates and windows are those of their sum; indices go on.
std::vector<record::RequestRow> pooled(const std::vector<Replication>& replications);

}  // namespace prony::sim
