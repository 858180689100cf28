// The probe of this machine is plausible, its fit finds the curve that made the points, and the
// text it writes is an entry that the catalogue accepts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "prony/catalog/hardware_file.hpp"
#include "prony/probe/hardware_text.hpp"

namespace prony::probe {
namespace {

using kernels::Dtype;

// Points that lie on a curve: peak 100 GFLOP/s, 10 GB/s.
CpuProbe made_up(const catalog::GemmCurve& curve) {
  CpuProbe probe;
  probe.threads = 2;
  probe.launch_s = 2e-6;
  probe.elementwise_bytes_per_s = 8e9;
  probe.ceilings = {.read_bytes = 1e10, .fp32_ops = 1e11, .bf16_ops = 1e11, .int8_ops = 4e11};
  probe.memory = {{1, 6e9}, {2, 1e10}};
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBf16, Dtype::kI8}) {
    const double peak = dtype == Dtype::kI8 ? 4e11 : 1e11;
    for (const int64_t rows : {1, 2, 4, 8, 16, 32, 64, 256, 1024}) {
      GemmPoint point{.dtype = dtype, .rows = rows, .outputs = 4096, .inputs = 4096};
      const double compute = point.ops() / (peak * curve.compute);
      const double memory = point.weight_bytes() / (1e10 * curve.memory);
      point.seconds = curve.floor_s + std::pow(std::pow(compute, curve.sharpness) +
                                                   std::pow(memory, curve.sharpness),
                                               1 / curve.sharpness);
      probe.gemms.push_back(point);
    }
  }
  probe.decode = {.sequences = 16,
                  .tokens = 1,
                  .context = 2047,
                  .seconds = 0.02,
                  .ops = 1e8,
                  .kv_bytes = 1.3e8};
  probe.prefill = {.sequences = 1, .tokens = 512, .context = 0, .seconds = 0.04, .ops = 2e9};
  return probe;
}

TEST(Probe, TheFitFindsTheCurve) {
  const catalog::GemmCurve curve{.floor_s = 2e-5, .compute = 0.7, .memory = 0.9, .sharpness = 3};
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kI8}) {
    const auto fitted = fit_curve(made_up(curve), dtype);
    EXPECT_LT(fitted.error, 0.002);
    EXPECT_NEAR(fitted.curve.compute, 0.7, 0.005);
    EXPECT_NEAR(fitted.curve.memory, 0.9, 0.015);  // a floor of 0.5 % of the time may trade with it
    EXPECT_EQ(fitted.curve.sharpness, 3);
  }
}

TEST(Probe, WritesAnEntryThatTheCatalogueAccepts) {
  const auto probe = made_up({.floor_s = 2e-5, .compute = 0.7, .memory = 0.9, .sharpness = 3});
  const auto text = hardware_text(probe, {.cpu = "Some \"CPU\" \\ 2.3GHz\n",
                                          .memory_bytes = 24e9,
                                          .clock_hz = 2.3e9,
                                          .taken_at = "2026-12-01T00:00:00Z"});
  const auto spec = catalog::parse_hardware_file(text, "this.yaml");
  ASSERT_TRUE(spec.ok()) << spec.error().message << "\n" << text;
  EXPECT_EQ(spec->id, "this");
  EXPECT_NEAR(spec->peak_bf16, 1e11, 1e7);
  EXPECT_NEAR(spec->peak_int8, 4e11, 1e7);  // measured: no sparse figure, though above twice
  EXPECT_NEAR(spec->memory_bandwidth, 1e10, 1e5);
  EXPECT_EQ(spec->units, 2);
  EXPECT_NEAR(spec->gemm16.compute, 0.7, 0.01);
  EXPECT_EQ(spec->gemm16.tile_rows, 1);
  EXPECT_NEAR(spec->attention.decode_memory, 0.65, 0.01);
}

TEST(Probe, OfThisMachineIsPlausible) {
  const auto probe =
      probe_cpu({.threads = 2, .quick = true, .sustained_s = 0, .buffer_bytes = 32 << 20});
  ASSERT_TRUE(probe.ok()) << probe.error().message;
  EXPECT_EQ(probe->memory.size(), 2u);
  for (const MemoryPoint& point : probe->memory) EXPECT_GT(point.read_bytes_per_s, 1e8);
  EXPECT_GT(probe->ceilings.fp32_ops, 1e8);
  EXPECT_EQ(probe->gemms.size(), 12u);
  for (const GemmPoint& point : probe->gemms) {
    // Nothing is faster than the arithmetic it needs, measured beside it; a busy host moves both.
    const double peak = point.dtype == Dtype::kI8 ? probe->ceilings.int8_ops
                        : point.dtype == Dtype::kBf16
                            ? std::max(probe->ceilings.bf16_ops, probe->ceilings.fp32_ops)
                            : probe->ceilings.fp32_ops;
    EXPECT_LT(point.ops() / point.seconds, 3 * peak) << point.rows;
  }
  EXPECT_GT(probe->decode.kv_bytes / probe->decode.seconds, 1e7);
  EXPECT_GT(probe->prefill.ops / probe->prefill.seconds, 1e7);
  EXPECT_GT(probe->launch_s, 0);
}

TEST(Probe, RefusesWhatIsNoNumberOfThreads) {
  EXPECT_THAT(probe_cpu({.threads = 0}).error().message,
              ::testing::HasSubstr("--threads: found 0"));
}

}  // namespace
}  // namespace prony::probe
