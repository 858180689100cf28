// Isa: the instruction set levels the CPU kernels exist in. Which one runs is decided at run time
// from the processor's feature bits, never from its family or model: virtual machines misreport
// those. Every level gives the same bits (see kernels.hpp), so the choice changes speed only.
// Thread safety: pure functions; isa_from_environment reads the environment.
#pragma once
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::kernels {

enum class Isa {
  kGeneric,  // plain C++
  kAvx2,     // AVX2 and FMA
  kAvx512,   // AVX-512 F, BW, DQ, VL and FMA
};

/// "generic", "avx2" or "avx512".
std::string_view isa_name(Isa isa);

/// Levels that this processor and its operating system support, slowest first; never empty.
std::vector<Isa> supported_isas();

/// The level called `name`; an empty name means the fastest supported one.
/// Error: kInvalidArgument if the name is unknown, kEnvironment if this processor lacks the level.
/// Both name `origin`, the flag or variable the name came from.
Result<Isa> choose_isa(std::string_view name, std::string_view origin);

/// choose_isa of the variable PRONY_ISA, which tests and doubtful users set to force a lower level.
Result<Isa> isa_from_environment();

}  // namespace prony::kernels
