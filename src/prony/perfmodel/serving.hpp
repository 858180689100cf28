// Serving model: the steady state of continuous batching for requests of one length, closed
// (constant concurrency), open (Poisson arrivals) or static (one batch, together to the end).
// Means; the few tails that have a closed form are in serving_tails.hpp, the rest is the
// simulator's. Thread safety: predict_serving is pure; a ServingPredictor is one thread's. Source:
// Little's law over the step time; the fixed point is derived in docs/predict.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "prony/core/result.hpp"
#include "prony/perfmodel/memory_model.hpp"
#include "prony/perfmodel/serving_load.hpp"
#include "prony/perfmodel/serving_steps.hpp"
#include "prony/perfmodel/serving_tails.hpp"
#include "prony/perfmodel/step_cost.hpp"

namespace prony::perfmodel {

/// Loads above this share of the capacity have no predictable TTFT.
inline constexpr double kSaturationLimit = 0.9;

struct ServingPrediction {
  MemoryPlan memory;
  double batch = 0;              // decoding sequences, mean, of the whole deployment
  double capacity = 0;           // sequences that can run at once
  double itl_s = 0;              // gap between tokens without prefill of others in the step
  double tpot_s = 0;             // mean time per output token, prefill of others included
  std::optional<double> ttft_s;  // nullopt near saturation
  std::string ttft_reason;       // why there is none
  double prefill_s = 0;          // own prefill alone in its steps
  double queue_s = 0;            // part of ttft: waiting for others
  double place_s = 0;            // part of ttft: waiting for a free place among the running
  double start_s = 0;            // part of ttft: the common start of a closed-loop run
  std::optional<double> e2e_s;
  double request_throughput = 0;  // [1/s]
  double output_throughput = 0;   // [tokens/s]
  double load_share = 0;          // of what the deployment can carry; 1 is saturation
  double max_request_throughput = 0;
  ServingTails tails;
  // Only with Detail::kOperators.
  StepCost decode;   // the mean decode step
  StepCost prefill;  // one prefill step of a request alone
};

enum class Detail { kOperators, kFigures };

/// Many loads of one deployment: what was computed for one is remembered for the next of the same
/// lengths. Answers do not depend on the order of questions.
class ServingPredictor {
 public:
  /// Error: kInvalidArgument, from check_deployment().
  static Result<ServingPredictor> make(const Deployment& deployment);

  /// As predict_serving().
  Result<ServingPrediction> predict(const ServingLoad& load, Detail detail);
  /// By how much weights and one request of `load` exceed a device; 0 if they fit.
  double missing_bytes(const ServingLoad& load) const;
  const Deployment& deployment() const { return steps_.deployment(); }

 private:
  explicit ServingPredictor(const Deployment& deployment) : steps_(deployment) {}
  ServingSteps steps_;
};

/// Error: kInvalidArgument if the load is not one, or kFailed if the model does not fit, saying by
/// how much.
Result<ServingPrediction> predict_serving(const Deployment& deployment, const ServingLoad& load);

}  // namespace prony::perfmodel
