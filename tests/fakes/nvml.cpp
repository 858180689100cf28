// A libnvidia-ml.so for tests: two GPUs that behave as the variable FAKE_NVML says (words with
// commas), so that the whole path from dlopen to the record runs on any machine.
//   none       no device                       init-fails   nvmlInit reports no driver
//   no-gpm     GPM not supported               no-energy    no energy counter (older than Volta)
//   mig        GPU 0 is cut into two slices    lost         GPU 1 is lost after its first reading
//   throttled  GPU 0 is held down by its power cap
// Built a second time with FAKE_NVML_OLD, without the symbols that old libraries lack, and a third
// time with FAKE_NVML_BROKEN, without one that is required.
// GPU 0 draws 300 W and is 75 % busy, GPU 1 rests at 60 W. Energy counters follow CLOCK_MONOTONIC.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kInvalid = 2, kNotSupported = 3, kNotFound = 6, kNoDriver = 9, kLost = 15;

struct Gpu {
  int index, slice;
};
Gpu gpus[2] = {{0, -1}, {1, -1}};
Gpu slices[2] = {{0, 0}, {0, 1}};
int open_samples = 0, readings_of_gpu1 = 0;

bool mode(const char* word) {
  const char* text = std::getenv("FAKE_NVML");
  return text != nullptr && std::strstr(text, word) != nullptr;
}

double seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Gpu& gpu(void* device) {
  return *static_cast<Gpu*>(device);
}
bool lost(void* device) {
  return gpu(device).index == 1 && mode("lost") && ++readings_of_gpu1 > 1;
}

struct Sample {
  double t;
  int slice;
};

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return mode("init-fails") ? kNoDriver : kSuccess;
}
// What was not freed is a bug of ours; the test program's exit code is the only way to tell.
int nvmlShutdown() {
  if (open_samples != 0) std::abort();
  return kSuccess;
}
const char* nvmlErrorString(int result) {
  switch (result) {
    case kNotSupported:
      return "Not Supported";
    case kNoDriver:
      return "Driver Not Loaded";
    case kLost:
      return "GPU is lost";
    default:
      return "Unknown Error";
  }
}
#ifndef FAKE_NVML_BROKEN
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = mode("none") ? 0 : 2;
  return kSuccess;
}
#endif
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index > 1) return kInvalid;
  *device = &gpus[index];
  return kSuccess;
}
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::snprintf(text, length, "999.01");
  return kSuccess;
}
int nvmlDeviceGetName(void* device, char* text, unsigned length) {
  std::snprintf(text, length, gpu(device).slice < 0 ? "Fake GPU" : "Fake GPU MIG 3g.40gb");
  return kSuccess;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned length) {
  const auto& it = gpu(device);
  if (it.slice < 0) {
    std::snprintf(text, length, "GPU-%d", it.index);
  } else {
    std::snprintf(text, length, "MIG-%d-%d", it.index, it.slice);
  }
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* total_free_used) {
  if (lost(device)) return kLost;
  const auto& it = gpu(device);
  total_free_used[0] = it.slice < 0 ? 80000000000ULL : 40000000000ULL;
  total_free_used[2] = it.index == 0 ? 20000000000ULL : 1000000000ULL;
  total_free_used[1] = total_free_used[0] - total_free_used[2];
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* gpu_memory) {
  if (lost(device)) return kLost;
  if (gpu(device).index == 0 && mode("mig")) return kNotSupported;
  gpu_memory[0] = gpu(device).index == 0 ? 75 : 0;
  gpu_memory[1] = gpu(device).index == 0 ? 40 : 0;
  return kSuccess;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = gpu(device).index == 0 ? 300000 : 60000;
  return kSuccess;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700000;
  return kSuccess;
}
int nvmlDeviceGetClockInfo(void*, unsigned type, unsigned* mhz) {
  *mhz = type == 1 ? 1980 : 2619;
  return kSuccess;
}
int nvmlDeviceGetTemperature(void*, unsigned, unsigned* celsius) {
  *celsius = 55;
  return kSuccess;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = 1;  // idle, which holds nothing down
  if (gpu(device).index == 0 && mode("throttled")) *reasons |= 4;
  return kSuccess;
}

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (mode("no-energy")) return kNotSupported;
  *millijoules = static_cast<unsigned long long>(seconds() * 1000 *
                                                 (gpu(device).index == 0 ? 300 : 60));
  return kSuccess;
}
int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *current = *pending = gpu(device).index == 0 && mode("mig") ? 1 : 0;
  return kSuccess;
}
int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = 7;
  return kSuccess;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void*, unsigned index, void** device) {
  if (index != 1 && index != 4) return kNotFound;  // places between the slices are empty
  *device = &slices[index == 4];
  return kSuccess;
}
int nvmlDeviceGetGpuInstanceId(void* device, unsigned* id) {
  *id = gpu(device).slice == 0 ? 1 : 5;
  return kSuccess;
}

struct Support {
  unsigned version, supported;
};
int nvmlGpmQueryDeviceSupport(void*, Support* support) {
  if (support->version != 1) return kInvalid;
  support->supported = mode("no-gpm") ? 0 : 1;
  return kSuccess;
}
int nvmlGpmSampleAlloc(void** sample) {
  *sample = new Sample{};
  ++open_samples;
  return kSuccess;
}
int nvmlGpmSampleFree(void* sample) {
  delete static_cast<Sample*>(sample);
  --open_samples;
  return kSuccess;
}
int nvmlGpmSampleGet(void* device, void* sample) {
  if (gpu(device).slice >= 0) return kInvalid;
  *static_cast<Sample*>(sample) = {seconds(), -1};
  return kSuccess;
}
int nvmlGpmMigSampleGet(void* device, unsigned instance, void* sample) {
  if (gpu(device).slice >= 0) return kInvalid;  // wants the whole GPU and the instance
  *static_cast<Sample*>(sample) = {seconds(), instance == 1 ? 0 : 1};
  return kSuccess;
}

struct Metric {
  unsigned id;
  int result;
  double value;
  const char* info[3];
};
struct MetricsGet {
  unsigned version, count;
  Sample *begin, *end;
  Metric metrics[16];
};
int nvmlGpmMetricsGet(MetricsGet* get) {
  if (get->version != 1 || get->end->t < get->begin->t) return kInvalid;
  for (unsigned i = 0; i < get->count; ++i) {
    auto& metric = get->metrics[i];
    metric.result = kSuccess;
    switch (metric.id) {
      case 2:  // SM active [%]
        metric.value = 60;
        break;
      case 3:
        metric.value = 25;
        break;
      case 5:
        metric.value = 12.5;
        break;
      case 10:  // DRAM bandwidth [%]
        metric.value = get->end->slice == 1 ? 5 : 42;
        break;
      case 20:  // PCIe [MiB/s]
      case 21:
        metric.value = 100;
        break;
      default:
        metric.result = kNotSupported;
    }
  }
  return kSuccess;
}
#endif

}  // extern "C"
