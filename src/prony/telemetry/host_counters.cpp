#include "prony/telemetry/host_counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "prony/core/file.hpp"

namespace prony::telemetry {
namespace {

// Reading the frequency of a core wakes it, so only a few are asked.
constexpr int kFrequencyCores = 8;
constexpr int kZonesMax = 64;

template <class F>
void for_each_line(std::string_view text, F&& visit) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    visit(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

// The whole numbers of a line, as far as they go.
std::vector<uint64_t> numbers_of(std::string_view text) {
  std::vector<uint64_t> out;
  for (;;) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t")));
    uint64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc()) return out;
    out.push_back(value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
}

std::optional<uint64_t> number_in(const std::string& path) {
  const auto text = core::read_file(path);
  if (!text) return std::nullopt;
  const auto numbers = numbers_of(text.value());
  return numbers.empty() ? std::nullopt : std::optional(numbers.front());
}

std::optional<std::string> line_in(const std::string& path) {
  auto text = core::read_file(path);
  if (!text) return std::nullopt;
  return text.value().substr(0, text.value().find('\n'));
}

std::optional<double> read_frequency_mhz(const std::string& sys) {
  double sum = 0;
  int count = 0;
  for (int core = 0; core < kFrequencyCores; ++core) {
    const auto khz =
        number_in(fmt::format("{}/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", sys, core));
    if (!khz) continue;
    sum += static_cast<double>(*khz) / 1000;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / count);
}

// A zone whose counter may be read (only root may, on most systems).
void add_zone(const std::string& folder, const std::string& prefix, std::vector<EnergyZone>& out) {
  const auto name = line_in(folder + "/name");
  const auto energy = number_in(folder + "/energy_uj");
  if (!name || !energy) return;
  const auto range = number_in(folder + "/max_energy_range_uj").value_or(0);
  out.push_back({prefix + *name, *energy, range});
}

std::vector<EnergyZone> read_energy(const std::string& sys) {
  std::vector<EnergyZone> out;
  for (int package = 0; package < kZonesMax; ++package) {
    const auto folder = fmt::format("{}/class/powercap/intel-rapl:{}", sys, package);
    const auto name = line_in(folder + "/name");
    if (!name) break;
    add_zone(folder, "", out);
    for (int zone = 0; zone < kZonesMax; ++zone) {
      const auto below = fmt::format("{0}/intel-rapl:{1}:{2}", folder, package, zone);
      if (!line_in(below + "/name")) break;
      add_zone(below, *name + "/", out);
    }
  }
  return out;
}

std::optional<double> joules(const EnergyZone& before, const EnergyZone& after) {
  uint64_t used = after.energy_uj - before.energy_uj;
  if (after.energy_uj < before.energy_uj) {  // wrapped
    if (after.range_uj < before.energy_uj) return std::nullopt;
    used = after.range_uj - before.energy_uj + after.energy_uj;
  }
  return static_cast<double>(used) / 1e6;
}

const EnergyZone* find_zone(const HostCounters& counters, std::string_view name) {
  const auto found = std::find_if(counters.energy.begin(), counters.energy.end(),
                                  [&](const auto& zone) { return zone.name == name; });
  return found == counters.energy.end() ? nullptr : &*found;
}

}  // namespace

std::vector<CoreTimes> parse_core_times(std::string_view text) {
  std::vector<CoreTimes> out;
  for_each_line(text, [&](std::string_view line) {
    if (!line.starts_with("cpu") || line.starts_with("cpu ")) return;
    const auto numbers = numbers_of(line.substr(3));
    if (numbers.size() < 5) return;
    const auto at = [&](size_t i) { return i < numbers.size() ? numbers[i] : 0; };
    out.push_back({static_cast<int>(numbers[0]),
                   {.user = at(1),
                    .nice = at(2),
                    .system = at(3),
                    .idle = at(4),
                    .iowait = at(5),
                    .irq = at(6),
                    .softirq = at(7),
                    .steal = at(8)}});
  });
  return out;
}

NetworkBytes parse_network_bytes(std::string_view text) {
  NetworkBytes out;
  for_each_line(text, [&](std::string_view line) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return;  // the two lines of headings
    auto name = line.substr(0, colon);
    name.remove_prefix(std::min(name.size(), name.find_first_not_of(" \t")));
    const auto numbers = numbers_of(line.substr(colon + 1));
    if (name == "lo" || numbers.size() < 9) return;
    out.received += numbers[0];
    out.sent += numbers[8];
  });
  return out;
}

std::optional<MemoryBytes> parse_memory(std::string_view text) {
  std::optional<uint64_t> total, available;
  for_each_line(text, [&](std::string_view line) {
    for (const auto& [key, value] :
         {std::pair{"MemTotal:", &total}, std::pair{"MemAvailable:", &available}}) {
      if (!line.starts_with(key)) continue;
      const auto numbers = numbers_of(line.substr(std::string_view(key).size()));
      if (!numbers.empty()) *value = numbers.front();
    }
  });
  if (!total || !available) return std::nullopt;
  return MemoryBytes{static_cast<int64_t>(*total * 1024), static_cast<int64_t>(*available * 1024)};
}

HostCounters read_host_counters(const std::string& proc, const std::string& sys) {
  HostCounters out;
  out.t_ns = core::monotonic_ns();
  if (const auto text = core::read_file(proc + "/stat")) {
    if (const auto times = parse_cpu_times(text.value())) out.all = times.value();
    out.cores = parse_core_times(text.value());
  }
  if (const auto text = core::read_file(proc + "/meminfo")) out.memory = parse_memory(text.value());
  if (const auto text = core::read_file(proc + "/net/dev")) {
    out.network = parse_network_bytes(text.value());
  }
  out.frequency_mhz = read_frequency_mhz(sys);
  out.energy = read_energy(sys);
  return out;
}

std::optional<double> zone_joules(const HostCounters& before, const HostCounters& after,
                                  std::string_view name) {
  const auto* begin = find_zone(before, name);
  const auto* end = find_zone(after, name);
  return begin != nullptr && end != nullptr ? joules(*begin, *end) : std::nullopt;
}

std::optional<double> package_joules(const HostCounters& before, const HostCounters& after) {
  std::optional<double> sum;
  for (const auto& zone : after.energy) {
    if (!zone.name.starts_with("package") || zone.name.find('/') != std::string::npos) continue;
    if (const auto used = zone_joules(before, after, zone.name)) sum = sum.value_or(0) + *used;
  }
  return sum;
}

}  // namespace prony::telemetry
