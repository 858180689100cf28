#include "prony/kernels/isa.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "prony/core/system.hpp"

namespace prony::kernels {
namespace {

constexpr Isa kAll[] = {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512};

// __builtin_cpu_supports also asks XGETBV whether the operating system saves the wide registers.
bool supported(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kGeneric:
      return true;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  }
  return false;
#else
  return isa == Isa::kGeneric;
#endif
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kGeneric:
      return "generic";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  PRONY_CHECK(false, "isa out of range");
  return {};
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  std::copy_if(std::begin(kAll), std::end(kAll), std::back_inserter(isas), supported);
  return isas;
}

Result<Isa> choose_isa(std::string_view name, std::string_view origin) {
  if (name.empty()) return supported_isas().back();
  for (const Isa isa : kAll) {
    if (isa_name(isa) != name) continue;
    if (!supported(isa)) {
      return environment_error(fmt::format("{}: this processor has no {}, expected at most {}",
                                           origin, name, isa_name(supported_isas().back())));
    }
    return isa;
  }
  return invalid_argument(
      fmt::format("{}: found '{}', expected generic, avx2 or avx512", origin, name));
}

Result<Isa> isa_from_environment() {
  return choose_isa(core::environment_variable("PRONY_ISA").value_or(""), "PRONY_ISA");
}

}  // namespace prony::kernels
