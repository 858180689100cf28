// The kernel tables of the instruction set levels; use kernels_for (kernels.hpp), which checks that
// the processor has the level. Thread safety: constant data.
#pragma once
#include "prony/kernels/kernels.hpp"

namespace prony::kernels::cpu {

extern const Kernels kGenericKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

}  // namespace prony::kernels::cpu
