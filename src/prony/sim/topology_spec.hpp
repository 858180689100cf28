// TopologySpec: the shape of a cluster as numbers, and the text that names it:
//   nvlink:devices=8                     one scale-up switch
//   mesh:devices=8                       a link between every two devices
//   pcie:devices=8,per-switch=2          switches under the host bridges of two sockets
//   node:devices=8,nics=8                scale-up links, PCIe tree and NICs of one server
//   fat-tree:nodes=16,rails=8            servers below leaves and spines; rail r of every server
//                                        of a group has its own leaf, rails=1 one leaf for all
//   torus:16x16   torus:4x4x8            2D and 3D; a dimension closes by default where the
//                                        hardware closes it (docs/topology.md)
// What the text leaves out comes from the hardware's entry in the catalogue.
// Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prony/catalog/hardware_spec.hpp"
#include "prony/core/result.hpp"
#include "prony/sim/topology.hpp"

namespace prony::sim {

enum class TopologyKind { kNvlink, kMesh, kPcie, kNode, kFatTree, kTorus };

struct TopologySpec {
  TopologyKind kind = TopologyKind::kNode;
  int32_t nodes = 1;    // servers
  int32_t devices = 8;  // per server
  // Scale-up links inside a server: a switch, a mesh, or none.
  bool scale_up_switch = true, scale_up_mesh = false;
  // PCIe: devices per switch, host bridges (sockets) a server.
  int32_t per_switch = 2, sockets = 2;
  // Network: adapters a server, leaves that the adapters of one server spread over, servers below
  // the same leaves, spines, and how much less the uplinks of a leaf carry than its downlinks.
  int32_t nics = 8, rails = 8, group = 1, spines = 1;
  double oversubscription = 1;
  Grid grid;  // of a torus
  // Rates of one link. scale_up: of one device to its switch, of one pair in a mesh, of one
  // neighbour in a torus. network: of one adapter.
  LinkRate scale_up, pcie, socket, network, spine;
};

/// The most devices and vertices that a text may ask for.
inline constexpr int32_t kTopologyDevicesMax = 65'536;

/// `text` as above. Error: kInvalidArgument, "--topology fat-tree:...: ..." with what was found and
/// what was expected.
Result<TopologySpec> parse_topology(std::string_view text, const catalog::HardwareSpec& hardware);

/// Requires what parse_topology guarantees: counts >= 1 that divide each other, rates > 0
/// (checked).
Topology build_topology(const TopologySpec& spec);

}  // namespace prony::sim
