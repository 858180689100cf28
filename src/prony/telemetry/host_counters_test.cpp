// Tests of the host's counters: against a /proc and /sys of our own making, and on this host.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "prony/core/file.hpp"
#include "prony/telemetry/host_counters.hpp"

namespace prony::telemetry {
namespace {

class FakeRoot {
 public:
  FakeRoot() : path_(::testing::TempDir() + "prony_root_XXXXXX") {
    PRONY_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  void write(const std::string& name, std::string_view content) const {
    const auto path = path_ + "/" + name;
    PRONY_CHECK(core::make_directories(path.substr(0, path.rfind('/'))).ok());
    PRONY_CHECK(core::write_file_atomic(path, content).ok());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(CoreTimes, EveryCoreAndNotTheSum) {
  const auto cores = parse_core_times(
      "cpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu12 10 20 30 40\ncpux 1 2 3 4\nintr 5 5 5 5 5\n");
  ASSERT_EQ(cores.size(), 2U);
  EXPECT_EQ(cores[0].core, 0);
  EXPECT_EQ(cores[0].times.steal, 8U);
  EXPECT_EQ(cores[0].times.busy(), 19U);
  EXPECT_EQ(cores[1].core, 12);
  EXPECT_EQ(cores[1].times.total(), 100U);
}

TEST(NetworkBytes, SumsAllButTheLoopback) {
  const auto bytes = parse_network_bytes(
      "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed "
      "multicast|bytes packets\n    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n"
      "  eth0:1000 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n  eth1: 30 1 0 0 0 0 0 0 4 1 0 0 0 0 0 0\n"
      "  eth2: 7 1\n");
  EXPECT_EQ(bytes.received, 1030U);
  EXPECT_EQ(bytes.sent, 204U);
}

TEST(Memory, NeedsBothLines) {
  const auto memory = parse_memory("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\n");
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->total, 1024000);
  EXPECT_EQ(memory->available, 409600);
  EXPECT_FALSE(parse_memory("MemTotal: 1000 kB\n").has_value());
  EXPECT_FALSE(parse_memory("MemTotal: x kB\nMemAvailable: 400 kB\n").has_value());
}

void write_energy(const FakeRoot& root, const char* package0, const char* package1) {
  const std::string top = "class/powercap/intel-rapl:";
  root.write(top + "0/name", "package-0\n");
  root.write(top + "0/energy_uj", package0);
  root.write(top + "0/max_energy_range_uj", "1000000000\n");
  root.write(top + "0/intel-rapl:0:0/name", "dram\n");
  root.write(top + "0/intel-rapl:0:0/energy_uj", package0);
  root.write(top + "1/name", "package-1\n");
  root.write(top + "1/energy_uj", package1);
  root.write(top + "1/max_energy_range_uj", "1000000000\n");
  root.write(top + "2/name", "psys\n");
  root.write(top + "2/energy_uj", package0);
}

TEST(HostCounters, EnergyOfPackagesAndAWrap) {
  const FakeRoot root;
  write_energy(root, "999000000\n", "5000000\n");
  const auto before = read_host_counters(root.path(), root.path());
  write_energy(root, "1000000\n", "9000000\n");  // package 0 wrapped: 1 J to the end, 1 J after
  const auto after = read_host_counters(root.path(), root.path());
  ASSERT_EQ(after.energy.size(), 4U);
  EXPECT_DOUBLE_EQ(package_joules(before, after).value(), 2 + 4);  // no DRAM, no psys
  EXPECT_DOUBLE_EQ(zone_joules(before, after, "package-1").value(), 4);
  EXPECT_FALSE(zone_joules(before, after, "package-7").has_value());
  EXPECT_FALSE(zone_joules(before, after, "psys").has_value());  // fell, and no range is known
}

TEST(HostCounters, WhatIsNotThereIsAbsent) {
  const auto counters = read_host_counters("/no/such/proc", "/no/such/sys");
  EXPECT_GT(counters.t_ns, 0);
  EXPECT_FALSE(counters.all.has_value());
  EXPECT_TRUE(counters.cores.empty());
  EXPECT_FALSE(counters.memory.has_value());
  EXPECT_FALSE(counters.network.has_value());
  EXPECT_FALSE(counters.frequency_mhz.has_value());
  EXPECT_FALSE(package_joules(counters, counters).has_value());
}

TEST(HostCounters, Frequency) {
  const FakeRoot root;
  root.write("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3000000\n");
  root.write("devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2000000\n");
  EXPECT_DOUBLE_EQ(read_host_counters("/no", root.path()).frequency_mhz.value(), 2500);
}

TEST(HostCounters, OfThisHost) {
  const auto counters = read_host_counters();
  ASSERT_TRUE(counters.all.has_value());
  EXPECT_FALSE(counters.cores.empty());
  ASSERT_TRUE(counters.memory.has_value());
  EXPECT_GT(counters.memory->total, counters.memory->available);
}

}  // namespace
}  // namespace prony::telemetry
