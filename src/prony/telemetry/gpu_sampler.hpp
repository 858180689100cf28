// GpuSampler: what NVML tells of this host's GPUs over a run: busy time, memory, power, energy,
// clocks, temperature, why clocks were held down, and where the driver has GPM (Hopper and later)
// how much of the DRAM bandwidth and of the tensor cores was really used. Busy time is the share of
// time in which any kernel ran: it says nothing about how much of the GPU that kernel used.
// A MIG slice is listed beside the GPU that it is part of: memory and GPM are the slice's, power
// and energy exist for the whole GPU only.
// Source: NVML API reference. Thread safety: one thread at a time.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/telemetry/nvml_api.hpp"
#include "prony/telemetry/series.hpp"

namespace prony::telemetry {

/// Energy of one GPU over an interval.
struct GpuEnergy {
  int index = 0;
  double joules = 0;
  bool from_counter = false;           // else: power samples over time
  std::optional<double> idle_power_w;  // before the load
  bool used = false;                   // it computed something in the interval
};

class GpuSampler {
 public:
  /// Lists the devices and reads their power at rest. Error: kEnvironment: no device, or NVML's
  /// word for why they cannot be counted.
  static Result<std::unique_ptr<GpuSampler>> create(std::unique_ptr<NvmlApi> api);
  ~GpuSampler();

  /// Opens the interval: energy counters and the first GPM sample. Busy time and power are means
  /// over the second before they are read, so they are not read here.
  void begin();
  void sample();
  void end();

  std::vector<core::Json> series_json() const;
  core::Json devices_json() const;      // of the record's telemetry.gpu
  core::Json environment_json() const;  // of the record's environment.gpus
  std::vector<GpuEnergy> energy() const;
  /// What could not be read, one line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  enum Quantity : size_t {
    kBusy,
    kMemoryBusy,
    kMemoryUsed,
    kPower,
    kSmClock,
    kMemoryClock,
    kTemperature,
    kSmActive,
    kSmOccupancy,
    kTensorActive,
    kDramActive,
    kPcieTx,
    kPcieRx,
    kNvlinkTx,
    kNvlinkRx,
    kQuantities,
  };
  struct Device {
    nvml::Device handle = nullptr;
    nvml::Device parent = nullptr;  // of a MIG slice
    int index = 0;                  // of the GPU; of a slice, its GPU's
    int slice = -1;                 // number of the MIG slice, -1: a whole GPU
    unsigned gpu_instance = 0;
    bool has_slices = false;
    std::string label;  // "gpu0", "gpu0/mig1"
    std::string name, uuid;
    int64_t memory_bytes = 0;
    std::optional<double> power_limit_w, idle_power_w;
    std::array<std::optional<Series>, kQuantities> series;
    std::optional<unsigned long long> energy_begin_mj, energy_end_mj;
    std::map<unsigned long long, int64_t> throttled;  // reason -> samples
    int64_t throttle_samples = 0;
    nvml::GpmSample gpm_last = nullptr, gpm_now = nullptr;
    bool gpm_primed = false;
    core::Nanos t_gpm_ns = 0;  // of gpm_last
    bool lost = false;
  };

  explicit GpuSampler(std::unique_ptr<NvmlApi> api) : api_(std::move(api)) {}
  void add_gpu(nvml::Device handle, int index);
  void add_slices(nvml::Device gpu, int index);
  void describe(Device& device);
  void open_gpm(Device& device);
  bool read_gpm_sample(Device& device, nvml::GpmSample sample);
  void sample_device(Device& device, core::Nanos t_ns);
  void sample_gpm(Device& device, core::Nanos t_ns);
  std::optional<unsigned long long> read_energy(Device& device);
  /// True on success; a failure is noted once a device and call.
  bool done(Device& device, const char* what, int result);
  void add(Device& device, Quantity quantity, core::Nanos t_ns, double value);
  void note(std::string text);

  std::unique_ptr<NvmlApi> api_;
  std::string driver_;
  std::vector<Device> devices_;
  std::vector<std::string> notes_;
  core::Nanos t_begin_ns_ = 0, t_end_ns_ = 0;
};

}  // namespace prony::telemetry
