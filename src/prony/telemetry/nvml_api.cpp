#include "prony/telemetry/nvml_api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace prony::telemetry {
namespace {

template <class F>
void find(void* library, const char* name, F*& out) {
  out = reinterpret_cast<F*>(::dlsym(library, name));
}

}  // namespace

NvmlApi::~NvmlApi() {
  if (initialised_) shutdown();
  if (library_ != nullptr) ::dlclose(library_);
}

Result<std::unique_ptr<NvmlApi>> NvmlApi::open(const std::string& library) {
  auto api = std::make_unique<NvmlApi>();
  void* const opened = api->library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* reason = ::dlerror();
    return environment_error(
        fmt::format("cannot open {}: {}", library, reason != nullptr ? reason : "unknown reason"));
  }
  find(opened, "nvmlInit_v2", api->init);
  find(opened, "nvmlShutdown", api->shutdown);
  find(opened, "nvmlDeviceGetCount_v2", api->count);
  find(opened, "nvmlDeviceGetHandleByIndex_v2", api->handle);
  if (api->init == nullptr || api->shutdown == nullptr || api->count == nullptr ||
      api->handle == nullptr) {
    return environment_error(fmt::format("{}: a function of NVML is missing", library));
  }
  find(opened, "nvmlErrorString", api->error_text);
  find(opened, "nvmlSystemGetDriverVersion", api->driver_version);
  find(opened, "nvmlDeviceGetName", api->name);
  find(opened, "nvmlDeviceGetUUID", api->uuid);
  find(opened, "nvmlDeviceGetUtilizationRates", api->utilization);
  find(opened, "nvmlDeviceGetMemoryInfo", api->memory);
  find(opened, "nvmlDeviceGetPowerUsage", api->power_mw);
  find(opened, "nvmlDeviceGetTotalEnergyConsumption", api->energy_mj);
  find(opened, "nvmlDeviceGetEnforcedPowerLimit", api->power_limit_mw);
  find(opened, "nvmlDeviceGetClockInfo", api->clock_mhz);
  find(opened, "nvmlDeviceGetTemperature", api->temperature_c);
  find(opened, "nvmlDeviceGetCurrentClocksThrottleReasons", api->throttle_reasons);
  find(opened, "nvmlDeviceGetMigMode", api->mig_mode);
  find(opened, "nvmlDeviceGetMaxMigDeviceCount", api->mig_count_max);
  find(opened, "nvmlDeviceGetMigDeviceHandleByIndex", api->mig_handle);
  find(opened, "nvmlDeviceGetGpuInstanceId", api->gpu_instance);
  find(opened, "nvmlGpmQueryDeviceSupport", api->gpm_support);
  find(opened, "nvmlGpmSampleAlloc", api->gpm_alloc);
  find(opened, "nvmlGpmSampleFree", api->gpm_free);
  find(opened, "nvmlGpmSampleGet", api->gpm_read);
  find(opened, "nvmlGpmMigSampleGet", api->gpm_read_mig);
  find(opened, "nvmlGpmMetricsGet", api->gpm_metrics);
  const int result = api->init();
  if (result != nvml::kSuccess) {
    return environment_error(fmt::format("{}: {}", library, api->text_of(result)));
  }
  api->initialised_ = true;
  return api;
}

std::string NvmlApi::text_of(int result) const {
  const char* text = error_text != nullptr ? error_text(result) : nullptr;
  return text != nullptr ? text : fmt::format("NVML result {}", result);
}

}  // namespace prony::telemetry
