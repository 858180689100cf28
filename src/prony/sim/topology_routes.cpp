#include "prony/sim/topology_routes.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "prony/core/check.hpp"

namespace prony::sim {
namespace {

constexpr uint32_t kFar = std::numeric_limits<uint32_t>::max();

// Inside a server scale-up links win over PCIe; between sockets the bridge is the last resort.
uint32_t link_cost(LinkKind kind) {
  switch (kind) {
    case LinkKind::kScaleUp:
    case LinkKind::kNetwork:
      return 1;
    case LinkKind::kPcie:
      return 2;
    case LinkKind::kHost:
      return 4;
  }
  return 1;
}

// A finaliser that mixes all bits (Steele, Lea & Flood, "Fast splittable pseudorandom number
// generators", OOPSLA 2014).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

Routes::Routes(const Topology& topology)
    : topology_(topology),
      version_(topology.version()),
      costs_(static_cast<size_t>(topology.device_count())) {}

bool Routes::passes(int32_t vertex) const {
  return topology_.vertex(vertex).kind != VertexKind::kDevice || !topology_.grid().empty();
}

const Routes::Costs& Routes::costs_to(int32_t device) {
  if (version_ != topology_.version()) {
    for (Costs& costs : costs_) costs.clear();
    version_ = topology_.version();
  }
  Costs& costs = costs_[static_cast<size_t>(device)];
  if (!costs.empty()) return costs;
  // Dijkstra backwards from the destination.
  costs.assign(static_cast<size_t>(topology_.vertex_count()), kFar);
  costs[static_cast<size_t>(device)] = 0;
  using Entry = std::pair<uint32_t, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  open.push({0, device});
  while (!open.empty()) {
    const auto [cost, at] = open.top();
    open.pop();
    if (cost > costs[static_cast<size_t>(at)] || (at != device && !passes(at))) continue;
    for (const int32_t id : topology_.links_to(at)) {
      const Link& link = topology_.link(id);
      uint32_t& known = costs[static_cast<size_t>(link.from)];
      const uint32_t through = cost + link_cost(link.kind);
      if (!link.up || through >= known) continue;
      known = through;
      open.push({through, link.from});
    }
  }
  return costs;
}

bool Routes::dimension_order(int32_t from, int32_t to, uint64_t salt,
                             std::vector<int32_t>& path) const {
  const Grid& grid = topology_.grid();
  int32_t at = from;
  for (size_t d = 0; d < grid.extents.size(); ++d) {
    const int32_t extent = grid.extents[d];
    const int32_t ahead = grid.coordinate(to, d) - grid.coordinate(at, d);
    int32_t steps = ahead;
    if (grid.wraps[d]) {
      steps = (ahead % extent + extent) % extent;
      // Half-way round both ways are as short: the salt decides, so that both are used.
      const bool tie = 2 * steps == extent && (mix(salt + d) & 1) != 0;
      if (2 * steps > extent || tie) steps -= extent;
    }
    const int32_t direction = steps < 0 ? -1 : 1;
    for (; steps != 0; steps -= direction) {
      const int32_t next = grid.neighbour(at, d, direction);
      const int32_t id = topology_.find_link(at, next);
      if (id < 0 || !topology_.link(id).up) return false;
      path.push_back(id);
      at = next;
    }
  }
  return true;
}

bool Routes::find(int32_t from, int32_t to, uint64_t salt, std::vector<int32_t>& path) {
  path.clear();
  if (from == to) return true;
  if (!topology_.grid().empty()) {
    if (dimension_order(from, to, salt, path)) return true;
    path.clear();
  }
  const Costs& costs = costs_to(to);
  if (costs[static_cast<size_t>(from)] == kFar) return false;
  for (int32_t at = from; at != to;) {
    const uint32_t cost = costs[static_cast<size_t>(at)];
    const auto is_next = [&](int32_t id) {
      const Link& link = topology_.link(id);
      if (!link.up || (link.to != to && !passes(link.to))) return false;
      const uint32_t rest = costs[static_cast<size_t>(link.to)];
      return rest != kFar && rest + link_cost(link.kind) == cost;
    };
    const auto out = topology_.links_from(at);
    const auto ways = static_cast<uint64_t>(std::count_if(out.begin(), out.end(), is_next));
    PRONY_CHECK(ways > 0, "a finite cost without a next link");
    uint64_t chosen = ways == 1 ? 0 : mix(mix(salt) + static_cast<uint64_t>(at)) % ways;
    for (const int32_t id : out) {
      if (!is_next(id) || chosen-- > 0) continue;
      path.push_back(id);
      at = topology_.link(id).to;
      break;
    }
  }
  return true;
}

int32_t Routes::hops(int32_t from, int32_t to) {
  if (from == to) return 0;
  if (!find(from, to, 0, hop_path_)) return -1;
  if (!topology_.grid().empty()) return static_cast<int32_t>(hop_path_.size());
  int32_t count = 0;
  for (const int32_t id : hop_path_) {
    switch (topology_.vertex(topology_.link(id).to).kind) {
      case VertexKind::kLinkSwitch:
      case VertexKind::kHostBridge:
      case VertexKind::kLeaf:
      case VertexKind::kSpine:
        ++count;
        break;
      default:
        break;
    }
  }
  return std::max(count, 1);
}

}  // namespace prony::sim
