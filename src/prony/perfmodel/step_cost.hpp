// StepCost: how long one step takes on a deployment, operator by operator: the rank's operators,
// its collectives, and what the engine adds. One step model for predict, plan, emulate and
// simulate. Thread safety: StepCoster has scratch memory, one per thread; StepCost is a value.
#pragma once
#include <string_view>
#include <vector>

#include "prony/perfmodel/collectives.hpp"
#include "prony/perfmodel/efficiency.hpp"
#include "prony/perfmodel/rank_model.hpp"

namespace prony::perfmodel {

struct CostLine {
  std::string_view name;  // operator_name(), or "all-reduce", "engine-step", ...
  double seconds = 0;     // of all layers together
  Bound bound = Bound::kLatency;
};

struct StepCost {
  double seconds = 0;  // what a token waits: all stages, one after the other
  double device_s = 0, link_s = 0, engine_s = 0;
  std::vector<CostLine> lines;  // in order of execution; several groups' lines of a kind are summed
};

class StepCoster {
 public:
  /// Requires check_deployment() (checked).
  explicit StepCoster(const Deployment& deployment);

  /// `shape` is the rows of one data-parallel group and one pipeline micro-batch. Reuses memory.
  double seconds(const StepShape& shape);
  StepCost cost(const StepShape& shape);

  const RankModel& rank() const { return rank_; }
  const Deployment& deployment() const { return deployment_; }

 private:
  void run(const StepShape& shape, StepCost& total, bool with_lines);
  void links(const StepShape& shape, StepCost& total, bool with_lines) const;

  Deployment deployment_;
  RankModel rank_;
  std::vector<Operator> operators_;
  StepCost scratch_;
};

}  // namespace prony::perfmodel
