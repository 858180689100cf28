// Isa: the instruction set levels the CPU kernels exist in. Which one runs is decided at run time
// from the processor's feature bits, never from its family or model: virtual machines misreport
// those. Every level gives the same bits (see kernels.hpp), so the choice changes speed only.
// Thread safety: pure functions; detect_features asks the kernel once for the tile registers,
// isa_from_environment reads the environment.
#pragma once
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::kernels {

enum class Isa {
  kGeneric,  // plain C++
  kAvx2,     // AVX2 and FMA
  kAvx512,   // AVX-512 F, BW, DQ, VL and FMA
  kVnni,     // and AVX-512 VNNI: products in int8
  kAmx,      // and AMX tiles: products of many rows in bf16 and int8
};

/// "generic", "avx2", "avx512", "avx512vnni" or "amx".
std::string_view isa_name(Isa isa);

/// What a level needs: bits of CPUID, and that the operating system saves the registers.
struct CpuFeatures {
  bool avx2 = false, fma = false;
  bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false;
  bool avx512_vnni = false;
  bool amx_tile = false, amx_bf16 = false, amx_int8 = false;
  bool tile_permission = false;  // granted to this process: Linux asks for a request
};

/// Of this machine. Requests the permission for tile registers if they are there.
CpuFeatures detect_features();

/// Levels that a processor with these features runs, slowest first; never empty. A level needs all
/// below it.
std::vector<Isa> isas_of(const CpuFeatures& features);

/// Levels that this processor and its operating system support: isas_of(detect_features()).
std::vector<Isa> supported_isas();

/// The level called `name`; an empty name means the fastest supported one.
/// Error: kInvalidArgument if the name is unknown, kEnvironment if this processor lacks the level.
/// Both name `origin`, the flag or variable the name came from.
Result<Isa> choose_isa(std::string_view name, std::string_view origin);

/// choose_isa of the variable PRONY_ISA, which tests and doubtful users set to force a lower level.
Result<Isa> isa_from_environment();

}  // namespace prony::kernels
