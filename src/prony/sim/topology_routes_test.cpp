// Routes against a breadth-first search, in the torus against the Manhattan distance, under random
// failures of links, and the spread of equal-cost paths.
#include "prony/sim/topology_routes.hpp"

#include <gmock/gmock.h>

#include <map>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/sim/topology_testing.hpp"

namespace prony::sim {
namespace {

using testing::make_topology;

bool is_path(const Topology& topology, const std::vector<int32_t>& path, int32_t from, int32_t to) {
  for (const int32_t id : path) {
    if (topology.link(id).from != from || !topology.link(id).up) return false;
    from = topology.link(id).to;
  }
  return from == to;
}

// Links on the shortest way, -1 if none; devices on the way allowed.
int32_t breadth_first(const Topology& topology, int32_t from, int32_t to) {
  std::vector<int32_t> distance(static_cast<size_t>(topology.vertex_count()), -1);
  std::queue<int32_t> open;
  open.push(from);
  distance[static_cast<size_t>(from)] = 0;
  while (!open.empty()) {
    const int32_t at = open.front();
    open.pop();
    for (const int32_t id : topology.links_from(at)) {
      const Link& link = topology.link(id);
      if (!link.up || distance[static_cast<size_t>(link.to)] >= 0) continue;
      distance[static_cast<size_t>(link.to)] = distance[static_cast<size_t>(at)] + 1;
      open.push(link.to);
    }
  }
  return distance[static_cast<size_t>(to)];
}

TEST(Routes, TorusTakesTheManhattanDistanceInDimensionOrder) {
  for (const char* text :
       {"torus:16x16", "torus:5x3,wrap=all", "torus:6x4x2,wrap=none", "torus:4x4x8"}) {
    const Topology topology = make_topology(text);
    Routes routes(topology);
    core::Rng rng(7);
    std::vector<int32_t> path;
    for (int i = 0; i < 500; ++i) {
      const auto from =
          static_cast<int32_t>(rng.below(static_cast<uint64_t>(topology.device_count())));
      const auto to =
          static_cast<int32_t>(rng.below(static_cast<uint64_t>(topology.device_count())));
      ASSERT_TRUE(routes.find(from, to, rng.next_u64(), path));
      EXPECT_TRUE(is_path(topology, path, from, to));
      EXPECT_EQ(static_cast<int32_t>(path.size()), topology.grid().distance(from, to)) << text;
      EXPECT_EQ(static_cast<int32_t>(path.size()), breadth_first(topology, from, to)) << text;
      EXPECT_EQ(routes.hops(from, to), topology.grid().distance(from, to));
      // Once a route leaves a dimension it never comes back to it.
      size_t dimension = 0;
      for (const int32_t id : path) {
        const Link& link = topology.link(id);
        size_t moved = 0;
        while (topology.grid().coordinate(link.from, moved) ==
               topology.grid().coordinate(link.to, moved)) {
          ++moved;
        }
        EXPECT_GE(moved, dimension);
        dimension = moved;
      }
    }
  }
}

TEST(Routes, HalfWayRoundUsesBothDirections) {
  const Topology topology = make_topology("torus:16x16");
  Routes routes(topology);
  std::vector<int32_t> path;
  std::set<int32_t> firsts;
  for (uint64_t salt = 0; salt < 32; ++salt) {
    ASSERT_TRUE(routes.find(0, 8, salt, path));
    EXPECT_EQ(path.size(), 8u);
    firsts.insert(path.front());
  }
  EXPECT_EQ(firsts.size(), 2u);
}

TEST(Routes, StayOnScaleUpLinksInsideAServerAndOnTheRailBetweenServers) {
  const Topology topology = make_topology("fat-tree:nodes=4,rails=8,group=4");
  Routes routes(topology);
  std::vector<int32_t> path;
  ASSERT_TRUE(routes.find(0, 7, 1, path));
  ASSERT_EQ(path.size(), 2u);
  EXPECT_EQ(topology.vertex(topology.link(path[0]).to).kind, VertexKind::kLinkSwitch);
  EXPECT_EQ(routes.hops(0, 7), 1);
  // Device 2 of server 0 to device 2 of server 3: NICs, leaf; no spine. The PCIe switch holds two
  // devices and two NICs, so both rails of the switch are as near.
  ASSERT_TRUE(routes.find(2, 3 * 8 + 2, 1, path));
  EXPECT_EQ(path.size(), 6u);
  EXPECT_EQ(routes.hops(2, 26), 1);
  // Another rail: leaf, spine, leaf.
  EXPECT_EQ(routes.hops(0, 3 * 8 + 7), 3);
}

TEST(Routes, EqualPathsAreSpreadByTheSalt) {
  const Topology topology = make_topology("fat-tree:nodes=16,rails=1,group=4,spines=8");
  Routes routes(topology);
  std::vector<int32_t> path;
  std::map<int32_t, int> spines;
  for (uint64_t salt = 0; salt < 8000; ++salt) {
    ASSERT_TRUE(routes.find(0, 100, salt, path));
    for (const int32_t id : path) {
      const int32_t to = topology.link(id).to;
      if (topology.vertex(to).kind == VertexKind::kSpine) ++spines[to];
    }
  }
  ASSERT_EQ(spines.size(), 8u);
  // Binomial, n 8000, p 1/8: sd 29.6; six of them.
  for (const auto& [spine, count] : spines) EXPECT_NEAR(count, 1000, 178) << spine;
  std::vector<int32_t> again;
  ASSERT_TRUE(routes.find(0, 100, 5, path));
  Routes other(topology);
  ASSERT_TRUE(other.find(0, 100, 5, again));
  EXPECT_EQ(path, again);
}

TEST(Routes, DevicesOutsideATorusPassNothingOn) {
  Topology topology = make_topology("mesh:devices=4");
  Routes routes(topology);
  std::vector<int32_t> path;
  ASSERT_TRUE(routes.find(0, 3, 0, path));
  EXPECT_EQ(path.size(), 1u);
  topology.set_up(path[0], false);
  EXPECT_FALSE(routes.find(0, 3, 0, path));
  EXPECT_TRUE(path.empty());
  EXPECT_EQ(routes.hops(0, 3), -1);
}

TEST(Routes, GoRoundLinksThatFailedAndReturnWhenTheyAreBack) {
  for (const char* text : {"torus:6x6,wrap=all", "fat-tree:nodes=6,rails=2,group=2", "node"}) {
    Topology topology = make_topology(text);
    Routes routes(topology);
    core::Rng rng(11);
    std::vector<int32_t> path, before;
    ASSERT_TRUE(routes.find(0, topology.device_count() - 1, 3, before));
    for (int round = 0; round < 40; ++round) {
      const auto broken =
          static_cast<int32_t>(rng.below(static_cast<uint64_t>(topology.link_count())));
      topology.set_up(broken, false);
      for (int i = 0; i < 20; ++i) {
        const auto devices = static_cast<uint64_t>(topology.device_count());
        const auto from = static_cast<int32_t>(rng.below(devices));
        const auto to = static_cast<int32_t>(rng.below(devices));
        if (routes.find(from, to, rng.next_u64(), path)) {
          EXPECT_TRUE(is_path(topology, path, from, to)) << text;
        } else if (!topology.grid().empty()) {
          EXPECT_EQ(breadth_first(topology, from, to), -1) << text;
        }
      }
      if (round % 4 == 3) {
        for (int32_t id = 0; id < topology.link_count(); id += 2) topology.set_up(id, true);
        ASSERT_TRUE(routes.find(0, topology.device_count() - 1, 3, path));
        EXPECT_EQ(path, before);
      }
    }
  }
}

// A server whose scale-up switch died still talks over PCIe.
TEST(Routes, FallBackToPcieWhenTheScaleUpSwitchIsDown) {
  Topology topology = make_topology("node");
  Routes routes(topology);
  for (int32_t v = 0; v < topology.vertex_count(); ++v) {
    if (topology.vertex(v).kind == VertexKind::kLinkSwitch) topology.set_vertex_up(v, false);
  }
  std::vector<int32_t> path;
  ASSERT_TRUE(routes.find(0, 7, 0, path));
  for (const int32_t id : path) EXPECT_NE(topology.link(id).kind, LinkKind::kScaleUp);
  EXPECT_EQ(routes.hops(0, 1), 1);
  EXPECT_EQ(routes.hops(0, 7), 2);  // two sockets, two host bridges
}

}  // namespace
}  // namespace prony::sim
