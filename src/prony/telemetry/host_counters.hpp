// HostCounters: one reading of what Linux counts about this host: core times, memory, network,
// clock frequency and the energy that the processor reports (RAPL). Differences of two readings
// are what happened in between.
// Thread safety: pure functions but for reading files. Source: man 5 proc;
// Documentation/power/powercap of the kernel. What a system does not tell is absent, never 0.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/telemetry/host_sampler.hpp"

namespace prony::telemetry {

struct CoreTimes {
  int core = 0;
  CpuTimes times;
};
/// The lines "cpuN ..." of /proc/stat; lines that are none are skipped.
std::vector<CoreTimes> parse_core_times(std::string_view proc_stat);

struct NetworkBytes {
  uint64_t received = 0, sent = 0;
};
/// Sums of /proc/net/dev over all interfaces but the loopback.
NetworkBytes parse_network_bytes(std::string_view proc_net_dev);

struct MemoryBytes {
  int64_t total = 0, available = 0;
};
/// nullopt without MemTotal and MemAvailable in /proc/meminfo.
std::optional<MemoryBytes> parse_memory(std::string_view proc_meminfo);

/// A counter of energy: "package-0", "dram" (of package 0: "package-0/dram"). It wraps.
struct EnergyZone {
  std::string name;
  uint64_t energy_uj = 0, range_uj = 0;
};

struct HostCounters {
  core::Nanos t_ns = 0;
  std::optional<CpuTimes> all;
  std::vector<CoreTimes> cores;
  std::optional<MemoryBytes> memory;
  std::optional<NetworkBytes> network;
  std::optional<double> frequency_mhz;  // mean of the first cores
  std::vector<EnergyZone> energy;
};

/// `proc` and `sys` are the folders to read.
HostCounters read_host_counters(const std::string& proc = "/proc", const std::string& sys = "/sys");

/// Joules that zones of `before` used until `after`, one wrap of the counter allowed; of the
/// packages alone (DRAM is a zone beside them, psys contains them). nullopt without any package.
std::optional<double> package_joules(const HostCounters& before, const HostCounters& after);
/// The same of one zone by name.
std::optional<double> zone_joules(const HostCounters& before, const HostCounters& after,
                                  std::string_view name);

}  // namespace prony::telemetry
