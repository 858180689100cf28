#include "prony/sim/topology_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "prony/catalog/nearest_name.hpp"

namespace prony::sim {
namespace {

using catalog::HardwareSpec;
using catalog::LinkTopology;

// What the catalogue has no number for. Latencies inside a server are typical of the class; the
// adapter's link carries the software as well, so that a message between servers costs the 12 us
// that perfmodel gives it (a test compares both), and its bandwidth is held to the same share.
constexpr int64_t kPcieLatencyNs = 250;
constexpr int64_t kSocketLatencyNs = 250;
constexpr int64_t kAdapterLatencyNs = 5'500;
constexpr int64_t kSpineLatencyNs = 300;
constexpr double kNetworkEfficiency = 0.85;
constexpr double kPcieEfficiency = 0.85;
constexpr double kSocketBandwidth = 62.4e9;  // three links of 20.8 GB/s between two sockets
constexpr int32_t kGroupServers = 32;        // servers below one set of leaves, as usual
constexpr int32_t kSpinesMax = 64;

constexpr std::array<std::string_view, 6> kKinds = {"nvlink", "mesh",     "pcie",
                                                    "node",   "fat-tree", "torus"};

struct Setting {
  std::string key, value;
};

// Everything the text says, by key; absent keys are defaults.
class Settings {
 public:
  Settings(std::string_view text, std::vector<Setting> settings)
      : text_(text), settings_(std::move(settings)) {}

  Error error(std::string_view what) const {
    return invalid_argument(fmt::format("--topology {}: {}", text_, what));
  }
  std::optional<Error> check_keys(const std::vector<std::string>& known) const {
    for (size_t i = 0; i < settings_.size(); ++i) {
      const std::string& key = settings_[i].key;
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        const auto nearest = catalog::nearest_name(key, known);
        return error(fmt::format("found {}, expected one of {}{}", key, fmt::join(known, " "),
                                 nearest ? " (did you mean " + *nearest + "?)" : ""));
      }
      for (size_t j = 0; j < i; ++j) {
        if (settings_[j].key == key) return error("found " + key + " twice, expected it once");
      }
    }
    return std::nullopt;
  }
  const std::string* find(std::string_view key) const {
    for (const Setting& setting : settings_) {
      if (setting.key == key) return &setting.value;
    }
    return nullptr;
  }
  /// Reads a whole number into `out`, which keeps its default when the key is absent.
  std::optional<Error> read(std::string_view key, int32_t min, int32_t max, int32_t& out) const {
    const std::string* value = find(key);
    if (!value) return std::nullopt;
    int32_t number = 0;
    const char* end = value->data() + value->size();
    const auto [at, status] = std::from_chars(value->data(), end, number);
    if (status != std::errc() || at != end || number < min || number > max) {
      return error(fmt::format("{}: found {}, expected a whole number from {} to {}", key, *value,
                               min, max));
    }
    out = number;
    return std::nullopt;
  }
  std::optional<Error> read(std::string_view key, double min, double max, double& out) const {
    const std::string* value = find(key);
    if (!value) return std::nullopt;
    double number = 0;
    const char* end = value->data() + value->size();
    const auto [at, status] = std::from_chars(value->data(), end, number);
    if (status != std::errc() || at != end || !(number >= min && number <= max)) {
      return error(
          fmt::format("{}: found {}, expected a number from {} to {}", key, *value, min, max));
    }
    out = number;
    return std::nullopt;
  }
  /// A bandwidth in GB/s one way and a latency in ns.
  std::optional<Error> read_rate(std::string_view bandwidth, std::string_view latency,
                                 LinkRate& out) const {
    double gb_per_s = static_cast<double>(out.bandwidth_bytes_per_s) / 1e9;
    double ns = static_cast<double>(out.latency_ns);
    if (auto bad = read(bandwidth, 0.001, 100'000, gb_per_s)) return bad;
    if (auto bad = read(latency, 0, 1e9, ns)) return bad;
    if (find(bandwidth)) out.bandwidth_bytes_per_s = static_cast<int64_t>(gb_per_s * 1e9 + 0.5);
    if (find(latency)) out.latency_ns = static_cast<int64_t>(ns + 0.5);
    return std::nullopt;
  }

 private:
  std::string text_;
  std::vector<Setting> settings_;
};

Result<Settings> split(std::string_view text, std::string_view body, bool grid) {
  std::vector<Setting> settings;
  while (!body.empty()) {
    const size_t comma = body.find(',');
    const std::string_view piece = body.substr(0, comma);
    body.remove_prefix(comma == body.npos ? body.size() : comma + 1);
    const size_t equals = piece.find('=');
    if (equals == piece.npos && grid && settings.empty()) {
      settings.push_back({"extents", std::string(piece)});
    } else if (equals == piece.npos || equals == 0 || equals + 1 == piece.size()) {
      return invalid_argument(
          fmt::format("--topology {}: found '{}', expected KEY=VALUE", text, piece));
    } else {
      settings.push_back(
          {std::string(piece.substr(0, equals)), std::string(piece.substr(equals + 1))});
    }
    if (comma != piece.npos && body.empty()) {
      return invalid_argument(fmt::format(
          "--topology {}: found nothing after the last comma, expected KEY=VALUE", text));
    }
  }
  return Settings(text, std::move(settings));
}

LinkRate rate(double bytes_per_s, double latency_s) {
  return {static_cast<int64_t>(bytes_per_s), static_cast<int64_t>(latency_s * 1e9 + 0.5)};
}

void take_hardware(const HardwareSpec& hardware, TopologySpec& spec) {
  const bool joined =
      hardware.topology == LinkTopology::kSwitch || hardware.topology == LinkTopology::kMesh;
  spec.devices = joined ? hardware.link_devices : 8;
  if (spec.kind == TopologyKind::kNvlink) spec.scale_up_switch = true, spec.scale_up_mesh = false;
  if (spec.kind == TopologyKind::kMesh) spec.scale_up_switch = false, spec.scale_up_mesh = true;
  if (spec.kind == TopologyKind::kNode || spec.kind == TopologyKind::kFatTree) {
    spec.scale_up_switch = hardware.topology == LinkTopology::kSwitch;
    spec.scale_up_mesh = hardware.topology == LinkTopology::kMesh;
  }
  // A step of a ring costs half the measured hop (docs/predict.md), over two links and the switch.
  spec.scale_up =
      rate(hardware.link_bandwidth * hardware.link.bandwidth, hardware.link.library_hop_s / 2);
  spec.pcie = {static_cast<int64_t>(hardware.host_bandwidth * kPcieEfficiency), kPcieLatencyNs};
  spec.socket = {static_cast<int64_t>(kSocketBandwidth), kSocketLatencyNs};
}

std::optional<Error> need_rate(const Settings& settings, const LinkRate& found,
                               std::string_view key, const HardwareSpec& hardware) {
  if (found.bandwidth_bytes_per_s > 0) return std::nullopt;
  return settings.error(
      fmt::format("{} has no such link in the catalogue, expected {}=GB/s", hardware.id, key));
}

std::optional<Error> read_server(const Settings& settings, const HardwareSpec& hardware,
                                 TopologySpec& spec) {
  if (auto bad = settings.read("devices", 1, 1024, spec.devices)) return bad;
  // A whole domain's bandwidth leaves the device; in a mesh each pair has its share of it.
  if (spec.scale_up_mesh && hardware.link_devices > 1) {
    spec.scale_up.bandwidth_bytes_per_s /= hardware.link_devices - 1;
  }
  if (spec.scale_up_switch) spec.scale_up.latency_ns /= 2;
  if (auto bad = settings.read_rate("bandwidth", "latency", spec.scale_up)) return bad;
  if (auto bad = settings.read_rate("pcie", "pcie-latency", spec.pcie)) return bad;
  const bool scale_up = spec.scale_up_switch || spec.scale_up_mesh;
  if (scale_up && spec.kind != TopologyKind::kPcie) {
    if (auto bad = need_rate(settings, spec.scale_up, "bandwidth", hardware)) return bad;
  }
  const bool tree = spec.kind != TopologyKind::kNvlink && spec.kind != TopologyKind::kMesh;
  if (tree) {
    if (auto bad = need_rate(settings, spec.pcie, "pcie", hardware)) return bad;
  }
  spec.per_switch = spec.devices % 2 == 0 ? 2 : 1;
  if (auto bad = settings.read("per-switch", 1, 1024, spec.per_switch)) return bad;
  if (spec.devices % spec.per_switch != 0) {
    return settings.error(fmt::format("found per-switch={} with devices={}, expected a divisor",
                                      spec.per_switch, spec.devices));
  }
  spec.sockets = std::min(2, spec.devices / spec.per_switch);
  if (auto bad = settings.read("sockets", 1, 64, spec.sockets)) return bad;
  return std::nullopt;
}

std::optional<Error> read_network(const Settings& settings, const HardwareSpec& hardware,
                                  TopologySpec& spec) {
  if (auto bad = settings.read("nodes", 1, kTopologyDevicesMax, spec.nodes)) return bad;
  if (int64_t{spec.nodes} * spec.devices > kTopologyDevicesMax) {
    return settings.error(fmt::format("found {} x {} devices, expected at most {}", spec.nodes,
                                      spec.devices, kTopologyDevicesMax));
  }
  spec.nics = spec.devices;
  if (auto bad = settings.read("nics", 1, 1024, spec.nics)) return bad;
  const double adapter = hardware.network_bandwidth * spec.devices / spec.nics;
  spec.network = {static_cast<int64_t>(adapter * kNetworkEfficiency), kAdapterLatencyNs};
  if (auto bad = settings.read_rate("network", "network-latency", spec.network)) return bad;
  if (spec.kind == TopologyKind::kFatTree) {
    if (auto bad = need_rate(settings, spec.network, "network", hardware)) return bad;
  } else if (spec.network.bandwidth_bytes_per_s == 0) {
    spec.network = spec.pcie;  // no network in the catalogue: an adapter as wide as its slot
  }
  spec.rails = 1;
  if (auto bad = settings.read("rails", 1, 1024, spec.rails)) return bad;
  if (spec.nics % spec.rails != 0) {
    return settings.error(
        fmt::format("found rails={} with nics={}, expected a divisor", spec.rails, spec.nics));
  }
  spec.group = std::min(spec.nodes, kGroupServers);
  if (auto bad = settings.read("group", 1, kTopologyDevicesMax, spec.group)) return bad;
  if (auto bad = settings.read("oversubscription", 1.0, 64.0, spec.oversubscription)) return bad;
  // As many uplinks as downlinks, each to a spine of its own, less the oversubscription.
  const double uplinks = spec.group * (spec.nics / spec.rails) / spec.oversubscription;
  spec.spines = std::clamp(static_cast<int32_t>(uplinks), 1, kSpinesMax);
  if (auto bad = settings.read("spines", 1, 1024, spec.spines)) return bad;
  const double width = uplinks / spec.spines;
  const double bytes_per_s = static_cast<double>(spec.network.bandwidth_bytes_per_s) * width;
  spec.spine = {std::max<int64_t>(1, static_cast<int64_t>(bytes_per_s)), kSpineLatencyNs};
  double ns = static_cast<double>(spec.spine.latency_ns);
  if (auto bad = settings.read("spine-latency", 0, 1e9, ns)) return bad;
  spec.spine.latency_ns = static_cast<int64_t>(ns + 0.5);
  return std::nullopt;
}

// "16x16": two or three extents.
std::optional<Error> read_extents(const Settings& settings, Grid& grid) {
  const std::string* text = settings.find("extents");
  if (!text) return settings.error("found no extents, expected torus:16x16 or torus:4x4x8");
  const Error bad = settings.error(fmt::format(
      "found extents {}, expected two or three numbers as in 16x16 or 4x4x8, at most {} devices",
      *text, kTopologyDevicesMax));
  std::string_view rest = *text;
  int64_t devices = 1;
  while (true) {
    int32_t extent = 0;
    const auto [at, status] = std::from_chars(rest.data(), rest.data() + rest.size(), extent);
    if (status != std::errc() || extent < 1 || extent > kTopologyDevicesMax) return bad;
    devices *= extent;
    if (devices > kTopologyDevicesMax || grid.extents.size() == 3) return bad;
    grid.extents.push_back(extent);
    rest.remove_prefix(static_cast<size_t>(at - rest.data()));
    if (rest.empty()) break;
    if (rest.front() != 'x') return bad;
    rest.remove_prefix(1);
  }
  if (grid.extents.size() < 2) return bad;
  return std::nullopt;
}

// Where a pod closes: v5e (2D) only a whole side of 16, v4 and v5p (3D) any side that is a multiple
// of 4, because the optical switches join cubes of 4x4x4. Two devices have one cable between them.
bool closes_by_default(const Grid& grid, size_t dimension) {
  const int32_t extent = grid.extents[dimension];
  return grid.extents.size() == 2 ? extent == 16 : extent % 4 == 0;
}

std::optional<Error> read_torus(const Settings& settings, const HardwareSpec& hardware,
                                TopologySpec& spec) {
  if (auto bad = read_extents(settings, spec.grid)) return bad;
  const size_t dimensions = spec.grid.extents.size();
  const std::string* wrap = settings.find("wrap");
  if (wrap && *wrap != "auto" && *wrap != "all" && *wrap != "none") {
    return settings.error(fmt::format("wrap: found {}, expected auto, all or none", *wrap));
  }
  for (size_t d = 0; d < dimensions; ++d) {
    const bool closes = !wrap || *wrap == "auto" ? closes_by_default(spec.grid, d) : *wrap == "all";
    spec.grid.wraps.push_back(closes && spec.grid.extents[d] > 2);
  }
  // The catalogue's bandwidth is the sum over the neighbours, two a dimension.
  spec.scale_up.bandwidth_bytes_per_s /= static_cast<int64_t>(2 * dimensions);
  if (auto bad = settings.read_rate("bandwidth", "latency", spec.scale_up)) return bad;
  return need_rate(settings, spec.scale_up, "bandwidth", hardware);
}

std::vector<std::string> keys_of(TopologyKind kind) {
  std::vector<std::string> keys = {"bandwidth", "latency"};
  const auto add = [&keys](std::initializer_list<const char*> more) {
    keys.insert(keys.end(), more.begin(), more.end());
  };
  if (kind == TopologyKind::kTorus) {
    add({"extents", "wrap"});
    return keys;
  }
  add({"devices"});
  if (kind == TopologyKind::kNvlink || kind == TopologyKind::kMesh) return keys;
  add({"pcie", "pcie-latency", "per-switch", "sockets"});
  if (kind == TopologyKind::kPcie) {
    keys.erase(keys.begin(), keys.begin() + 2);
    return keys;
  }
  add({"nics", "network", "network-latency"});
  if (kind == TopologyKind::kNode) return keys;
  add({"nodes", "rails", "group", "spines", "oversubscription", "spine-latency"});
  return keys;
}

}  // namespace

Result<TopologySpec> parse_topology(std::string_view text, const HardwareSpec& hardware) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto kind = std::find(kKinds.begin(), kKinds.end(), name);
  if (kind == kKinds.end()) {
    return invalid_argument(fmt::format("--topology {}: found {}, expected one of {}", text,
                                        name.empty() ? "nothing" : name, fmt::join(kKinds, " ")));
  }
  TopologySpec spec;
  spec.kind = static_cast<TopologyKind>(kind - kKinds.begin());
  const std::string_view body = colon == text.npos ? std::string_view() : text.substr(colon + 1);
  Result<Settings> settings = split(text, body, spec.kind == TopologyKind::kTorus);
  if (!settings.ok()) return settings.error();
  if (auto bad = settings->check_keys(keys_of(spec.kind))) return *bad;
  take_hardware(hardware, spec);
  if (spec.kind == TopologyKind::kTorus) {
    if (auto bad = read_torus(*settings, hardware, spec)) return *bad;
    return spec;
  }
  if (auto bad = read_server(*settings, hardware, spec)) return *bad;
  if (spec.kind == TopologyKind::kNode || spec.kind == TopologyKind::kFatTree) {
    if (auto bad = read_network(*settings, hardware, spec)) return *bad;
  }
  return spec;
}

}  // namespace prony::sim
