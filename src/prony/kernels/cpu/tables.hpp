// The kernel tables of the instruction set levels; use kernels_for (kernels.hpp), which checks that
// the processor has the level. Thread safety: constant data.
#pragma once
#include "prony/kernels/kernels.hpp"

namespace prony::kernels::cpu {

extern const Kernels kGenericKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

/// Kernels::matmul of the levels above, which share all else with AVX-512.
void matmul_vnni(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end);
void matmul_amx(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end);
/// Fewer rows go to matmul_vnni: the same bits, and a tile of mostly empty rows costs as much as a
/// full one.
inline constexpr int64_t kAmxLeastRows = 3;

}  // namespace prony::kernels::cpu
