#include "prony/kernels/kernels.hpp"

#include <algorithm>

#include "prony/core/check.hpp"
#include "prony/kernels/cpu/tables.hpp"

namespace prony::kernels {
namespace {

// A table that differs from AVX-512's in its products only.
Kernels with_matmul(Isa isa, decltype(Kernels::matmul) matmul) {
  Kernels kernels = cpu::kAvx512Kernels;
  kernels.isa = isa;
  kernels.matmul = matmul;
  return kernels;
}

}  // namespace

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
    case Isa::kVnni: {
      static const Kernels kernels = with_matmul(isa, &cpu::matmul_vnni);
      return kernels;
    }
    case Isa::kAmx: {
      static const Kernels kernels = with_matmul(isa, &cpu::matmul_amx);
      return kernels;
    }
  }
  PRONY_CHECK(false, "isa out of range");
  return cpu::kGenericKernels;
}

}  // namespace prony::kernels
