// Topologies for tests: parsed with the catalogue numbers of a device that is written down here, so
// that no test needs data/; and what must hold for any text given as --topology.
// Thread safety: pure functions.
#pragma once
#include <string_view>

#include "prony/catalog/hardware_spec.hpp"
#include "prony/core/check.hpp"
#include "prony/sim/topology_spec.hpp"

namespace prony::sim::testing {

/// The links of an H100 SXM as data/hardware has them.
inline catalog::HardwareSpec switch_hardware() {
  catalog::HardwareSpec hardware;
  hardware.id = "h100-sxm";
  hardware.topology = catalog::LinkTopology::kSwitch;
  hardware.link_bandwidth = 450e9;
  hardware.link_devices = 8;
  hardware.host_bandwidth = 64e9;
  hardware.network_bandwidth = 50e9;
  hardware.link.library_base_s = 3e-6;
  hardware.link.library_hop_s = 1.57e-6;
  hardware.link.bandwidth = 0.75;
  return hardware;
}

/// The links of a TPU v5e as data/hardware has them.
inline catalog::HardwareSpec torus_hardware() {
  catalog::HardwareSpec hardware;
  hardware.id = "tpu-v5e";
  hardware.topology = catalog::LinkTopology::kTorus;
  hardware.link_bandwidth = 200e9;
  hardware.link_devices = 256;
  hardware.host_bandwidth = 32e9;
  hardware.network_bandwidth = 12.5e9;
  hardware.link.library_base_s = 2e-6;
  hardware.link.library_hop_s = 1e-6;
  hardware.link.bandwidth = 0.7;
  return hardware;
}

/// Requires a text that parses (checked).
inline Topology make_topology(std::string_view text) {
  const bool torus = text.starts_with("torus");
  const auto spec = parse_topology(text, torus ? torus_hardware() : switch_hardware());
  PRONY_CHECK(spec.ok(), spec.ok() ? "" : spec.error().message);
  return build_topology(spec.value());
}

/// Any text parses to a spec within its limits or gives one line that names the flag.
inline bool check_any_topology_text(std::string_view text) {
  const auto spec = parse_topology(text, switch_hardware());
  if (!spec.ok()) {
    const std::string& message = spec.error().message;
    return message.starts_with("--topology ") && spec.error().code == ErrorCode::kInvalidArgument;
  }
  const TopologySpec& s = spec.value();
  if (s.kind == TopologyKind::kTorus) {
    int64_t devices = 1;
    for (const int32_t extent : s.grid.extents) devices *= extent;
    return devices >= 1 && devices <= kTopologyDevicesMax &&
           s.grid.wraps.size() == s.grid.extents.size() && s.scale_up.bandwidth_bytes_per_s > 0;
  }
  return s.nodes >= 1 && s.devices >= 1 && int64_t{s.nodes} * s.devices <= kTopologyDevicesMax &&
         s.devices % s.per_switch == 0 && s.nics % s.rails == 0 && s.spines >= 1;
}

}  // namespace prony::sim::testing
