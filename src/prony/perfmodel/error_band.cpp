#include "prony/perfmodel/error_band.hpp"

namespace prony::perfmodel {
namespace {

// From validation/errors.csv and its rows; in the order mean size, mean, 90th percentile of size.
constexpr MetricError kThroughputDense{0.175, 0.124, 0.401}, kThroughputMoe{0.164, -0.032, 0.351};

}  // namespace

ErrorBand error_band(const Deployment& deployment, const ServingLoad& load) {
  const bool moe = deployment.model.moe.has_value();
  const bool vllm = deployment.engine.id == "vllm", trtllm = deployment.engine.id == "trtllm";
  if (load.static_batch) {
    if (deployment.hardware.vendor == "AMD") {
      return {.name = "static batches on AMD", .rows = 629, .throughput = {0.64, 0.49, 1.85}};
    }
    return moe ? ErrorBand{.name = "static batches, mixtures",
                           .rows = 71,
                           .throughput = {0.33, -0.297, 0.527}}
               : ErrorBand{.name = "static batches, dense",
                           .rows = 821,
                           .throughput = {0.186, 0.052, 0.358}};
  }
  if (moe) {
    return {.name = "closed loops, mixtures",
            .rows = 285,
            .tpot = {0.343, 0.153, 0.734},
            .ttft = {0.698, -0.698, 0.935},
            .throughput = kThroughputMoe};
  }
  if (vllm) {
    return {.name = "closed loops, dense, vLLM",
            .rows = 165,
            .tpot = {0.085, 0.044, 0.145},
            .ttft = {0.219, -0.086, 0.471},
            .throughput = kThroughputDense};
  }
  if (trtllm) {
    return {.name = "closed loops, dense, TensorRT-LLM",
            .rows = 321,
            .tpot = {0.089, -0.065, 0.163},
            .ttft = {0.455, -0.398, 0.822},
            .throughput = kThroughputDense};
  }
  return {.name = "closed loops, dense, of vLLM and TensorRT-LLM",
          .rows = 486,
          .tpot = {0.088, -0.028, 0.156},
          .ttft = {0.374, -0.291, 0.745},
          .throughput = kThroughputDense};
}

}  // namespace prony::perfmodel
