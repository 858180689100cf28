#include "prony/perfmodel/error_band.hpp"

namespace prony::perfmodel {
namespace {

// From validation/errors.csv and its rows; in the order mean size, mean, 90th percentile of size.
constexpr MetricError kThroughputDense{0.142, 0.091, 0.317}, kThroughputMoe{0.166, -0.054, 0.327};

}  // namespace

ErrorBand error_band(const Deployment& deployment, const ServingLoad& load) {
  const bool moe = deployment.model.moe.has_value();
  const bool vllm = deployment.engine.id == "vllm", trtllm = deployment.engine.id == "trtllm";
  if (load.static_batch) {
    if (deployment.hardware.vendor == "AMD") {
      return {.name = "static batches on AMD", .rows = 629, .throughput = {0.641, 0.501, 1.844}};
    }
    return moe ? ErrorBand{.name = "static batches, mixtures",
                           .rows = 71,
                           .throughput = {0.298, -0.254, 0.499}}
               : ErrorBand{.name = "static batches, dense",
                           .rows = 821,
                           .throughput = {0.179, 0.044, 0.336}};
  }
  if (moe) {
    return {.name = "closed loops, mixtures",
            .rows = 285,
            .tpot = {0.353, 0.165, 0.769},
            .ttft = {0.640, -0.638, 0.933},
            .throughput = kThroughputMoe};
  }
  if (vllm) {
    return {.name = "closed loops, dense, vLLM",
            .rows = 165,
            .tpot = {0.084, 0.044, 0.145},
            .ttft = {0.183, -0.082, 0.413},
            .throughput = kThroughputDense};
  }
  if (trtllm) {
    return {.name = "closed loops, dense, TensorRT-LLM",
            .rows = 321,
            .tpot = {0.071, -0.006, 0.145},
            .ttft = {0.437, -0.359, 0.796},
            .throughput = kThroughputDense};
  }
  return {.name = "closed loops, dense, of vLLM and TensorRT-LLM",
          .rows = 486,
          .tpot = {0.075, 0.011, 0.145},
          .ttft = {0.350, -0.264, 0.738},
          .throughput = kThroughputDense};
}

}  // namespace prony::perfmodel
