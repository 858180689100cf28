#include "prony/kernels/kernels.hpp"

#include <algorithm>

#include "prony/core/check.hpp"
#include "prony/kernels/cpu/tables.hpp"

namespace prony::kernels {

const Kernels& kernels_for(Isa isa) {
  const std::vector<Isa> supported = supported_isas();
  PRONY_CHECK(std::find(supported.begin(), supported.end(), isa) != supported.end(),
              "instruction set not supported here; choose_isa() checks");
  switch (isa) {
    case Isa::kGeneric:
      return cpu::kGenericKernels;
    case Isa::kAvx2:
      return cpu::kAvx2Kernels;
    case Isa::kAvx512:
      return cpu::kAvx512Kernels;
  }
  PRONY_CHECK(false, "isa out of range");
  return cpu::kGenericKernels;
}

}  // namespace prony::kernels
