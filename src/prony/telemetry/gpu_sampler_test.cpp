// Tests of the path from dlopen to the record: against the NVML of tests/fakes/nvml.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "prony/telemetry/gpu_sampler.hpp"

namespace prony::telemetry {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kFake = PRONY_FAKE_NVML ".so";

// The fake behaves as `words` say while this lives.
class Mode {
 public:
  explicit Mode(const char* words) { ::setenv("FAKE_NVML", words, 1); }
  ~Mode() { ::unsetenv("FAKE_NVML"); }
};

std::unique_ptr<GpuSampler> open_fake(const char* library = kFake) {
  auto sampler = GpuSampler::create(NvmlApi::open(library).value());
  EXPECT_TRUE(sampler.ok());
  return std::move(sampler).value();
}

void run(GpuSampler& sampler) {
  sampler.begin();
  core::MonotonicClock().sleep_until(core::monotonic_ns() + 60 * core::kNanosPerMilli);
  sampler.sample();
  sampler.end();
}

std::map<std::string, core::Json> series_of(const GpuSampler& sampler) {
  std::map<std::string, core::Json> out;
  for (auto& one : sampler.series_json()) out[one["name"]] = one;
  return out;
}

TEST(NvmlApi, ErrorsAreOfTheEnvironment) {
  EXPECT_THAT(NvmlApi::open("libno-such-library.so.1").error().message,
              HasSubstr("cannot open libno-such-library.so.1"));
  EXPECT_THAT(NvmlApi::open(PRONY_FAKE_NVML "_broken.so").error().message,
              HasSubstr("a function of NVML is missing"));
  const Mode mode("init-fails");
  EXPECT_THAT(NvmlApi::open(kFake).error().message, HasSubstr("Driver Not Loaded"));
}

TEST(GpuSampler, NoDevice) {
  const Mode mode("none");
  EXPECT_EQ(GpuSampler::create(NvmlApi::open(kFake).value()).error().message, "NVML finds no GPU");
}

TEST(GpuSampler, EverythingOfTwoGpus) {
  const auto sampler = open_fake();
  run(*sampler);
  auto series = series_of(*sampler);
  EXPECT_EQ(series["gpu0.busy_time"]["mean"], 0.75);
  EXPECT_EQ(series["gpu0.power"]["mean"], 300);
  EXPECT_EQ(series["gpu0.power"]["unit"], "W");
  EXPECT_EQ(series["gpu0.memory_used"]["max"], 20e9);
  EXPECT_EQ(series["gpu0.sm_clock"]["mean"], 1980);
  EXPECT_EQ(series["gpu0.memory_clock"]["mean"], 2619);
  EXPECT_EQ(series["gpu0.temperature"]["max"], 55);
  // GPM is told apart from busy time.
  EXPECT_DOUBLE_EQ(series["gpu0.dram_bandwidth"]["mean"].get<double>(), 0.42);
  EXPECT_EQ(series["gpu0.dram_bandwidth"]["source"], "nvml-gpm");
  EXPECT_EQ(series["gpu0.busy_time"]["source"], "nvml");
  EXPECT_DOUBLE_EQ(series["gpu0.sm_active"]["mean"].get<double>(), 0.6);
  EXPECT_DOUBLE_EQ(series["gpu0.sm_occupancy"]["mean"].get<double>(), 0.25);
  EXPECT_DOUBLE_EQ(series["gpu0.tensor_active"]["mean"].get<double>(), 0.125);
  EXPECT_EQ(series["gpu0.pcie_tx"]["mean"], 100.0 * 1048576);
  EXPECT_EQ(series.count("gpu0.nvlink_tx"), 0U);  // this GPU has no NVLink
  EXPECT_EQ(series["gpu1.busy_time"]["mean"], 0);

  const auto devices = sampler->devices_json();
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0]["name"], "Fake GPU");
  EXPECT_EQ(devices[0]["uuid"], "GPU-0");
  EXPECT_EQ(devices[0]["slice"], nullptr);
  EXPECT_EQ(devices[0]["gpm"], true);
  EXPECT_EQ(devices[0]["power_limit_w"], 700);
  EXPECT_EQ(devices[0]["energy_source"], "counter");
  EXPECT_TRUE(devices[0]["throttled_fraction"].empty());
  EXPECT_EQ(sampler->environment_json()[1]["driver"], "999.01");
  EXPECT_THAT(sampler->notes(), IsEmpty());
}

TEST(GpuSampler, EnergyIsTheCountersDifference) {
  const auto sampler = open_fake();
  const auto begin = core::monotonic_ns();
  run(*sampler);
  const double seconds = static_cast<double>(core::monotonic_ns() - begin) / 1e9;
  const auto energy = sampler->energy();
  ASSERT_EQ(energy.size(), 2U);
  EXPECT_TRUE(energy[0].from_counter);
  EXPECT_GE(energy[0].joules, 300 * 0.050 - 0.001);
  EXPECT_LE(energy[0].joules, 300 * seconds + 0.001);
  EXPECT_EQ(energy[0].idle_power_w, 300);
  EXPECT_TRUE(energy[0].used);
  EXPECT_FALSE(energy[1].used);
}

TEST(GpuSampler, WithoutACounterEnergyIsPowerOverTime) {
  const Mode mode("no-energy");
  const auto sampler = open_fake();
  run(*sampler);
  const auto energy = sampler->energy();
  EXPECT_FALSE(energy[0].from_counter);
  EXPECT_GE(energy[0].joules, 300 * 0.050);
  EXPECT_EQ(sampler->devices_json()[0]["energy_source"], "power");
  EXPECT_THAT(sampler->notes(), Contains("gpu0: energy: Not Supported"));
}

TEST(GpuSampler, AnOldLibraryLacksSymbols) {
  const auto sampler = open_fake(PRONY_FAKE_NVML "_old.so");
  run(*sampler);
  auto series = series_of(*sampler);
  EXPECT_EQ(series["gpu0.power"]["mean"], 300);
  EXPECT_EQ(series.count("gpu0.dram_bandwidth"), 0U);
  EXPECT_FALSE(sampler->energy()[0].from_counter);
  EXPECT_THAT(sampler->notes(), ElementsAre("GPM: the driver's library does not have it"));
}

TEST(GpuSampler, AGpuWithoutGpm) {
  const Mode mode("no-gpm");
  const auto sampler = open_fake();
  run(*sampler);
  EXPECT_EQ(series_of(*sampler).count("gpu0.dram_bandwidth"), 0U);
  EXPECT_EQ(sampler->devices_json()[0]["gpm"], false);
  EXPECT_EQ(sampler->devices_json()[0]["dram_bandwidth_mean"], nullptr);
  EXPECT_THAT(sampler->notes(), ElementsAre("gpu0: GPM: not supported by this GPU",
                                            "gpu1: GPM: not supported by this GPU"));
}

TEST(GpuSampler, MigSlicesBesideTheirGpu) {
  const Mode mode("mig");
  const auto sampler = open_fake();
  run(*sampler);
  auto series = series_of(*sampler);
  EXPECT_EQ(series.count("gpu0.busy_time"), 0U);  // a GPU in slices does not tell it
  EXPECT_EQ(series["gpu0.power"]["mean"], 300);
  EXPECT_DOUBLE_EQ(series["gpu0/mig1.dram_bandwidth"]["mean"].get<double>(), 0.42);
  EXPECT_DOUBLE_EQ(series["gpu0/mig4.dram_bandwidth"]["mean"].get<double>(), 0.05);
  EXPECT_EQ(series.count("gpu0/mig1.power"), 0U);
  const auto devices = sampler->devices_json();
  ASSERT_EQ(devices.size(), 4U);
  EXPECT_EQ(devices[1]["slice"], 1);
  EXPECT_EQ(devices[1]["index"], 0);
  EXPECT_EQ(devices[1]["uuid"], "MIG-0-0");
  EXPECT_EQ(devices[1]["energy_j"], nullptr);
  EXPECT_EQ(devices[2]["slice"], 4);
  EXPECT_EQ(sampler->energy().size(), 2U);
  EXPECT_TRUE(sampler->energy()[0].used);
}

TEST(GpuSampler, ALostGpuIsNotedAndTheOtherGoesOn) {
  const Mode mode("lost");
  const auto sampler = open_fake();
  run(*sampler);
  sampler->sample();
  EXPECT_EQ(series_of(*sampler)["gpu0.power"]["n"], 3);
  EXPECT_EQ(series_of(*sampler).count("gpu1.busy_time"), 0U);
  EXPECT_THAT(sampler->notes(), Contains(HasSubstr("gpu1: memory: GPU is lost")));
}

// The reading at the end of a run may come right behind one of the interval.
TEST(GpuSampler, GpmNeedsTimeBetweenItsSamples) {
  const auto sampler = open_fake();
  run(*sampler);
  sampler->sample();
  EXPECT_EQ(series_of(*sampler)["gpu0.power"]["n"], 3);
  EXPECT_EQ(series_of(*sampler)["gpu0.dram_bandwidth"]["n"], 1);
}

// On a host with a GPU: that the declarations fit the real library. Skipped elsewhere.
TEST(GpuSampler, RealGpu) {
  auto api = NvmlApi::open();
  if (!api) GTEST_SKIP() << api.error().message;
  auto made = GpuSampler::create(std::move(api).value());
  if (!made) GTEST_SKIP() << made.error().message;
  auto& sampler = *made.value();
  run(sampler);
  for (const auto& note : sampler.notes()) RecordProperty("note", note);
  const auto devices = sampler.devices_json();
  ASSERT_GE(devices.size(), 1U);
  for (const auto& gpu : devices) {
    EXPECT_GT(gpu["memory_bytes"].get<int64_t>(), 1 << 30);
    EXPECT_NE(gpu["name"], "unknown");
    for (const char* share : {"busy_time_mean", "sm_active_mean", "dram_bandwidth_mean"}) {
      if (gpu[share].is_null()) continue;
      EXPECT_GE(gpu[share].get<double>(), 0) << share;
      EXPECT_LE(gpu[share].get<double>(), 1.05) << share;
    }
    if (!gpu["power_mean_w"].is_null()) {
      EXPECT_GT(gpu["power_mean_w"].get<double>(), 1);
      EXPECT_LT(gpu["power_mean_w"].get<double>(), 3000);
    }
  }
}

TEST(GpuSampler, ThrottleReasons) {
  const Mode mode("throttled");
  const auto sampler = open_fake();
  run(*sampler);
  EXPECT_EQ(sampler->devices_json()[0]["throttled_fraction"]["power_cap"], 1.0);
  EXPECT_TRUE(sampler->devices_json()[1]["throttled_fraction"].empty());
}

}  // namespace
}  // namespace prony::telemetry
