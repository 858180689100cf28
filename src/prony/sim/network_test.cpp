// Messages on topologies: latency and bandwidth by hand, order, failures of links under way, and
// what was sent against what arrived.
#include "prony/sim/network.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/perfmodel/collectives.hpp"
#include "prony/sim/topology_testing.hpp"

namespace prony::sim {
namespace {

using testing::make_topology;
using testing::switch_hardware;

struct Fate {
  uint64_t tag;
  int64_t at_ns;
  bool lost;
  bool operator==(const Fate&) const = default;
};

class Log : public TransferSink {
 public:
  void on_delivered(uint64_t tag, int64_t now_ns) override {
    fates.push_back({tag, now_ns, false});
  }
  void on_lost(uint64_t tag, int64_t now_ns) override { fates.push_back({tag, now_ns, true}); }
  std::vector<Fate> fates;
};

TEST(Network, AMessageTakesItsBytesAndTheLatencyOfItsRoute) {
  Topology topology = make_topology("nvlink:devices=2,bandwidth=100,latency=400");
  Network network(topology);
  Log log;
  network.send({.from = 0, .to = 1, .bytes = 1'000'000, .tag = 3, .sink = &log});
  network.send({.from = 1, .to = 1, .bytes = 5, .tag = 4, .sink = &log});
  EXPECT_EQ(network.next_event_ns(), 0);
  network.run_until();
  // 1 MB at 100 GB/s is 10 us; two links of 400 ns.
  EXPECT_EQ(log.fates, (std::vector<Fate>{{4, 0, false}, {3, 10'800, false}}));
  EXPECT_EQ(network.in_flight(), 0);
  EXPECT_EQ(network.bytes_delivered(), 1'000'005);
}

TEST(Network, OneWayCarriesNothingOfTheOther) {
  Topology topology = make_topology("nvlink:devices=2,bandwidth=100,latency=0");
  Network network(topology);
  Log log;
  network.send({.from = 0, .to = 1, .bytes = 1'000'000, .tag = 1, .sink = &log});
  network.send({.from = 1, .to = 0, .bytes = 1'000'000, .tag = 2, .sink = &log});
  network.run_until();
  EXPECT_EQ(log.fates, (std::vector<Fate>{{1, 10'000, false}, {2, 10'000, false}}));
}

// perfmodel's time of a message between two servers: the assumptions of both are the same.
TEST(Network, BetweenServersAMessageTakesWhatPredictSays) {
  Topology topology = make_topology("fat-tree:nodes=2,rails=8");
  for (const int64_t bytes : {1'000LL, 1'000'000LL, 1'000'000'000LL}) {
    Network network(topology);
    Log log;
    network.send({.from = 0, .to = 8, .bytes = bytes, .sink = &log});
    network.run_until();
    const double predicted =
        perfmodel::send(switch_hardware(), static_cast<double>(bytes), false).seconds * 1e9;
    EXPECT_NEAR(static_cast<double>(log.fates.at(0).at_ns) / predicted, 1, 0.01) << bytes;
  }
}

TEST(Network, TenantsShareALinkByTheirWeights) {
  Topology topology = make_topology("nvlink:devices=3,bandwidth=100,latency=0");
  Network network(topology);
  Log log;
  network.send({.from = 0, .to = 2, .bytes = 3'000'000, .weight = 3, .tag = 1, .sink = &log});
  network.send({.from = 1, .to = 2, .bytes = 3'000'000, .weight = 1, .tag = 2, .sink = &log});
  network.run_until();
  // 75 and 25 GB/s until 40 us, then 2 MB at 100 GB/s.
  EXPECT_EQ(log.fates, (std::vector<Fate>{{1, 40'000, false}, {2, 60'000, false}}));
}

TEST(Network, AFailedLinkSendsItsMessagesAnotherWayWithWhatIsLeft) {
  Topology topology = make_topology("torus:4x1,wrap=all,bandwidth=1,latency=0");
  Network network(topology);
  Log log;
  network.send({.from = 0, .to = 1, .bytes = 1'000'000, .tag = 1, .sink = &log});
  network.advance_to(400'000);
  network.set_link_up(topology.find_link(0, 1), false);
  network.run_until();
  EXPECT_EQ(log.fates, (std::vector<Fate>{{1, 1'000'000, false}}));  // round the other way
  const int64_t back = topology.find_link(0, 3);
  EXPECT_TRUE(network.flows().carried(static_cast<int32_t>(back)) ==
              NanoBytes{600'000} * kNanoBytesPerByte);
}

TEST(Network, WithoutAWayAMessageIsLostAndItsSinkIsTold) {
  Topology topology = make_topology("mesh:devices=2,bandwidth=1,latency=10");
  Network network(topology);
  Log log;
  network.send({.from = 0, .to = 1, .bytes = 1'000, .tag = 1, .sink = &log});
  network.advance_to(500);
  network.set_link_up(0, false);
  network.send({.from = 0, .to = 1, .bytes = 1'000, .tag = 2, .sink = &log});
  network.run_until();
  EXPECT_EQ(log.fates, (std::vector<Fate>{{1, 500, true}, {2, 500, true}}));
  network.set_link_up(0, true);
  network.send({.from = 0, .to = 1, .bytes = 1'000, .tag = 3, .sink = &log});
  network.run_until();
  EXPECT_EQ(log.fates.back(), (Fate{3, 1'510, false}));
}

TEST(Network, ACancelledMessageIsSilentAndFreesItsLinks) {
  Topology topology = make_topology("nvlink:devices=3,bandwidth=100,latency=7");
  Network network(topology);
  Log log;
  const TransferId first =
      network.send({.from = 0, .to = 2, .bytes = 1'000'000, .tag = 1, .sink = &log});
  network.send({.from = 1, .to = 2, .bytes = 1'000'000, .tag = 2, .sink = &log});
  network.advance_to(10'000);  // each has moved half
  network.cancel(first);
  EXPECT_FALSE(network.pending(first));
  network.run_until();
  EXPECT_EQ(log.fates, (std::vector<Fate>{{2, 15'014, false}}));
}

// Random traffic with failing links and switches: everything sent is delivered or lost, once, and
// the same seed gives the same history.
TEST(Network, EveryMessageHasOneFateAndHistoriesRepeat) {
  for (const char* text : {"torus:4x4,wrap=all", "fat-tree:nodes=4,rails=2,group=2", "node"}) {
    std::vector<Fate> histories[2];
    for (auto& history : histories) {
      Topology topology = make_topology(text);
      Network network(topology);
      Log log;
      core::Rng rng(5);
      uint64_t sent = 0;
      for (int round = 0; round < 300; ++round) {
        const auto devices = static_cast<uint64_t>(topology.device_count());
        for (uint64_t i = 0; i < 1 + rng.below(5); ++i) {
          network.send({.from = static_cast<int32_t>(rng.below(devices)),
                        .to = static_cast<int32_t>(rng.below(devices)),
                        .bytes = static_cast<int64_t>(rng.below(3'000'000)),
                        .weight = 1 + static_cast<uint32_t>(rng.below(4)),
                        .salt = rng.next_u64(),
                        .tag = sent++,
                        .sink = &log});
        }
        const auto link =
            static_cast<int32_t>(rng.below(static_cast<uint64_t>(topology.link_count())));
        if (round % 3 == 0) network.set_link_up(link, !topology.link(link).up);
        if (round % 17 == 0) {
          network.set_vertex_up(topology.link(link).to, round % 2 == 0);
        }
        network.advance_to(network.now_ns() + static_cast<int64_t>(rng.below(20'000)));
      }
      for (int32_t id = 0; id < topology.link_count(); ++id) network.set_link_up(id, true);
      network.run_until();
      EXPECT_EQ(network.in_flight(), 0);
      EXPECT_EQ(log.fates.size(), sent) << text;
      std::vector<int> seen(sent, 0);
      for (const Fate& fate : log.fates) ++seen[fate.tag];
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<ptrdiff_t>(sent));
      EXPECT_TRUE(std::is_sorted(log.fates.begin(), log.fates.end(),
                                 [](const Fate& a, const Fate& b) { return a.at_ns < b.at_ns; }));
      history = log.fates;
    }
    EXPECT_EQ(histories[0], histories[1]) << text;
  }
}

}  // namespace
}  // namespace prony::sim
