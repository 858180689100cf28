// Hardware and engine files: the shipped ones against facts that are known elsewhere, slices and
// clocks by hand, and golden messages for files with one fault each (PRONY_UPDATE_GOLDEN=1 rewrites
// them; read the diff before committing it).
#include "prony/catalog/hardware_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "prony/catalog/engine_profile.hpp"
#include "prony/core/file.hpp"
#include "prony/core/system.hpp"

namespace prony::catalog {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

HardwareSpec hardware(const std::string& id) {
  auto spec = resolve_hardware(id);
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
  return *std::move(spec);
}

TEST(HardwareFiles, AllShippedOnesLoadUnderTheirNames) {
  const auto ids = hardware_ids().value();
  ASSERT_GE(ids.size(), 22U);
  for (const std::string& id : ids) {
    const HardwareSpec spec = hardware(id);
    EXPECT_EQ(spec.id, id);
    EXPECT_GT(spec.gemm16.compute, 0) << id;
    EXPECT_GT(spec.attention.plateau, 0) << id;
    // A device that others can reach has latencies for it.
    if (spec.topology != LinkTopology::kNone) {
      EXPECT_GT(spec.link_bandwidth, 0) << id;
      EXPECT_GT(spec.link.library_base_s, 0) << id;
    }
  }
  for (const char* id : {"a100-40-sxm", "a100-40-pcie", "a100-80-sxm", "a100-80-pcie",
                         "a800-80-sxm", "h100-sxm",     "h100-pcie",   "h100-nvl",
                         "h800-sxm",    "h20-sxm",      "h200-sxm",    "l40",
                         "l40s",        "l4",           "rtx-4090",    "jetson-agx-orin-64",
                         "b200-sxm",    "gb200",        "mi300x",      "tpu-v4",
                         "tpu-v5e",     "tpu-v5p",      "cpu-host"}) {
    EXPECT_THAT(ids, Contains(id));
  }
}

TEST(HardwareFiles, NumbersArriveInTheProgramsUnits) {
  const HardwareSpec h100 = hardware("h100-sxm");
  EXPECT_DOUBLE_EQ(h100.peak_bf16, 989.4e12);
  EXPECT_DOUBLE_EQ(h100.memory_bandwidth, 3.35e12);
  EXPECT_DOUBLE_EQ(h100.memory_bytes, 80.0 * 1024 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(h100.link_bandwidth, 450e9) << "900 both ways are 450 one-way";
  EXPECT_DOUBLE_EQ(h100.l2_bytes, 50e6);
  EXPECT_EQ(h100.topology, LinkTopology::kSwitch);
  EXPECT_EQ(h100.link_devices, 8);
  EXPECT_DOUBLE_EQ(hardware("h800-sxm").link_bandwidth, 200e9);
  EXPECT_DOUBLE_EQ(hardware("a100-80-sxm").peak_fp8, 0) << "Ampere has no fp8";
  EXPECT_EQ(hardware("l40s").topology, LinkTopology::kNone);
  EXPECT_LT(hardware("rtx-4090").peak_bf16, 170e12) << "the FP16-accumulate rate is not BF16's";
}

TEST(HardwareFiles, ASliceIsADeviceOfItsOwn) {
  const HardwareSpec whole = hardware("a100-80-sxm"), slice = hardware("a100-80-sxm:3g.40gb");
  EXPECT_EQ(slice.id, "a100-80-sxm:3g.40gb");
  EXPECT_NEAR(slice.peak_bf16, whole.peak_bf16 * 3 / 7, 1e9);
  EXPECT_DOUBLE_EQ(slice.memory_bytes, whole.memory_bytes / 2);
  EXPECT_DOUBLE_EQ(slice.memory_bandwidth, whole.memory_bandwidth / 2);
  EXPECT_EQ(slice.topology, LinkTopology::kNone);
  EXPECT_EQ(slice.link_devices, 1);
  EXPECT_THAT(resolve_hardware("a100-80-sxm:9g.90gb").error().message,
              HasSubstr("unknown slice '9g.90gb' of a100-80-sxm, expected one of: 1g.10gb"));
  EXPECT_THAT(resolve_hardware("l40s:1g.5gb").error().message, HasSubstr("expected one of: none"));
}

TEST(HardwareFiles, ACappedClockScalesComputeOnly) {
  const HardwareSpec spec = hardware("a100-80-sxm"), capped = at_clock(spec, 705e6);
  EXPECT_DOUBLE_EQ(capped.peak_bf16, spec.peak_bf16 / 2);
  EXPECT_DOUBLE_EQ(capped.peak_int8, spec.peak_int8 / 2);
  EXPECT_DOUBLE_EQ(capped.memory_bandwidth, spec.memory_bandwidth);
  EXPECT_DOUBLE_EQ(capped.link_bandwidth, spec.link_bandwidth);
}

TEST(HardwareFiles, AnUnknownNameGivesTheNearest) {
  const auto spec = resolve_hardware("h100-smx");
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(spec.error().message,
              HasSubstr("unknown hardware 'h100-smx', did you mean 'h100-sxm'"));
  EXPECT_FALSE(resolve_hardware("../models/llama-3.1-8b").ok());
  EXPECT_FALSE(resolve_hardware("").ok());
}

TEST(EngineFiles, AllShippedOnesLoadUnderTheirNames) {
  const auto ids = engine_ids().value();
  EXPECT_THAT(ids, testing::IsSupersetOf({"vllm", "sglang", "trtllm", "llamacpp", "prony"}));
  for (const std::string& id : ids) {
    const auto profile = resolve_engine(id);
    ASSERT_TRUE(profile.ok()) << profile.error().message;
    EXPECT_EQ(profile->id, id);
    EXPECT_GT(profile->max_sequences, 0) << id;
    EXPECT_GT(profile->step_s, 0) << id;
    EXPECT_LT(profile->step_s, 0.1) << id;
  }
  EXPECT_THAT(resolve_engine("vlm").error().message, HasSubstr("did you mean 'vllm'"));
}

template <class Parse>
void expect_golden(const std::string& folder_name, const std::string& golden_name, size_t least,
                   Parse parse) {
  const fs::path folder = fs::path(PRONY_SOURCE_DIR) / "tests/data/catalog";
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder / folder_name)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_GE(files.size(), least);
  std::string messages;
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    const auto value = parse(core::read_file(file.string()).value(), name);
    ASSERT_FALSE(value.ok()) << name << " was accepted";
    EXPECT_EQ(value.error().message.rfind(name + ":", 0), 0U) << value.error().message;
    messages += value.error().message + "\n";
  }
  const std::string golden = (folder / golden_name).string();
  if (core::environment_variable("PRONY_UPDATE_GOLDEN")) {
    ASSERT_TRUE(core::write_file_atomic(golden, messages).ok());
  }
  EXPECT_EQ(messages, core::read_file(golden).value());
}

TEST(BrokenHardware, EachIsRefusedWithItsGoldenMessage) {
  expect_golden("broken_hardware", "errors_hardware.txt", 30, parse_hardware_file);
}

TEST(BrokenEngines, EachIsRefusedWithItsGoldenMessage) {
  expect_golden("broken_engines", "errors_engines.txt", 8, parse_engine_file);
}

}  // namespace
}  // namespace prony::catalog
