// CpuProbe: what the processor of this machine can do, measured with the kernels that the engine
// uses: memory by threads, products by number of rows in each format, attention, the launch of the
// thread team, and a sustained run. Products walk through weights that no cache holds, as a forward
// pass does. Best of a few repetitions: a ceiling is what the machine can do, not what a busy host
// left of it. Thread safety: one thread; keeps the given number of threads busy for seconds.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/kernels/ceilings.hpp"
#include "prony/kernels/isa.hpp"

namespace prony::probe {

struct CpuProbeOptions {
  int threads = 1;
  bool quick = false;                          // fewer points and repetitions, a smaller buffer
  double sustained_s = 0;                      // 0: none
  int64_t buffer_bytes = 0;                    // of memory and weights; 0: 1 GiB, quick 256 MiB
  std::function<void(std::string_view)> note;  // what is measured now; may be empty
};

struct MemoryPoint {
  int threads = 0;
  double read_bytes_per_s = 0;
};

struct GemmPoint {
  kernels::Dtype dtype = kernels::Dtype::kBf16;
  int64_t rows = 0, outputs = 0, inputs = 0;  // y[rows][outputs] = x[rows][inputs] W^T
  double seconds = 0;
  double ops() const { return 2.0 * static_cast<double>(rows * outputs * inputs); }
  double weight_bytes() const {
    return static_cast<double>(outputs * inputs * kernels::dtype_bytes(dtype));
  }
};

struct AttentionPoint {
  int64_t sequences = 0, tokens = 0, context = 0;  // tokens: of a query, each sequence
  double seconds = 0, ops = 0, kv_bytes = 0;
};

struct SustainedPoint {
  double t_s = 0;  // since the begin
  double ops_per_s = 0;
  double clock_mhz = 0;  // 0: not told
};

struct CpuProbe {
  kernels::Isa isa = kernels::Isa::kGeneric;
  bool bf16_rows = false;  // products of bf16 weights read activations in bf16
  int threads = 0;
  double launch_s = 0;  // of an empty job of the thread team
  double elementwise_bytes_per_s = 0;
  kernels::Ceilings ceilings;
  std::vector<MemoryPoint> memory;
  std::vector<GemmPoint> gemms;
  AttentionPoint decode, prefill;
  std::vector<SustainedPoint> sustained;

  /// Operations per second that products of weights in `dtype` reach at most: the arithmetic alone,
  /// or a product that was faster, where the host was busy meanwhile.
  double peak_ops(kernels::Dtype dtype) const;
  /// Bytes per second.
  double bandwidth() const;
};

/// Error: kInvalidArgument for options, kEnvironment if memory is lacking or PRONY_ISA is wrong.
Result<CpuProbe> probe_cpu(const CpuProbeOptions& options);

}  // namespace prony::probe
