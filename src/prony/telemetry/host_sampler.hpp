// HostSampler: how busy the host was and how much of it the hypervisor took, over an interval.
// Counters of /proc/stat are read at start and end, so nothing is missed between and nothing runs
// during the measurement. Stolen time voids latencies that no client stamp can explain.
// Thread safety: none. Source: man 5 proc; guest time is part of user time and not added twice.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "prony/core/result.hpp"

namespace prony::telemetry {

/// The line "cpu ..." of /proc/stat [clock ticks], summed over all cores.
struct CpuTimes {
  uint64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  uint64_t total() const { return user + nice + system + idle + iowait + irq + softirq + steal; }
  uint64_t busy() const { return user + nice + system + irq + softirq; }
};
/// Error: kEnvironment if there is no such line or it has fewer than four numbers; counters that an
/// old kernel lacks are 0.
Result<CpuTimes> parse_cpu_times(std::string_view proc_stat);

class HostSampler {
 public:
  explicit HostSampler(std::string proc = "/proc") : proc_(std::move(proc)) {}
  /// Opens the interval. Without /proc/stat the shares below stay unknown.
  void start();

  struct Shares {
    double steal = 0;  // of all time of all cores, in [0, 1]
    double busy = 0;   // of all time of all cores, by anyone
    double iowait = 0;
  };
  /// From start() to now; may be asked repeatedly. nullopt before start(), without /proc/stat, or
  /// while no tick has passed (under 10 ms).
  std::optional<Shares> shares() const;
  /// One-minute load average now.
  std::optional<double> load_average() const;

 private:
  std::optional<CpuTimes> read() const;
  std::string proc_;
  std::optional<CpuTimes> start_;
};

}  // namespace prony::telemetry
