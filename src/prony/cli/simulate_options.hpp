// SimulateOptions: the flags of `prony simulate` as data. Workload flags are those of bench, the
// deployment's those of predict. Thread safety: a value.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "prony/cli/bench_flags.hpp"
#include "prony/cli/predict_options.hpp"
#include "prony/core/result.hpp"
#include "prony/sim/cluster.hpp"

namespace prony::cli {

struct SimulateOptions {
  BenchFlags load;            // what is asked for and when
  PredictOptions deployment;  // of one replica
  int64_t replicas = 1, replications = 1, threads = 0;
  std::string router = "round-robin", step_time_profile, prefix_caching = "on", macro_steps = "on";
  std::optional<int64_t> kv_blocks;
  double step_noise = 0;
  bool json = false;
};

void declare(Flags& flags, SimulateOptions& options);

/// What the simulator is asked for, limits that no flag gives from the engine profile and memory.
struct SimulatePlan {
  perfmodel::Deployment deployment;
  sim::ClusterOptions cluster;
  sim::StepTimeMaker make_time;
  load::LoadShape shape;
};
/// Error: kInvalidArgument naming the flag.
Result<SimulatePlan> plan_simulation(SimulateOptions& options);

}  // namespace prony::cli
