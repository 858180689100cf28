// Time of one operator on one device: the roofline with the efficiency curves of the catalogue.
// Thread safety: pure functions.
// Source: roofline (Williams 2009); the shapes of the curves as documented in hardware_spec.hpp,
// fitted to public operator tables (docs/predict.md).
#pragma once
#include <cstdint>

#include "prony/perfmodel/deployment.hpp"
#include "prony/perfmodel/operators.hpp"
#include "prony/perfmodel/step_shape.hpp"

namespace prony::perfmodel {

enum class Bound { kCompute, kMemory, kLatency, kLink };
/// "compute", "memory", "latency", "link".
const char* bound_name(Bound bound);

struct OperatorTime {
  double seconds = 0;  // of one layer
  Bound bound = Bound::kLatency;
};

/// Time of `batch` products [m, k] x [k, n] that move `bytes`. Requires peak, bandwidth > 0.
OperatorTime gemm_time(const catalog::GemmCurve& curve, double peak, double bandwidth, double units,
                       double m, double n, double k, double batch, double bytes);

/// Time of causal attention of several new tokens: `flops` over `rows` sequences in `heads` heads,
/// `tokens` queries each, KV bytes read `kv_bytes`.
OperatorTime prefill_attention_time(const catalog::HardwareSpec& hardware, double flops,
                                    double kv_bytes, double rows, double heads, double tokens);

/// Time of attention of one new token a row; reading takes `slowdown` times as long as the curve
/// says.
OperatorTime decode_attention_time(const catalog::HardwareSpec& hardware, double flops,
                                   double kv_bytes, bool kv_8bit, double slowdown = 1);

/// Time of any operator of a rank's list, without what the engine adds.
OperatorTime operator_time(const Deployment& deployment, const Operator& op,
                           const StepShape& shape);

}  // namespace prony::perfmodel
