// Deployment: a model on some hardware under an engine, split over ranks, with its number formats:
// everything that predictions need to know but the load.
// Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "prony/catalog/engine_profile.hpp"
#include "prony/catalog/hardware_spec.hpp"
#include "prony/catalog/model_spec.hpp"
#include "prony/core/result.hpp"
#include "prony/perfmodel/precision.hpp"

namespace prony::perfmodel {

/// How linear layers are stored and multiplied.
enum class WeightDtype {
  kBf16,      // also fp16: the same time and memory
  kFp8,       // weights and activations, one scale a tensor or channel
  kFp8Block,  // one scale for 128 x 128
  kInt8,      // weights and activations
  kInt4,      // weights only, groups of 128: products run at the 16-bit rate
  kFp4,       // nvfp4: weights and activations, one 8-bit scale for 16
  kMxfp4,     // routed experts only; the rest 16 bits
};
enum class KvDtype { kBf16, kFp8, kInt8 };

/// "bf16", "fp16", "fp8", "fp8-block", "int8", "int4", "fp4", "mxfp4".
Result<WeightDtype> parse_weight_dtype(std::string_view name);
std::string_view weight_dtype_name(WeightDtype dtype);
Result<KvDtype> parse_kv_dtype(std::string_view name);
std::string_view kv_dtype_name(KvDtype dtype);

struct Parallelism {
  int32_t tp = 1;  // ranks that share every layer
  int32_t pp = 1;  // stages
  int32_t ep = 1;  // ranks over which routed experts are spread; divides tp * dp
  int32_t dp = 1;  // data-parallel attention: groups of tp ranks with requests of their own, which
                   // share the routed experts
  int32_t ranks() const { return tp * pp * dp; }
  bool operator==(const Parallelism&) const = default;
};

struct Speculation {
  int32_t draft_tokens = 0;  // proposed per step; 0: none
  double acceptance = 0.7;   // probability that a proposed token is right, given the ones before
  double draft_cost = 0.05;  // time of one draft token relative to a target step of one token
};

/// Tokens that one verification yields: 1 + a + a^2 + ... + a^n.
double accepted_tokens(const Speculation& speculation);

/// Factors on the parts of every step that a calibration found for an engine on a device.
struct Calibration {
  double device = 1;  // kernels
  double link = 1;    // collectives
  double engine = 1;  // host time of a step, a sequence and a layer, launches
  bool operator==(const Calibration&) const = default;
};

struct Deployment {
  catalog::ModelSpec model;
  catalog::HardwareSpec hardware;
  catalog::EngineProfile engine;
  Parallelism parallel;
  WeightDtype weights = WeightDtype::kBf16;
  KvDtype kv = KvDtype::kBf16;
  bool cuda_graphs = true;
  double expert_skew = 1.15;  // load of the busiest expert-parallel rank over the mean
  Speculation speculation;
  Calibration calibration;
};

/// What an engine makes of "auto": 8 bits where the weights have at most 8 and the engine follows
/// them (the public checkpoints in fp8 and fp4 carry scales for the cache), else 16.
KvDtype automatic_kv(const catalog::EngineProfile& engine, const catalog::ModelSpec& model,
                     WeightDtype weights);

/// Bytes per element of the deployment's tensors.
Precision precision_of(const Deployment& deployment);

/// What cannot be: formats the hardware lacks, sizes that do not divide, ranks beyond the model.
/// Error: kInvalidArgument, naming the flag.
Result<void> check_deployment(const Deployment& deployment);

}  // namespace prony::perfmodel
