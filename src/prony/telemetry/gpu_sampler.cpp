#include "prony/telemetry/gpu_sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "prony/core/check.hpp"

namespace prony::telemetry {
namespace {

using core::Json;

struct QuantityInfo {
  const char *name, *unit, *source;
  double factor;     // NVML's unit to ours
  unsigned gpm = 0;  // NVML_GPM_METRIC_*
};
// In the order of the enumerators.
constexpr QuantityInfo kQuantityInfo[] = {
    {"busy_time", "fraction", "nvml", 0.01},
    {"memory_busy_time", "fraction", "nvml", 0.01},
    {"memory_used", "bytes", "nvml", 1},
    {"power", "W", "nvml", 1e-3},
    {"sm_clock", "MHz", "nvml", 1},
    {"memory_clock", "MHz", "nvml", 1},
    {"temperature", "C", "nvml", 1},
    {"sm_active", "fraction", "nvml-gpm", 0.01, 2},
    {"sm_occupancy", "fraction", "nvml-gpm", 0.01, 3},
    {"tensor_active", "fraction", "nvml-gpm", 0.01, 5},
    {"dram_bandwidth", "fraction", "nvml-gpm", 0.01, 10},
    {"pcie_tx", "bytes/s", "nvml-gpm", 1048576.0, 20},
    {"pcie_rx", "bytes/s", "nvml-gpm", 1048576.0, 21},
    {"nvlink_tx", "bytes/s", "nvml-gpm", 1048576.0, 61},
    {"nvlink_rx", "bytes/s", "nvml-gpm", 1048576.0, 60},
};

// NVML's nvmlClocksThrottleReason bits that hold clocks below what was asked for. Idle and the
// user's own settings are none.
struct ThrottleReason {
  unsigned long long bit;
  const char* name;
};
constexpr ThrottleReason kThrottleReasons[] = {
    {0x04, "power_cap"},        {0x08, "hw_slowdown"},      {0x10, "sync_boost"},
    {0x20, "thermal_software"}, {0x40, "thermal_hardware"}, {0x80, "power_brake"},
};

// Two samples of GPM right behind each other (an H200, 0.3 ms) give zeros or nothing.
constexpr core::Nanos kGpmIntervalMin = 50 * core::kNanosPerMilli;
constexpr double kUsedBusyTime = 0.01;  // of the run: a GPU that computed something
constexpr int kTextBytes = 96;          // NVML_DEVICE_NAME_V2_BUFFER_SIZE and _UUID_V2_

std::string text_from(int (*read)(nvml::Device, char*, unsigned), nvml::Device handle) {
  char text[kTextBytes] = {};
  if (read == nullptr || read(handle, text, kTextBytes) != nvml::kSuccess) return "unknown";
  text[kTextBytes - 1] = '\0';
  return text;
}

Json mean_of(const std::optional<Series>& series) {
  return series && series->count() > 0 ? Json(series->mean()) : Json();
}
Json max_of(const std::optional<Series>& series) {
  return series && series->count() > 0 ? Json(series->max()) : Json();
}

}  // namespace

Result<std::unique_ptr<GpuSampler>> GpuSampler::create(std::unique_ptr<NvmlApi> api) {
  static_assert(std::size(kQuantityInfo) == kQuantities);
  std::unique_ptr<GpuSampler> sampler(new GpuSampler(std::move(api)));
  auto& nvml = *sampler->api_;
  char driver[kTextBytes] = {};
  const bool known = nvml.driver_version != nullptr &&
                     nvml.driver_version(driver, kTextBytes - 1) == nvml::kSuccess;
  sampler->driver_ = known ? driver : "unknown";
  unsigned count = 0;
  if (const int result = nvml.count(&count); result != nvml::kSuccess) {
    return environment_error(fmt::format("GPUs cannot be counted: {}", nvml.text_of(result)));
  }
  for (unsigned i = 0; i < count; ++i) {
    nvml::Device handle = nullptr;
    if (const int result = nvml.handle(i, &handle); result != nvml::kSuccess) {
      sampler->note(fmt::format("gpu{}: {}", i, nvml.text_of(result)));
      continue;
    }
    sampler->add_gpu(handle, static_cast<int>(i));
  }
  if (sampler->devices_.empty()) {
    return environment_error(sampler->notes_.empty() ? "NVML finds no GPU"
                                                     : sampler->notes_.front());
  }
  return sampler;
}

GpuSampler::~GpuSampler() {
  for (auto& device : devices_) {
    for (auto* sample : {device.gpm_last, device.gpm_now}) {
      if (sample != nullptr) api_->gpm_free(sample);
    }
  }
}

void GpuSampler::note(std::string text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) {
    notes_.push_back(std::move(text));
  }
}

bool GpuSampler::done(Device& device, const char* what, int result) {
  if (result == nvml::kSuccess) return true;
  if (result == nvml::kGpuIsLost) device.lost = true;
  note(fmt::format("{}: {}: {}", device.label, what, api_->text_of(result)));
  return false;
}

void GpuSampler::describe(Device& device) {
  device.name = text_from(api_->name, device.handle);
  device.uuid = text_from(api_->uuid, device.handle);
  nvml::Memory memory{};
  if (api_->memory != nullptr && api_->memory(device.handle, &memory) == nvml::kSuccess) {
    device.memory_bytes = static_cast<int64_t>(memory.total);
  }
  for (size_t i = 0; i < kQuantities; ++i) {
    const auto& info = kQuantityInfo[i];
    device.series[i].emplace(fmt::format("{}.{}", device.label, info.name), info.unit, info.source);
  }
}

void GpuSampler::add_gpu(nvml::Device handle, int index) {
  Device gpu;
  gpu.handle = handle;
  gpu.index = index;
  gpu.label = fmt::format("gpu{}", index);
  describe(gpu);
  unsigned value = 0, pending = 0;
  if (api_->power_limit_mw != nullptr && api_->power_limit_mw(handle, &value) == nvml::kSuccess) {
    gpu.power_limit_w = value / 1000.0;
  }
  if (api_->power_mw != nullptr && api_->power_mw(handle, &value) == nvml::kSuccess) {
    gpu.idle_power_w = value / 1000.0;
  }
  gpu.has_slices = api_->mig_mode != nullptr &&
                   api_->mig_mode(handle, &value, &pending) == nvml::kSuccess && value == 1;
  if (!gpu.has_slices) open_gpm(gpu);
  devices_.push_back(std::move(gpu));
  if (devices_.back().has_slices) add_slices(handle, index);
}

void GpuSampler::add_slices(nvml::Device gpu, int index) {
  unsigned most = 0;
  if (api_->mig_count_max == nullptr || api_->mig_handle == nullptr ||
      api_->mig_count_max(gpu, &most) != nvml::kSuccess) {
    return note(fmt::format("gpu{}: MIG is on, but its slices cannot be listed", index));
  }
  for (unsigned i = 0; i < most; ++i) {
    Device slice;
    // Places without a slice are errors by design.
    if (api_->mig_handle(gpu, i, &slice.handle) != nvml::kSuccess) continue;
    slice.parent = gpu;
    slice.index = index;
    slice.slice = static_cast<int>(i);
    slice.label = fmt::format("gpu{}/mig{}", index, i);
    describe(slice);
    const bool instance =
        api_->gpu_instance != nullptr &&
        done(slice, "GPU instance", api_->gpu_instance(slice.handle, &slice.gpu_instance));
    if (instance) open_gpm(slice);
    devices_.push_back(std::move(slice));
  }
}

void GpuSampler::open_gpm(Device& device) {
  if (!api_->has_gpm()) return note("GPM: the driver's library does not have it");
  const bool slice = device.slice >= 0;
  if ((slice ? static_cast<bool>(api_->gpm_read_mig) : static_cast<bool>(api_->gpm_read)) ==
      false) {
    return note("GPM: the driver's library does not have it");
  }
  nvml::GpmSupport support{.version = nvml::kGpmVersion, .supported = 0};
  const int result = api_->gpm_support(slice ? device.parent : device.handle, &support);
  if (result != nvml::kSuccess || support.supported == 0) {
    return note(fmt::format(
        "{}: GPM: {}", device.label,
        result == nvml::kSuccess ? "not supported by this GPU" : api_->text_of(result)));
  }
  if (!done(device, "GPM sample", api_->gpm_alloc(&device.gpm_last))) return;
  done(device, "GPM sample", api_->gpm_alloc(&device.gpm_now));
}

bool GpuSampler::read_gpm_sample(Device& device, nvml::GpmSample sample) {
  const int result = device.slice >= 0
                         ? api_->gpm_read_mig(device.parent, device.gpu_instance, sample)
                         : api_->gpm_read(device.handle, sample);
  return done(device, "GPM", result);
}

std::optional<unsigned long long> GpuSampler::read_energy(Device& device) {
  unsigned long long value = 0;
  if (device.slice >= 0 || device.lost || api_->energy_mj == nullptr) return std::nullopt;
  if (!done(device, "energy", api_->energy_mj(device.handle, &value))) return std::nullopt;
  return value;
}

void GpuSampler::begin() {
  t_begin_ns_ = core::monotonic_ns();
  for (auto& device : devices_) {
    device.energy_begin_mj = read_energy(device);
    device.t_gpm_ns = core::monotonic_ns();
    device.gpm_primed = device.gpm_now != nullptr && read_gpm_sample(device, device.gpm_last);
  }
}

void GpuSampler::end() {
  for (auto& device : devices_) device.energy_end_mj = read_energy(device);
  t_end_ns_ = core::monotonic_ns();
  sample();
}

void GpuSampler::sample() {
  for (auto& device : devices_) {
    const auto t_ns = core::monotonic_ns();
    sample_device(device, t_ns);
    sample_gpm(device, t_ns);
  }
}

void GpuSampler::add(Device& device, Quantity quantity, core::Nanos t_ns, double value) {
  device.series[quantity]->add(t_ns, value * kQuantityInfo[quantity].factor);
}

void GpuSampler::sample_device(Device& device, core::Nanos t_ns) {
  if (device.lost) return;
  nvml::Memory memory{};
  if (api_->memory != nullptr && done(device, "memory", api_->memory(device.handle, &memory))) {
    add(device, kMemoryUsed, t_ns, static_cast<double>(memory.used));
  }
  if (device.slice >= 0) return;  // the rest is known of whole GPUs only
  nvml::Utilization busy{};
  if (!device.has_slices && api_->utilization != nullptr &&
      done(device, "busy time", api_->utilization(device.handle, &busy))) {
    add(device, kBusy, t_ns, busy.gpu);
    add(device, kMemoryBusy, t_ns, busy.memory);
  }
  unsigned value = 0;
  if (api_->power_mw != nullptr && done(device, "power", api_->power_mw(device.handle, &value))) {
    add(device, kPower, t_ns, value);
  }
  for (const auto& [quantity, clock] :
       {std::pair{kSmClock, nvml::kClockSm}, std::pair{kMemoryClock, nvml::kClockMemory}}) {
    if (api_->clock_mhz != nullptr &&
        done(device, "clocks", api_->clock_mhz(device.handle, clock, &value))) {
      add(device, quantity, t_ns, value);
    }
  }
  if (api_->temperature_c != nullptr &&
      done(device, "temperature", api_->temperature_c(device.handle, 0, &value))) {
    add(device, kTemperature, t_ns, value);
  }
  unsigned long long reasons = 0;
  if (api_->throttle_reasons != nullptr &&
      done(device, "throttle reasons", api_->throttle_reasons(device.handle, &reasons))) {
    ++device.throttle_samples;
    for (const auto& reason : kThrottleReasons) {
      if ((reasons & reason.bit) != 0) ++device.throttled[reason.bit];
    }
  }
}

// Metrics of GPM are means between two samples.
void GpuSampler::sample_gpm(Device& device, core::Nanos t_ns) {
  if (!device.gpm_primed || device.lost || t_ns - device.t_gpm_ns < kGpmIntervalMin) return;
  if (!read_gpm_sample(device, device.gpm_now)) return;
  device.t_gpm_ns = t_ns;
  nvml::GpmMetricsGet get{};
  get.version = nvml::kGpmVersion;
  get.begin = device.gpm_last;
  get.end = device.gpm_now;
  for (const auto& info : kQuantityInfo) {
    if (info.gpm != 0) get.metrics[get.count++].id = info.gpm;
  }
  std::swap(device.gpm_last, device.gpm_now);
  if (!done(device, "GPM", api_->gpm_metrics(&get))) return;
  for (unsigned i = 0, quantity = 0; quantity < kQuantities; ++quantity) {
    if (kQuantityInfo[quantity].gpm == 0) continue;
    const auto& metric = get.metrics[i++];
    // A GPU without NVLink has no such metric; that is no fault to note.
    if (metric.result == nvml::kSuccess) {
      add(device, static_cast<Quantity>(quantity), t_ns, metric.value);
    }
  }
}

std::vector<Json> GpuSampler::series_json() const {
  std::vector<Json> out;
  for (const auto& device : devices_) {
    for (const auto& series : device.series) {
      if (series && series->count() > 0) out.push_back(series->to_json());
    }
  }
  return out;
}

Json GpuSampler::devices_json() const {
  Json out = Json::array();
  const auto energies = energy();
  for (const auto& device : devices_) {
    Json json = Json::object();
    json["index"] = device.index;
    json["slice"] = device.slice < 0 ? Json() : Json(device.slice);
    json["name"] = device.name;
    json["uuid"] = device.uuid;
    json["memory_bytes"] = device.memory_bytes;
    json["memory_used_max_bytes"] = max_of(device.series[kMemoryUsed]);
    json["busy_time_mean"] = mean_of(device.series[kBusy]);
    json["gpm"] = device.gpm_primed;
    json["sm_active_mean"] = mean_of(device.series[kSmActive]);
    json["sm_occupancy_mean"] = mean_of(device.series[kSmOccupancy]);
    json["tensor_active_mean"] = mean_of(device.series[kTensorActive]);
    json["dram_bandwidth_mean"] = mean_of(device.series[kDramActive]);
    json["power_mean_w"] = mean_of(device.series[kPower]);
    json["power_limit_w"] = device.power_limit_w ? Json(*device.power_limit_w) : Json();
    json["idle_power_w"] = device.idle_power_w ? Json(*device.idle_power_w) : Json();
    json["sm_clock_mean_mhz"] = mean_of(device.series[kSmClock]);
    json["temperature_max_c"] = max_of(device.series[kTemperature]);
    json["energy_j"] = nullptr;
    json["energy_source"] = nullptr;
    for (const auto& energy : energies) {
      if (energy.index != device.index || device.slice >= 0) continue;
      json["energy_j"] = energy.joules;
      json["energy_source"] = energy.from_counter ? "counter" : "power";
    }
    auto& throttled = json["throttled_fraction"] = Json::object();
    for (const auto& reason : kThrottleReasons) {
      const auto found = device.throttled.find(reason.bit);
      if (found == device.throttled.end()) continue;
      throttled[reason.name] =
          static_cast<double>(found->second) / static_cast<double>(device.throttle_samples);
    }
    out.push_back(std::move(json));
  }
  return out;
}

Json GpuSampler::environment_json() const {
  Json out = Json::array();
  for (const auto& device : devices_) {
    Json json = Json::object();
    json["index"] = device.index;
    if (device.slice >= 0) json["slice"] = device.slice;
    json["name"] = device.name;
    json["uuid"] = device.uuid;
    json["memory_bytes"] = device.memory_bytes;
    json["driver"] = driver_;
    out.push_back(std::move(json));
  }
  return out;
}

std::vector<GpuEnergy> GpuSampler::energy() const {
  std::vector<GpuEnergy> out;
  const double seconds = static_cast<double>(t_end_ns_ - t_begin_ns_) / 1e9;
  for (const auto& device : devices_) {
    if (device.slice >= 0) continue;
    GpuEnergy energy;
    energy.index = device.index;
    energy.idle_power_w = device.idle_power_w;
    const auto& busy = device.series[kBusy];
    // A GPU in slices does not tell its busy time: it counts as used.
    energy.used = device.has_slices || (busy && busy->count() > 0 && busy->mean() > kUsedBusyTime);
    const auto& power = device.series[kPower];
    const auto &begin = device.energy_begin_mj, &end = device.energy_end_mj;
    if (begin && end && *end >= *begin) {
      energy.joules = static_cast<double>(*end - *begin) / 1000;
      energy.from_counter = true;
    } else if (power && power->count() > 0 && seconds > 0) {
      energy.joules = power->mean() * seconds;
    } else {
      continue;
    }
    out.push_back(energy);
  }
  return out;
}

}  // namespace prony::telemetry
