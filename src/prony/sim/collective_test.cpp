// Collectives on paths against their closed forms and against perfmodel on an idle network, what
// every rank ends with, and contention between groups.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/perfmodel/collectives.hpp"
#include "prony/sim/collective_plan.hpp"
#include "prony/sim/collective_run.hpp"
#include "prony/sim/topology_testing.hpp"

namespace prony::sim {
namespace {

using testing::make_topology;
using testing::switch_hardware;

std::vector<int32_t> first_devices(int32_t n, int32_t stride = 1) {
  std::vector<int32_t> devices(static_cast<size_t>(n));
  for (int32_t i = 0; i < n; ++i) devices[static_cast<size_t>(i)] = i * stride;
  return devices;
}

double time_of(const char* text, const CollectivePlan& plan, const std::vector<int32_t>& devices) {
  Topology topology = make_topology(text);
  return static_cast<double>(collective_time_ns(topology, plan, devices));
}

TEST(CollectivePlan, MovesTheBytesOfItsKindAndOrdersThem) {
  for (const int32_t n : {1, 2, 3, 5, 8, 16}) {
    const int64_t bytes = 1'000'003;
    // Each of 2(n-1) rounds moves every part once.
    EXPECT_EQ(ring_all_reduce(n, bytes).bytes(), 2 * (n - 1) * bytes);
    EXPECT_EQ(ring_reduce_scatter(n, bytes).bytes(), (n - 1) * bytes);
    EXPECT_EQ(ring_all_gather(n, bytes).bytes(), (n - 1) * bytes);
    // Up and down every edge of both trees.
    EXPECT_EQ(tree_all_reduce(n, bytes, 4).bytes(), 2 * (n - 1) * bytes);
    const auto all = pairwise_all_to_all(n, bytes);
    EXPECT_EQ(all.steps.size(), static_cast<size_t>(n) * static_cast<size_t>(n - 1));
    std::set<std::pair<int32_t, int32_t>> pairs;
    for (const auto& step : all.steps) pairs.insert({step.from, step.to});
    EXPECT_EQ(pairs.size(), all.steps.size());
  }
  const auto plan = hierarchical_all_reduce(16, 4, 1 << 20);
  // Inside: two phases of 3 rounds in 4 servers; between: 4 parts of a quarter, 6 rounds each.
  EXPECT_EQ(plan.bytes(), (2 * 3 * 4 + 6) * (1 << 20));
}

// Plays a plan in an order that its waits allow, with sets of contributions instead of numbers:
// rank r's contribution to any part is r. After an all-reduce every rank has heard of everybody.
TEST(CollectivePlan, EveryRankHearsFromEveryRank) {
  const auto check = [](const CollectivePlan& plan, const char* name) {
    const auto n = static_cast<size_t>(plan.ranks);
    std::vector<std::set<int32_t>> heard(n);
    for (size_t r = 0; r < n; ++r) heard[r].insert(static_cast<int32_t>(r));
    std::vector<int32_t> waits, ready;
    for (const auto& step : plan.steps) waits.push_back(step.waits);
    for (size_t i = 0; i < waits.size(); ++i) {
      if (waits[i] == 0) ready.push_back(static_cast<int32_t>(i));
    }
    size_t done = 0;
    for (size_t at = 0; at < ready.size(); ++at, ++done) {
      const auto& step = plan.steps[static_cast<size_t>(ready[at])];
      const auto& known = heard[static_cast<size_t>(step.from)];
      heard[static_cast<size_t>(step.to)].insert(known.begin(), known.end());
      for (const int32_t next : plan.waiting_for(ready[at])) {
        if (--waits[static_cast<size_t>(next)] == 0) ready.push_back(next);
      }
    }
    EXPECT_EQ(done, plan.steps.size()) << name << ": some steps wait for ever";
    for (const auto& known : heard) EXPECT_EQ(known.size(), n) << name << " of " << n;
  };
  for (const int32_t n : {2, 3, 4, 7, 8, 12}) {
    check(ring_all_reduce(n, 100), "ring");
    check(tree_all_reduce(n, 100, 3), "tree");
    check(pairwise_all_to_all(n, 100), "all-to-all");
  }
  check(hierarchical_all_reduce(12, 4, 100), "hierarchical");
  check(hierarchical_all_reduce(12, 3, 100), "hierarchical");
}

// 100 GB/s, 500 ns a message: the closed form to the nanosecond a step.
TEST(Collectives, RingAndPairwiseTakeTheirClosedFormsOnAnIdleSwitch) {
  const char* text = "nvlink:devices=16,bandwidth=100,latency=250";
  for (const int32_t n : {2, 3, 8, 16}) {
    for (const int64_t bytes : {0LL, 48'000LL, 480'000'000LL}) {
      const double step = 500 + static_cast<double>(bytes) / n / 100;  // 100 bytes a ns
      const double rounding = 2.0 * n;
      EXPECT_NEAR(time_of(text, ring_all_reduce(n, bytes), first_devices(n)), 2 * (n - 1) * step,
                  rounding);
      EXPECT_NEAR(time_of(text, ring_all_gather(n, bytes), first_devices(n)), (n - 1) * step,
                  rounding);
      EXPECT_NEAR(time_of(text, pairwise_all_to_all(n, bytes), first_devices(n)), (n - 1) * step,
                  rounding);
    }
  }
}

// Two trees with 64 chunks: 2(n-1) M bytes cross n links, so no schedule is faster than 2(n-1)/n
// M/b; the form 2 log2(n) a + 2M/b counts the rank that is busiest, and filling the pipeline comes
// on top.
TEST(Collectives, TreesComeNearTheirClosedForm) {
  const char* text = "nvlink:devices=16,bandwidth=100,latency=250";
  for (const int32_t n : {4, 8, 16}) {
    const double small = time_of(text, tree_all_reduce(n, 8, 1), first_devices(n));
    EXPECT_LE(small, 2 * (std::log2(n) + 1) * 501);
    EXPECT_GE(small, 2 * (std::log2(n) - 1) * 500);
    const double bytes = 1e9;
    const double large =
        time_of(text, tree_all_reduce(n, static_cast<int64_t>(bytes), 64), first_devices(n));
    const double form = 2 * std::log2(n) * 500 + 2 * bytes / 100;
    EXPECT_GE(large, 2.0 * (n - 1) / n * bytes / 100);
    EXPECT_LE(large, 1.15 * form) << n;
  }
}

// Latency decides for trees, bandwidth for rings; they cross.
TEST(Collectives, TreesWinSmallAndRingsWinLarge) {
  const char* text = "nvlink:devices=16,bandwidth=100,latency=250";
  const auto devices = first_devices(16);
  EXPECT_LT(time_of(text, tree_all_reduce(16, 4096, 1), devices),
            time_of(text, ring_all_reduce(16, 4096), devices));
  EXPECT_GT(time_of(text, tree_all_reduce(16, 1 << 30, 32), devices),
            time_of(text, ring_all_reduce(16, 1 << 30), devices));
}

// perfmodel on the same hardware, less the software's base time, which no path has. Its hop is
// counted per rank (n) and here per step (2(n-1)/2), so small messages differ by 1/n.
TEST(Collectives, AgreeWithPredictOnAnIdleNetwork) {
  const auto hardware = switch_hardware();
  const double base_ns = hardware.link.library_base_s * 1e9;
  for (const int32_t n : {2, 4}) {
    for (const double bytes : {64e6, 512e6}) {
      const auto predicted =
          perfmodel::all_reduce(hardware, catalog::AllReduceKind::kLibrary, n, bytes);
      ASSERT_EQ(predicted.algorithm, perfmodel::CollectiveAlgorithm::kRing);
      const double simulated =
          time_of("nvlink", ring_all_reduce(n, static_cast<int64_t>(bytes)), first_devices(n));
      EXPECT_NEAR((simulated + base_ns) / (predicted.seconds * 1e9), 1, 0.01) << n << " " << bytes;
    }
  }
  const double bytes = 256e6;
  const double gather = time_of("nvlink", ring_all_gather(8, 256'000'000), first_devices(8));
  EXPECT_NEAR((gather + base_ns) / (perfmodel::all_gather(hardware, 8, bytes).seconds * 1e9), 1,
              0.01);
  const double all = time_of("nvlink", pairwise_all_to_all(8, 256'000'000), first_devices(8));
  EXPECT_NEAR((all + base_ns) / (perfmodel::all_to_all(hardware, 8, bytes).seconds * 1e9), 1, 0.01);
}

// Four servers of 8: rails of their own between the servers, so the parts do not meet.
TEST(Collectives, HierarchicalAgreesWithPredictAcrossServers) {
  const auto hardware = switch_hardware();
  const double base_ns = 2 * hardware.link.library_base_s * 1e9;  // two phases inside
  for (const double bytes : {64e6, 1024e6}) {
    const auto predicted =
        perfmodel::all_reduce(hardware, catalog::AllReduceKind::kLibrary, 32, bytes);
    ASSERT_EQ(predicted.algorithm, perfmodel::CollectiveAlgorithm::kHierarchical);
    const double simulated =
        time_of("fat-tree:nodes=4,rails=8,per-switch=1",
                hierarchical_all_reduce(32, 8, static_cast<int64_t>(bytes)), first_devices(32));
    EXPECT_NEAR((simulated + base_ns) / (predicted.seconds * 1e9), 1, 0.03) << bytes;
  }
}

class Done : public CollectiveSink {
 public:
  void on_collective_done(uint64_t tag, int64_t now_ns) override { done[tag] = now_ns; }
  void on_collective_failed(uint64_t tag, int64_t now_ns) override { failed[tag] = now_ns; }
  std::map<uint64_t, int64_t> done, failed;
};

// Two rings over the same leaf uplink take twice as long as one; rings that share nothing, as long
// as one.
TEST(Collectives, GroupsContendForTheLinksTheyShareAndOnlyForThem) {
  const auto plan = ring_all_reduce(2, 200'000'000);
  const auto time_both = [&](const char* text, std::vector<int32_t> a, std::vector<int32_t> b) {
    Topology topology = make_topology(text);
    Network network(topology);
    CollectiveRunner runner(network);
    Done done;
    runner.start(plan, a, 1, 1, &done);
    runner.start(plan, b, 1, 2, &done);
    network.run_until();
    EXPECT_EQ(runner.running(), 0);
    EXPECT_EQ(done.done.size(), 2u);
    return std::max(done.done[1], done.done[2]);
  };
  // One spine and one uplink a leaf, as wide as one adapter.
  const char* narrow =
      "fat-tree:nodes=4,devices=2,nics=2,rails=1,group=2,spines=1,oversubscription=4,per-switch=1";
  Topology topology = make_topology(narrow);
  const auto alone =
      static_cast<double>(collective_time_ns(topology, plan, std::vector<int32_t>{0, 4}));
  const auto both = static_cast<double>(time_both(narrow, {0, 4}, {2, 6}));
  EXPECT_NEAR(both / alone, 2, 0.01);
  const auto apart = static_cast<double>(time_both(narrow, {0, 2}, {4, 6}));
  const auto pair =
      static_cast<double>(collective_time_ns(topology, plan, std::vector<int32_t>{0, 2}));
  EXPECT_NEAR(apart / pair, 1, 0.001);
}

TEST(Collectives, AFailureThatCutsARankOffFailsTheCollectiveAlone) {
  Topology topology = make_topology("nvlink:devices=4,bandwidth=1,latency=100");
  Network network(topology);
  CollectiveRunner runner(network);
  Done done;
  const auto plan = ring_all_reduce(2, 1'000'000);
  runner.start(plan, std::vector<int32_t>{0, 1}, 1, 1, &done);
  runner.start(plan, std::vector<int32_t>{2, 3}, 1, 2, &done);
  network.advance_to(100'000);
  network.set_vertex_up(1, false);
  network.run_until();
  EXPECT_EQ(done.failed.size(), 1u);
  EXPECT_EQ(done.failed[1], 100'000);
  EXPECT_EQ(done.done.size(), 1u);
  EXPECT_EQ(network.in_flight(), 0);
  // The place of the failed one is used again.
  network.set_vertex_up(1, true);
  runner.start(plan, std::vector<int32_t>{0, 1}, 1, 3, &done);
  network.run_until();
  EXPECT_EQ(done.done.count(3), 1u);
}

// In a torus a ring whose neighbours are neighbours beats one placed at random.
TEST(Collectives, ARingOfNeighboursBeatsOneThatJumpsAbout) {
  Topology topology = make_topology("torus:16x16");
  const auto plan = ring_all_reduce(16, 131'072);
  std::vector<int32_t> scattered;
  core::Rng rng(3);
  while (scattered.size() < 16) {
    const auto device = static_cast<int32_t>(rng.below(256));
    if (std::find(scattered.begin(), scattered.end(), device) == scattered.end()) {
      scattered.push_back(device);
    }
  }
  const auto near = collective_time_ns(topology, plan, first_devices(16));
  const auto far = collective_time_ns(topology, plan, scattered);
  EXPECT_GT(far, 2 * near);
}

}  // namespace
}  // namespace prony::sim
