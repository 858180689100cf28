// StepTime: how long a step takes on a device that is not there. The one source of durations for
// the emulated server (on a real clock) and the simulator (on virtual time). Thread safety: none;
// one for each thread. Equal loads take equal times, whatever came before.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"
#include "prony/emulate/step_load.hpp"
#include "prony/perfmodel/step_cost.hpp"

namespace prony::emulate {

class StepTime {
 public:
  virtual ~StepTime() = default;
  /// Of one step; 0 for an empty one.
  virtual core::Nanos step_ns(const StepLoad& load) = 0;
};

/// By the step model of perfmodel, as `prony predict` uses it. Steps that only decode are
/// remembered by their number of rows, at contexts an eighth of a power of two apart or less, with
/// straight lines between (below 0.1 % of what the model says; sliding windows see the mean
/// context).
class ModelStepTime final : public StepTime {
 public:
  /// Error: kInvalidArgument for what one scheduler does not run: pipeline stages, data-parallel
  /// attention, drafts; and what check_deployment() says.
  static Result<std::unique_ptr<ModelStepTime>> create(const perfmodel::Deployment& deployment);

  core::Nanos step_ns(const StepLoad& load) override;

 private:
  explicit ModelStepTime(const perfmodel::Deployment& deployment) : coster_(deployment) {}
  double decode_s(int64_t rows, double context);
  double decode_at(int64_t rows, size_t grid);
  double direct_s(const StepLoad& load);

  perfmodel::StepCoster coster_;
  perfmodel::StepShape shape_;
  std::vector<std::vector<double>> decode_s_;  // [rows][grid of contexts]; below 0: not yet known
};

/// Durations that vary as measured ones do: a factor of mean 1 and the given coefficient of
/// variation, log-normal, a function of (seed, step) alone.
class StepNoise {
 public:
  /// Requires 0 <= cv < 10 (checked). 0: no noise.
  StepNoise(double cv, uint64_t seed);
  core::Nanos apply(core::Nanos duration_ns, uint64_t step) const;

 private:
  double sigma_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace prony::emulate
