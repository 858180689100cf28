// The device's ceilings, measured where the speeds are: reading, copying, a large matrix product.
// Thread safety: one thread.
#pragma once
#include <string>

#include "prony/kernels/cuda/abi.hpp"

namespace prony::kernels::cuda {

/// Empty, or what failed.
std::string measure_ceilings(Ceilings& out);

}  // namespace prony::kernels::cuda
