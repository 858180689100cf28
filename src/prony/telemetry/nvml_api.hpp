// NvmlApi: the functions of NVIDIA's management library that are used here, declared by us and
// found at run time, so that nothing is linked and a host without a driver lacks nothing. What an
// old library does not have is a null pointer.
// Source: NVML API reference (names, layouts and numbers are its stable binary interface).
// Thread safety: NVML's own functions may be called from any thread.
#pragma once
#include <memory>
#include <string>

#include "prony/core/result.hpp"

namespace prony::telemetry {

namespace nvml {

using Device = void*;
using GpmSample = void*;

inline constexpr int kSuccess = 0;
inline constexpr int kNotSupported = 3;
inline constexpr int kGpuIsLost = 15;

struct Utilization {
  unsigned gpu, memory;  // percent of time in which a kernel ran; in which memory was accessed
};
struct Memory {
  unsigned long long total, free, used;  // bytes
};
struct GpmSupport {
  unsigned version, supported;
};
struct GpmMetric {
  unsigned id;
  int result;
  double value;
  struct {
    char *short_name, *long_name, *unit;
  } info;
};
// The library's array has a length that grew with its versions; it touches as many entries as
// `count` says, so ours only has to be as long as that.
struct GpmMetricsGet {
  unsigned version, count;
  GpmSample begin, end;
  GpmMetric metrics[16];
};
inline constexpr unsigned kGpmVersion = 1;

inline constexpr unsigned kClockSm = 1, kClockMemory = 2;

}  // namespace nvml

struct NvmlApi {
  // Required: without one of them the library is refused.
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, nvml::Device*) = nullptr;
  // Optional.
  const char* (*error_text)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*name)(nvml::Device, char*, unsigned) = nullptr;
  int (*uuid)(nvml::Device, char*, unsigned) = nullptr;
  int (*utilization)(nvml::Device, nvml::Utilization*) = nullptr;
  int (*memory)(nvml::Device, nvml::Memory*) = nullptr;
  int (*power_mw)(nvml::Device, unsigned*) = nullptr;
  int (*energy_mj)(nvml::Device, unsigned long long*) = nullptr;
  int (*power_limit_mw)(nvml::Device, unsigned*) = nullptr;
  int (*clock_mhz)(nvml::Device, unsigned, unsigned*) = nullptr;
  int (*temperature_c)(nvml::Device, unsigned, unsigned*) = nullptr;
  int (*throttle_reasons)(nvml::Device, unsigned long long*) = nullptr;
  int (*mig_mode)(nvml::Device, unsigned*, unsigned*) = nullptr;
  int (*mig_count_max)(nvml::Device, unsigned*) = nullptr;
  int (*mig_handle)(nvml::Device, unsigned, nvml::Device*) = nullptr;
  int (*gpu_instance)(nvml::Device, unsigned*) = nullptr;
  int (*gpm_support)(nvml::Device, nvml::GpmSupport*) = nullptr;
  int (*gpm_alloc)(nvml::GpmSample*) = nullptr;
  int (*gpm_free)(nvml::GpmSample) = nullptr;
  int (*gpm_read)(nvml::Device, nvml::GpmSample) = nullptr;
  int (*gpm_read_mig)(nvml::Device, unsigned, nvml::GpmSample) = nullptr;
  int (*gpm_metrics)(nvml::GpmMetricsGet*) = nullptr;

  ~NvmlApi();
  NvmlApi() = default;
  NvmlApi(const NvmlApi&) = delete;
  NvmlApi& operator=(const NvmlApi&) = delete;

  /// Opens the library (a name for the loader, or a path) and initialises it; the destructor shuts
  /// it down. Error: kEnvironment: no such library, a required function missing, or what nvmlInit
  /// said.
  static Result<std::unique_ptr<NvmlApi>> open(const std::string& library = "libnvidia-ml.so.1");

  /// NVML's words for a result.
  std::string text_of(int result) const;
  bool has_gpm() const {
    return gpm_support != nullptr && gpm_alloc != nullptr && gpm_free != nullptr &&
           gpm_metrics != nullptr;
  }

 private:
  void* library_ = nullptr;
  bool initialised_ = false;
};

}  // namespace prony::telemetry
