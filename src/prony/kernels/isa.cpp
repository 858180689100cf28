#include "prony/kernels/isa.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "prony/core/system.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace prony::kernels {
namespace {

constexpr Isa kAll[] = {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kVnni, Isa::kAmx};

#if defined(__x86_64__)

// Register sets that the operating system saves (XCR0); 0 if it does not say.
uint64_t saved_states() {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & bit_OSXSAVE) == 0) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

// Tile data (8 KiB a thread) is given to processes that ask only; threads started later have it
// too. Source: Linux, Documentation/arch/x86/xstate.rst.
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // the state component
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

CpuFeatures detect_once() {
  constexpr uint64_t kAvxStates = 0x6, kAvx512States = 0xE6, kTileStates = 0x60000;
  CpuFeatures features;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  const uint64_t saved = saved_states();
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return features;
  const bool avx = (saved & kAvxStates) == kAvxStates;
  features.fma = avx && (ecx & bit_FMA) != 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return features;
  features.avx2 = avx && (ebx & bit_AVX2) != 0;
  const bool wide = (saved & kAvx512States) == kAvx512States;
  features.avx512f = wide && (ebx & bit_AVX512F) != 0;
  features.avx512bw = wide && (ebx & bit_AVX512BW) != 0;
  features.avx512dq = wide && (ebx & bit_AVX512DQ) != 0;
  features.avx512vl = wide && (ebx & bit_AVX512VL) != 0;
  features.avx512_vnni = wide && (ecx & bit_AVX512VNNI) != 0;
  const bool tiles = (saved & kTileStates) == kTileStates;
  features.amx_bf16 = tiles && (edx & 1u << 22) != 0;
  features.amx_tile = tiles && (edx & 1u << 24) != 0;
  features.amx_int8 = tiles && (edx & 1u << 25) != 0;
  features.tile_permission = features.amx_tile && request_tiles();
  return features;
}

#else

CpuFeatures detect_once() {
  return {};
}

#endif

}  // namespace

CpuFeatures detect_features() {
  static const CpuFeatures features = detect_once();
  return features;
}

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kGeneric:
      return "generic";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kVnni:
      return "avx512vnni";
    case Isa::kAmx:
      return "amx";
  }
  PRONY_CHECK(false, "isa out of range");
  return {};
}

std::vector<Isa> isas_of(const CpuFeatures& f) {
  std::vector<Isa> isas = {Isa::kGeneric};
  const bool has[] = {f.avx2 && f.fma, f.avx512f && f.avx512bw && f.avx512dq && f.avx512vl,
                      f.avx512_vnni, f.amx_tile && f.amx_bf16 && f.amx_int8 && f.tile_permission};
  for (size_t i = 0; i < std::size(has) && has[i]; ++i) isas.push_back(kAll[i + 1]);
  return isas;
}

std::vector<Isa> supported_isas() {
  return isas_of(detect_features());
}

Result<Isa> choose_isa(std::string_view name, std::string_view origin) {
  const std::vector<Isa> supported = supported_isas();
  if (name.empty()) return supported.back();
  for (const Isa isa : kAll) {
    if (isa_name(isa) != name) continue;
    if (std::find(supported.begin(), supported.end(), isa) == supported.end()) {
      return environment_error(fmt::format("{}: this processor has no {}, expected at most {}",
                                           origin, name, isa_name(supported.back())));
    }
    return isa;
  }
  return invalid_argument(fmt::format(
      "{}: found '{}', expected generic, avx2, avx512, avx512vnni or amx", origin, name));
}

Result<Isa> isa_from_environment() {
  return choose_isa(core::environment_variable("PRONY_ISA").value_or(""), "PRONY_ISA");
}

}  // namespace prony::kernels
