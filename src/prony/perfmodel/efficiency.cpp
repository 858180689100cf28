#include "prony/perfmodel/efficiency.hpp"

#include <algorithm>
#include <cmath>

#include "prony/core/math.hpp"

namespace prony::perfmodel {
namespace {

constexpr double kTile = 128;  // rows and columns of a thread block's tile
// Grouped products of experts against one product of the same work: permuted rows, small groups and
// unequal load. Medians of the public tables of fused MoE kernels in 16 bits (docs/predict.md).
constexpr double kGroupedCompute = 0.62, kGroupedMemory = 0.88;
// Block-scaled formats lose less: their single products already read weights slowly.
constexpr double kGroupedMemoryScaled = 1.2;
using core::math::pow;

bool is_expert_gemm(OperatorKind kind) {
  return kind == OperatorKind::kExpertGateUp || kind == OperatorKind::kExpertDown;
}

// Embedding, head and router stay in 16 bits in every format we know.
bool is_16bit(OperatorKind kind) {
  return kind == OperatorKind::kHead || kind == OperatorKind::kRouter;
}

struct GemmPath {
  const catalog::GemmCurve* curve;
  double peak;
  double factor = 1;         // of the engine, on the whole
  double memory_factor = 1;  // of the engine, on weight-bound products
};

GemmPath path_of(const Deployment& deployment, OperatorKind kind) {
  const catalog::HardwareSpec& hw = deployment.hardware;
  const catalog::EngineProfile& engine = deployment.engine;
  const GemmPath sixteen{&hw.gemm16, hw.peak_bf16, engine.gemm16, 1};
  if (is_16bit(kind)) return sixteen;
  switch (deployment.weights) {
    case WeightDtype::kBf16:
      return sixteen;
    case WeightDtype::kFp8:
      return {&hw.gemm8, hw.peak_fp8, engine.gemm8, engine.gemm8_memory};
    case WeightDtype::kInt8:
      return {&hw.gemm8, hw.peak_int8, engine.gemm8, engine.gemm8_memory};
    case WeightDtype::kFp8Block:
      return {&hw.gemm8_block, hw.peak_fp8, engine.gemm8, engine.gemm8_memory};
    case WeightDtype::kInt4:
      return {&hw.gemm4, hw.peak_bf16, engine.gemm16, 1};
    case WeightDtype::kFp4:
      return {&hw.gemm4, hw.peak_fp4, engine.gemm8, engine.gemm8_memory};
    case WeightDtype::kMxfp4:
      return is_expert_gemm(kind) ? GemmPath{&hw.gemm4, hw.peak_bf16, engine.gemm16, 1} : sixteen;
  }
  return sixteen;
}

// Kernels that give a block to each KV head of a sequence and do not split its context lose
// bandwidth where a rank has few heads.
double few_heads_slowdown(const Deployment& deployment) {
  constexpr double kEnough = 8;
  const double heads = std::max(1, deployment.model.kv_heads / deployment.parallel.tp);
  if (deployment.engine.few_heads == 0 || deployment.model.mla || heads >= kEnough) return 1;
  return pow(kEnough / heads, deployment.engine.few_heads);
}

}  // namespace

const char* bound_name(Bound bound) {
  switch (bound) {
    case Bound::kCompute:
      return "compute";
    case Bound::kMemory:
      return "memory";
    case Bound::kLatency:
      return "latency";
    case Bound::kLink:
      return "link";
  }
  return "unknown";
}

OperatorTime gemm_time(const catalog::GemmCurve& curve, double peak, double bandwidth, double units,
                       double m, double n, double k, double batch, double bytes) {
  const double rows = std::max(1.0, std::ceil(m / curve.tile_rows)) * curve.tile_rows;
  const double tiles = std::ceil(m / kTile) * std::ceil(n / kTile) * std::max(1.0, batch);
  const double waves = tiles / units;
  const double busy =
      waves < 1 ? pow(waves, curve.fill) : pow(waves / std::ceil(waves), curve.wave);
  const double compute = 2 * std::max(batch, 1.0) * rows * n * k / (peak * curve.compute * busy);
  const double memory = bytes / (bandwidth * curve.memory);
  // The sum of powers, scaled by the larger so that nothing overflows.
  const double larger = std::max(compute, memory), smaller = std::min(compute, memory);
  const double joint =
      larger <= 0 ? 0
                  : larger * pow(1 + pow(smaller / larger, curve.sharpness), 1 / curve.sharpness);
  OperatorTime time{.seconds = curve.floor_s + joint};
  time.bound = curve.floor_s > joint ? Bound::kLatency
               : compute > memory    ? Bound::kCompute
                                     : Bound::kMemory;
  return time;
}

OperatorTime prefill_attention_time(const catalog::HardwareSpec& hardware, double flops,
                                    double kv_bytes, double rows, double heads, double tokens) {
  const catalog::AttentionCurve& curve = hardware.attention;
  const double waves = rows * heads * std::ceil(tokens / kTile) / hardware.units;
  const double busy = waves < 1 ? pow(waves, curve.fill) : 1;
  const double efficiency = curve.plateau * tokens / (tokens + curve.half_tokens) * busy;
  const double compute = flops / (hardware.peak_bf16 * efficiency);
  const double memory = kv_bytes / (hardware.memory_bandwidth * curve.decode_memory);
  const double work = std::max(compute, memory);
  return {curve.prefill_floor_s + work, curve.prefill_floor_s > work ? Bound::kLatency
                                        : compute > memory           ? Bound::kCompute
                                                                     : Bound::kMemory};
}

OperatorTime decode_attention_time(const catalog::HardwareSpec& hardware, double flops,
                                   double kv_bytes, bool kv_8bit, double slowdown) {
  const catalog::AttentionCurve& curve = hardware.attention;
  const double efficiency = kv_8bit ? curve.decode_memory_8bit : curve.decode_memory;
  const double memory = slowdown * kv_bytes / (hardware.memory_bandwidth * efficiency);
  const double compute = flops / hardware.peak_bf16;
  return {curve.decode_floor_s + memory + compute, curve.decode_floor_s > memory + compute
                                                       ? Bound::kLatency
                                                   : compute > memory ? Bound::kCompute
                                                                      : Bound::kMemory};
}

OperatorTime operator_time(const Deployment& deployment, const Operator& op,
                           const StepShape& shape) {
  const catalog::HardwareSpec& hardware = deployment.hardware;
  if (op.kind == OperatorKind::kAttentionPrefill) {
    // Rows of different length share the kernel: the mean chunk stands for all, weighted by work.
    double rows = 0, tokens = 0;
    for (const StepShape::Rows& each : shape.rows()) {
      if (each.row.new_tokens == 1) continue;
      rows += static_cast<double>(each.count);
      tokens += static_cast<double>(each.count * (each.row.new_tokens + each.row.context));
    }
    const double heads =
        std::max(1.0, static_cast<double>(deployment.model.heads) / deployment.parallel.tp);
    return prefill_attention_time(hardware, op.flops, op.kv_read_bytes, rows, heads, tokens / rows);
  }
  if (op.kind == OperatorKind::kAttentionDecode) {
    return decode_attention_time(hardware, op.flops, op.kv_read_bytes,
                                 deployment.kv != KvDtype::kBf16, few_heads_slowdown(deployment));
  }
  if (op.m > 0) {
    const GemmPath path = path_of(deployment, op.kind);
    catalog::GemmCurve curve = *path.curve;
    if (is_expert_gemm(op.kind)) {
      curve.compute *= kGroupedCompute;
      const bool scaled = path.curve == &hardware.gemm8_block || path.curve == &hardware.gemm4;
      curve.memory *= scaled ? kGroupedMemoryScaled : kGroupedMemory;
    }
    OperatorTime time = gemm_time(curve, path.peak, hardware.memory_bandwidth, hardware.units, op.m,
                                  op.n, op.k, op.batch, op.bytes());
    time.seconds *= path.factor * (time.bound == Bound::kCompute ? 1 : path.memory_factor);
    return time;
  }
  const double memory = op.bytes() / (hardware.memory_bandwidth * hardware.vector_memory);
  return {hardware.kernel_s + memory,
          hardware.kernel_s > memory ? Bound::kLatency : Bound::kMemory};
}

}  // namespace prony::perfmodel
