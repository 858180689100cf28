// The record of a simulated run, from its rows by record::summarize, and what the simulation itself
// cost. Thread safety: functions, main thread.
#pragma once
#include <string>
#include <vector>

#include "prony/cli/simulate_options.hpp"
#include "prony/load/bench.hpp"
#include "prony/sim/replicate.hpp"

namespace prony::cli {

Result<load::BenchRun> simulated_run(const SimulateOptions& options, const SimulatePlan& plan,
                                     const workload::Schedule& schedule,
                                     const std::vector<sim::Replication>& replications,
                                     double wall_s);
/// One replication, short; what all of them together cost and did.
core::Json replication_json(const record::Metrics& metrics);
core::Json simulation_json(const std::vector<sim::Replication>& replications, double wall_s);
/// Under the table: how fast it was, what the replicas did, the spread of the replications.
std::string simulation_lines(const record::Record& record);

}  // namespace prony::cli
