// Shapes of the builders against counts done by hand, the text form with its errors, and its
// corpus.
#include "prony/sim/topology.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "prony/catalog/hardware_file.hpp"
#include "prony/core/file.hpp"
#include "prony/sim/topology_spec.hpp"
#include "prony/sim/topology_testing.hpp"

namespace prony::sim {
namespace {

using testing::check_any_topology_text;
using ::testing::HasSubstr;
using testing::make_topology;
using testing::switch_hardware;
using testing::torus_hardware;

std::map<VertexKind, int> kinds_of(const Topology& topology) {
  std::map<VertexKind, int> kinds;
  for (int32_t v = 0; v < topology.vertex_count(); ++v) ++kinds[topology.vertex(v).kind];
  return kinds;
}

TEST(Topology, EveryCableIsTwoLinksThatMirrorEachOther) {
  for (const char* text : {"nvlink", "mesh:devices=5", "pcie", "node", "fat-tree:nodes=3,rails=4",
                           "torus:4x3", "torus:4x4x8"}) {
    const Topology topology = make_topology(text);
    ASSERT_EQ(topology.link_count() % 2, 0);
    for (int32_t id = 0; id < topology.link_count(); ++id) {
      const Link& link = topology.link(id);
      const Link& back = topology.link(Topology::reverse(id));
      EXPECT_EQ(link.from, back.to) << text;
      EXPECT_EQ(link.to, back.from) << text;
      EXPECT_EQ(link.bandwidth_bytes_per_s, back.bandwidth_bytes_per_s);
      EXPECT_GT(link.bandwidth_bytes_per_s, 0);
    }
    int links = 0;
    for (int32_t v = 0; v < topology.vertex_count(); ++v) {
      for (const int32_t id : topology.links_from(v)) EXPECT_EQ(topology.link(id).from, v);
      for (const int32_t id : topology.links_to(v)) EXPECT_EQ(topology.link(id).to, v);
      links += static_cast<int>(topology.links_from(v).size());
    }
    EXPECT_EQ(links, topology.link_count()) << text;
  }
}

TEST(Topology, SwitchGivesEachDeviceTheCataloguesBandwidthTimesWhatCollectivesReach) {
  const Topology topology = make_topology("nvlink");
  EXPECT_EQ(topology.device_count(), 8);
  EXPECT_EQ(topology.link_count(), 16);
  EXPECT_EQ(topology.link(0).bandwidth_bytes_per_s, 337'500'000'000);  // 450 GB/s x 0.75
  EXPECT_EQ(topology.link(0).latency_ns, 392);                         // a quarter of 1.57 us
}

TEST(Topology, MeshSharesTheBandwidthOfADeviceOverItsPeers) {
  const Topology topology = make_topology("mesh");
  EXPECT_EQ(topology.link_count(), 8 * 7);
  EXPECT_EQ(topology.link(0).bandwidth_bytes_per_s, 337'500'000'000 / 7);
  // Fewer devices leave ports empty: a pair has no more than before.
  EXPECT_EQ(make_topology("mesh:devices=4").link(0).bandwidth_bytes_per_s, 337'500'000'000 / 7);
}

TEST(Topology, FatTreeCountsAsWired) {
  const Topology topology = make_topology("fat-tree:nodes=16,rails=8");
  auto kinds = kinds_of(topology);
  EXPECT_EQ(kinds[VertexKind::kDevice], 128);
  EXPECT_EQ(kinds[VertexKind::kLinkSwitch], 16);
  EXPECT_EQ(kinds[VertexKind::kPcieSwitch], 64);
  EXPECT_EQ(kinds[VertexKind::kHostBridge], 32);
  EXPECT_EQ(kinds[VertexKind::kNic], 128);
  EXPECT_EQ(kinds[VertexKind::kLeaf], 8);    // one group of 16 servers, one leaf a rail
  EXPECT_EQ(kinds[VertexKind::kSpine], 16);  // 16 downlinks, so 16 uplinks
  EXPECT_EQ(topology.node_count(), 16);
  for (int32_t id = 0; id < topology.link_count(); ++id) {
    const Link& link = topology.link(id);
    if (topology.vertex(link.from).kind != VertexKind::kNic || link.kind != LinkKind::kNetwork) {
      continue;
    }
    // NIC n of a server is on leaf n mod 8.
    EXPECT_EQ(topology.vertex(link.from).ordinal % 8, topology.vertex(link.to).ordinal);
  }
}

// Full bisection at oversubscription 1: a leaf's uplinks carry what its downlinks carry; at 4 a
// quarter of it.
TEST(Topology, UplinksOfALeafCarryTheDownlinksOverTheOversubscription) {
  for (const auto& [text, factor] : std::map<std::string, double>{
           {"fat-tree:nodes=8,rails=1,group=2", 1.0},
           {"fat-tree:nodes=8,rails=4,group=4,spines=3", 1.0},
           {"fat-tree:nodes=8,rails=2,group=4,oversubscription=4", 4.0}}) {
    const Topology topology = make_topology(text);
    std::map<int32_t, double> down, up;
    for (const Link& link : topology.links()) {
      if (topology.vertex(link.from).kind != VertexKind::kLeaf) continue;
      const auto bandwidth = static_cast<double>(link.bandwidth_bytes_per_s);
      (topology.vertex(link.to).kind == VertexKind::kSpine ? up : down)[link.from] += bandwidth;
    }
    EXPECT_FALSE(up.empty()) << text;
    for (const auto& [leaf, bandwidth] : up) {
      EXPECT_NEAR(bandwidth * factor / down[leaf], 1, 1e-9) << text;
    }
  }
}

TEST(Topology, TorusHasTwoNeighboursADimensionWhereItCloses) {
  const Topology pod = make_topology("torus:16x16");
  EXPECT_EQ(pod.device_count(), 256);
  EXPECT_EQ(pod.link_count(), 256 * 4);
  EXPECT_EQ(pod.link(0).bandwidth_bytes_per_s, 35'000'000'000);  // 200 GB/s x 0.7 / 4
  const Topology slice = make_topology("torus:8x8");  // part of a v5e pod: does not close
  EXPECT_EQ(slice.link_count(), 2 * 2 * 7 * 8);
  const Topology cubes = make_topology("torus:4x4x8");
  EXPECT_EQ(cubes.link_count(), 128 * 6);
  const Topology odd = make_topology("torus:3x5,wrap=all");
  EXPECT_EQ(odd.link_count(), 15 * 4);
  const Topology pair = make_topology("torus:2x3,wrap=all");  // two devices: one cable, not two
  EXPECT_EQ(pair.link_count(), 2 * (3 + 6));
}

TEST(Topology, GridDistanceIsTheShorterWayRoundEachDimension) {
  const Grid grid{{4, 6, 3}, {true, false, true}};
  EXPECT_EQ(grid.distance(0, 3), 1);               // around x
  EXPECT_EQ(grid.distance(0, 4 * 5), 5);           // y is open
  EXPECT_EQ(grid.distance(0, 24 * 2), 1);          // around z
  EXPECT_EQ(grid.distance(0, 2 + 4 * 3 + 24), 6);  // 2 + 3 + 1
  EXPECT_EQ(grid.neighbour(0, 1, -1), -1);
  EXPECT_EQ(grid.neighbour(0, 0, -1), 3);
}

TEST(Topology, ChangesOfLinksRaiseTheVersionAndOnlyChanges) {
  Topology topology = make_topology("nvlink:devices=4");
  const uint64_t before = topology.version();
  topology.set_up(2, true);
  EXPECT_EQ(topology.version(), before);
  topology.set_up(2, false);
  EXPECT_GT(topology.version(), before);
  EXPECT_EQ(topology.capacity(2), 0);
  EXPECT_EQ(topology.capacity(3), 0);
  EXPECT_GT(topology.capacity(0), 0);
  topology.set_up(3, true);
  EXPECT_GT(topology.capacity(2), 0);
  topology.set_bandwidth(2, 1000);
  EXPECT_EQ(topology.capacity(2), 1000);
  topology.set_vertex_up(4, false);
  for (int32_t id = 0; id < topology.link_count(); ++id) EXPECT_EQ(topology.capacity(id), 0);
  EXPECT_EQ(topology.link_name(0), "device 0 -> link switch 0");
}

TEST(TopologySpec, ErrorsNameTheTextWhatWasFoundAndWhatIsExpected) {
  const std::map<std::string, std::string> cases = {
      {"", "found nothing, expected one of nvlink mesh pcie node fat-tree torus"},
      {"ring", "found ring, expected one of"},
      {"nvlink:devices=0", "devices: found 0, expected a whole number from 1 to 1024"},
      {"nvlink:devices=8x", "devices: found 8x"},
      {"nvlink:devices", "found 'devices', expected KEY=VALUE"},
      {"nvlink:devices=", "found 'devices=', expected KEY=VALUE"},
      {"nvlink:devices=4,", "found nothing after the last comma"},
      {"nvlink:device=4", "did you mean devices?"},
      {"nvlink:devices=4,devices=4", "found devices twice"},
      {"nvlink:bandwidth=nan", "bandwidth: found nan, expected a number"},
      {"nvlink:nodes=2", "found nodes, expected one of bandwidth latency devices"},
      {"pcie:devices=8,per-switch=3", "found per-switch=3 with devices=8, expected a divisor"},
      {"fat-tree:nodes=4,rails=3", "found rails=3 with nics=8, expected a divisor"},
      {"fat-tree:nodes=65536", "found 65536 x 8 devices, expected at most 65536"},
      {"torus", "found no extents, expected torus:16x16"},
      {"torus:16", "found extents 16"},
      {"torus:2x2x2x2", "found extents 2x2x2x2"},
      {"torus:0x4", "found extents 0x4"},
      {"torus:4x", "found extents 4x"},
      {"torus:1000x1000", "at most 65536 devices"},
      {"torus:4x4,wrap=x", "wrap: found x, expected auto, all or none"},
  };
  for (const auto& [text, expected] : cases) {
    const auto spec = parse_topology(text, switch_hardware());
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_THAT(spec.error().message, HasSubstr("--topology " + text + ":"));
    EXPECT_THAT(spec.error().message, HasSubstr(expected));
  }
  catalog::HardwareSpec bare;
  bare.id = "l4";
  bare.host_bandwidth = 32e9;
  EXPECT_THAT(parse_topology("nvlink", bare).error().message,
              HasSubstr("l4 has no such link in the catalogue, expected bandwidth=GB/s"));
  EXPECT_TRUE(parse_topology("nvlink:bandwidth=100", bare).ok());
  EXPECT_TRUE(parse_topology("node", bare).ok());
}

TEST(TopologySpec, SaysWhatTheCatalogueDoesNot) {
  const auto spec = parse_topology(
      "fat-tree:nodes=4,devices=4,nics=2,rails=2,bandwidth=100,latency=300,"
      "network=25,network-latency=2000,group=2,spines=2,spine-latency=100",
      switch_hardware());
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->scale_up, (LinkRate{100'000'000'000, 300}));
  EXPECT_EQ(spec->network, (LinkRate{25'000'000'000, 2000}));
  EXPECT_EQ(spec->spine, (LinkRate{25'000'000'000, 100}));  // 2 downlinks over 2 spines
  EXPECT_EQ(build_topology(*spec).device_count(), 16);
}

// The real catalogue: what this module's tests write down is what data/ says.
TEST(TopologySpec, TestHardwareIsTheCatalogues) {
  for (const auto& written : {switch_hardware(), torus_hardware()}) {
    const std::string file = PRONY_SOURCE_DIR "/data/hardware/" + written.id + ".yaml";
    const auto text = core::read_file(file);
    ASSERT_TRUE(text.ok());
    const auto real = catalog::parse_hardware_file(*text, file);
    ASSERT_TRUE(real.ok());
    EXPECT_EQ(real->topology, written.topology);
    EXPECT_EQ(real->link_bandwidth, written.link_bandwidth);
    EXPECT_EQ(real->link_devices, written.link_devices);
    EXPECT_EQ(real->host_bandwidth, written.host_bandwidth);
    EXPECT_EQ(real->network_bandwidth, written.network_bandwidth);
    EXPECT_DOUBLE_EQ(real->link.library_hop_s, written.link.library_hop_s);
    EXPECT_DOUBLE_EQ(real->link.library_base_s, written.link.library_base_s);
    EXPECT_EQ(real->link.bandwidth, written.link.bandwidth);
  }
}

TEST(TopologySpec, FuzzCorpusHolds) {
  int files = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(PRONY_SOURCE_DIR "/tests/fuzz/topology")) {
    const auto text = core::read_file(file.path().string());
    ASSERT_TRUE(text.ok());
    EXPECT_TRUE(check_any_topology_text(*text)) << file.path();
    ++files;
  }
  EXPECT_GE(files, 8);
}

}  // namespace
}  // namespace prony::sim
