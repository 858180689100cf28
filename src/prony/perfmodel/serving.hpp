// Serving model: the steady state of continuous batching for requests of one length, closed
// (constant concurrency), open (Poisson arrivals) or static (one batch, together to the end).
// Means only: tails have no analytic model here and are the simulator's business.
// Thread safety: pure functions.
// Source: Little's law over the step time; the fixed point is derived in docs/predict.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "prony/core/result.hpp"
#include "prony/perfmodel/memory_model.hpp"
#include "prony/perfmodel/step_cost.hpp"

namespace prony::perfmodel {

struct ServingLoad {
  int64_t input_tokens = 0;            // >= 0; zero prefill means that the prompt is cached
  int64_t output_tokens = 1;           // >= 1
  std::optional<double> concurrency;   // closed loop: clients, or the batch if static
  std::optional<double> request_rate;  // open loop [1/s]; exactly one of both
  bool static_batch = false;
  /// Requests of a closed-loop run; the first `concurrency` of them arrive together and wait for
  /// each other's prefill, which raises the mean TTFT. nullopt: ten a client, as the public
  /// benchmark scripts do; 0: without end, so that the start is forgotten.
  std::optional<double> requests;
  std::optional<int32_t> max_sequences, max_step_tokens;  // over the engine's own
};

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
  double start_s = 0;            // part of ttft: the common start of a closed-loop run
  std::optional<double> e2e_s;
  double request_throughput = 0;  // [1/s]
  double output_throughput = 0;   // [tokens/s]
  double load_share = 0;          // of what the deployment can carry; 1 is saturation
  double max_request_throughput = 0;
  StepCost decode;   // the mean decode step
  StepCost prefill;  // one prefill step of a request alone
};

/// Error: kInvalidArgument if the load is not one, or kFailed if the model does not fit, saying by
/// how much.
Result<ServingPrediction> predict_serving(const Deployment& deployment, const ServingLoad& load);

}  // namespace prony::perfmodel
