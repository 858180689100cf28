// Routes: the links that a message takes. Deterministic: a function of the topology's state, the
// two devices and a salt that spreads messages over paths of equal cost (ECMP by hash).
// Torus: dimension order, x first, the shorter way round; a route that would use a link that is
// down, and every other topology: cheapest path by link costs, where a PCIe hop costs more than any
// detour over scale-up links inside a server. Devices pass messages on only in a torus, NICs and
// host bridges always. Tables are made per destination when first asked for and dropped when a
// link changes.
// Thread safety: none, a query may fill a table; one object a thread.
#pragma once
#include <cstdint>
#include <vector>

#include "prony/sim/topology.hpp"

namespace prony::sim {

class Routes {
 public:
  /// `topology` must outlive this.
  explicit Routes(const Topology& topology);

  /// Fills `path` with the ids of the links from one device to another, in order; empty when they
  /// are the same. False, and an empty path, when the topology's links that are up do not join
  /// them.
  bool find(int32_t from, int32_t to, uint64_t salt, std::vector<int32_t>& path);

  /// How far two devices are apart as a placement counts it: links in a torus; elsewhere the
  /// scale-up switches, network switches and host bridges on the path of salt 0, or the links
  /// between devices of a mesh, 1 at least. 0 for the same device, -1 where there is no path.
  int32_t hops(int32_t from, int32_t to);

 private:
  using Costs = std::vector<uint32_t>;  // [vertex], to one destination
  const Costs& costs_to(int32_t device);
  bool dimension_order(int32_t from, int32_t to, uint64_t salt, std::vector<int32_t>& path) const;
  bool passes(int32_t vertex) const;

  const Topology& topology_;
  uint64_t version_;
  std::vector<Costs> costs_;  // [destination device], empty until asked for
  std::vector<int32_t> hop_path_;
};

}  // namespace prony::sim
