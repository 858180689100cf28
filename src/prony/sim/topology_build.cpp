// The builders of each kind: vertices in a fixed order (devices, then what joins them, server by
// server), so that ids mean the same in every run.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/sim/topology_spec.hpp"

namespace prony::sim {
namespace {

void connect_scale_up(TopologyBuilder& builder, const TopologySpec& spec, int32_t node) {
  const int32_t first = node * spec.devices;
  if (spec.scale_up_switch && spec.devices > 1) {
    const int32_t crossbar = builder.add_vertex(VertexKind::kLinkSwitch, node);
    for (int32_t d = 0; d < spec.devices; ++d) {
      builder.connect(first + d, crossbar, LinkKind::kScaleUp, spec.scale_up);
    }
  }
  if (!spec.scale_up_mesh) return;
  for (int32_t a = 0; a < spec.devices; ++a) {
    for (int32_t b = a + 1; b < spec.devices; ++b) {
      builder.connect(first + a, first + b, LinkKind::kScaleUp, spec.scale_up);
    }
  }
}

// Host bridges joined in a ring of sockets, PCIe switches below them in equal shares, devices below
// the switches. Returns the switches.
std::vector<int32_t> connect_pcie(TopologyBuilder& builder, const TopologySpec& spec,
                                  int32_t node) {
  std::vector<int32_t> bridges, switches;
  for (int32_t s = 0; s < spec.sockets; ++s) {
    bridges.push_back(builder.add_vertex(VertexKind::kHostBridge, node));
  }
  for (size_t s = 0; s + 1 < bridges.size(); ++s) {
    builder.connect(bridges[s], bridges[s + 1], LinkKind::kHost, spec.socket);
  }
  if (bridges.size() > 2) {
    builder.connect(bridges.back(), bridges.front(), LinkKind::kHost, spec.socket);
  }
  const int32_t count = spec.devices / spec.per_switch;
  for (int32_t w = 0; w < count; ++w) {
    const int32_t pcie = builder.add_vertex(VertexKind::kPcieSwitch, node);
    const int32_t socket = w * spec.sockets / count;
    builder.connect(pcie, bridges[static_cast<size_t>(socket)], LinkKind::kPcie, spec.pcie);
    for (int32_t d = 0; d < spec.per_switch; ++d) {
      builder.connect(node * spec.devices + w * spec.per_switch + d, pcie, LinkKind::kPcie,
                      spec.pcie);
    }
    switches.push_back(pcie);
  }
  return switches;
}

// NICs of one server, spread over its PCIe switches in equal shares.
std::vector<int32_t> connect_nics(TopologyBuilder& builder, const TopologySpec& spec, int32_t node,
                                  const std::vector<int32_t>& switches) {
  // An adapter must not be held back by a narrower slot than the one it is sold for.
  LinkRate slot = spec.pcie;
  slot.bandwidth_bytes_per_s =
      std::max(slot.bandwidth_bytes_per_s, spec.network.bandwidth_bytes_per_s);
  std::vector<int32_t> nics;
  for (int32_t n = 0; n < spec.nics; ++n) {
    const int32_t nic = builder.add_vertex(VertexKind::kNic, node);
    const auto at = static_cast<size_t>(n) * switches.size() / static_cast<size_t>(spec.nics);
    builder.connect(nic, switches[at], LinkKind::kPcie, slot);
    nics.push_back(nic);
  }
  return nics;
}

std::vector<std::vector<int32_t>> connect_servers(TopologyBuilder& builder,
                                                  const TopologySpec& spec) {
  std::vector<std::vector<int32_t>> nics;
  for (int32_t node = 0; node < spec.nodes; ++node) {
    connect_scale_up(builder, spec, node);
    nics.push_back(connect_nics(builder, spec, node, connect_pcie(builder, spec, node)));
  }
  return nics;
}

// Leaves of a group: one a rail, to which NIC n of each server goes by n mod rails. Every leaf has
// one uplink to every spine.
void connect_fat_tree(TopologyBuilder& builder, const TopologySpec& spec,
                      const std::vector<std::vector<int32_t>>& nics) {
  const int32_t groups = (spec.nodes + spec.group - 1) / spec.group;
  std::vector<int32_t> leaves, spines;
  for (int32_t l = 0; l < groups * spec.rails; ++l) {
    leaves.push_back(builder.add_vertex(VertexKind::kLeaf, -1));
  }
  for (int32_t node = 0; node < spec.nodes; ++node) {
    for (int32_t n = 0; n < spec.nics; ++n) {
      const int32_t leaf = node / spec.group * spec.rails + n % spec.rails;
      builder.connect(nics[static_cast<size_t>(node)][static_cast<size_t>(n)],
                      leaves[static_cast<size_t>(leaf)], LinkKind::kNetwork, spec.network);
    }
  }
  if (leaves.size() < 2) return;
  for (int32_t s = 0; s < spec.spines; ++s) {
    spines.push_back(builder.add_vertex(VertexKind::kSpine, -1));
  }
  for (const int32_t leaf : leaves) {
    for (const int32_t spine : spines) {
      builder.connect(leaf, spine, LinkKind::kNetwork, spec.spine);
    }
  }
}

void connect_grid(TopologyBuilder& builder, const TopologySpec& spec) {
  int32_t devices = 1;
  for (const int32_t extent : spec.grid.extents) devices *= extent;
  for (int32_t d = 0; d < devices; ++d) builder.add_device(-1);
  for (int32_t d = 0; d < devices; ++d) {
    for (size_t dimension = 0; dimension < spec.grid.extents.size(); ++dimension) {
      const int32_t to = spec.grid.neighbour(d, dimension, 1);
      if (to >= 0 && to != d) builder.connect(d, to, LinkKind::kScaleUp, spec.scale_up);
    }
  }
  builder.set_grid(spec.grid);
}

}  // namespace

Topology build_topology(const TopologySpec& spec) {
  PRONY_CHECK(spec.nodes >= 1 && spec.devices >= 1);
  TopologyBuilder builder;
  if (spec.kind == TopologyKind::kTorus) {
    connect_grid(builder, spec);
    return std::move(builder).build();
  }
  PRONY_CHECK(spec.devices % spec.per_switch == 0 && spec.nics % spec.rails == 0);
  for (int32_t node = 0; node < spec.nodes; ++node) {
    for (int32_t d = 0; d < spec.devices; ++d) builder.add_device(node);
  }
  switch (spec.kind) {
    case TopologyKind::kNvlink:
    case TopologyKind::kMesh:
      connect_scale_up(builder, spec, 0);
      break;
    case TopologyKind::kPcie:
      connect_pcie(builder, spec, 0);
      break;
    case TopologyKind::kNode:
      connect_servers(builder, spec);
      break;
    case TopologyKind::kFatTree:
      connect_fat_tree(builder, spec, connect_servers(builder, spec));
      break;
    case TopologyKind::kTorus:
      break;
  }
  return std::move(builder).build();
}

}  // namespace prony::sim
