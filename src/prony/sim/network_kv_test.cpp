// KV transfers between groups of different sizes, streamed and at once, and the heat map of who
// sent when.
#include "prony/sim/network_kv.hpp"

#include <gmock/gmock.h>

#include <map>
#include <numeric>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/sim/collective_run.hpp"
#include "prony/sim/network_heat_map.hpp"
#include "prony/sim/topology_testing.hpp"

namespace prony::sim {
namespace {

using testing::make_topology;

class Log : public KvSink {
 public:
  void on_kv_done(uint64_t tag, int64_t now_ns) override { done[tag] = now_ns; }
  void on_kv_failed(uint64_t tag, int64_t now_ns) override { failed[tag] = now_ns; }
  std::map<uint64_t, int64_t> done, failed;
};

TEST(KvTransfers, SplitsByWhatTheRanksShare) {
  std::vector<KvShare> shares;
  split_kv(2, 4, 100, shares);
  EXPECT_EQ(shares, (std::vector<KvShare>{{0, 0, 25}, {0, 1, 25}, {1, 2, 25}, {1, 3, 25}}));
  shares.clear();
  split_kv(3, 2, 6, shares);
  EXPECT_EQ(shares, (std::vector<KvShare>{{0, 0, 2}, {1, 0, 1}, {1, 1, 1}, {2, 1, 2}}));
  for (int32_t p = 1; p <= 9; ++p) {
    for (int32_t d = 1; d <= 9; ++d) {
      for (const int64_t bytes : {0LL, 1LL, 7LL, 1'000'003LL, 400'000'000'000LL}) {
        shares.clear();
        split_kv(p, d, bytes, shares);
        int64_t sum = 0;
        std::vector<int64_t> from(static_cast<size_t>(p), 0), to(static_cast<size_t>(d), 0);
        for (const KvShare& share : shares) {
          sum += share.bytes;
          EXPECT_GT(share.bytes, 0);
          from[static_cast<size_t>(share.from)] += share.bytes;
          to[static_cast<size_t>(share.to)] += share.bytes;
        }
        EXPECT_EQ(sum, bytes);
        for (const int64_t each : from) EXPECT_LE(std::abs(each - bytes / p), 1);
        for (const int64_t each : to) EXPECT_LE(std::abs(each - bytes / d), 1);
      }
    }
  }
}

// From server 0 to server 1 over four adapters at once.
TEST(KvTransfers, TakesTheTimeOfItsSlowestShare) {
  Topology topology = make_topology(
      "fat-tree:nodes=2,devices=4,rails=4,per-switch=1,network=10,network-latency=1000,"
      "pcie=100,pcie-latency=0");
  Network network(topology);
  KvTransfers transfers(network);
  Log log;
  const std::vector<int32_t> prefill = {0, 1, 2, 3}, decode = {4, 5, 6, 7};
  transfers.send(prefill, decode, 40'000'000, 1, 1, &log);  // 10 MB a rank at 10 GB/s
  network.run_until();
  EXPECT_EQ(log.done, (std::map<uint64_t, int64_t>{{1, 1'002'000}}));
  // To one rank: its adapter takes all of it.
  const int64_t begin = network.now_ns();
  transfers.send(prefill, std::vector<int32_t>{4}, 40'000'000, 1, 2, &log);
  network.run_until();
  EXPECT_NEAR(static_cast<double>(log.done[2] - begin), 4'002'000, 1'000);
  EXPECT_EQ(transfers.active_count(), 0);
}

// Layers pushed while prefill runs: only what is left after it delays the first decode step.
TEST(KvTransfers, StreamingHidesWhatPrefillCovers) {
  Topology topology = make_topology("nvlink:devices=2,bandwidth=10,latency=0");
  Network network(topology);
  KvTransfers transfers(network);
  Log log;
  const std::vector<int32_t> a = {0}, b = {1};
  const KvId id = transfers.open(a, b, 1, 1, &log);
  for (int layer = 1; layer <= 10; ++layer) {  // a layer each 200 us, 100 us to send
    network.advance_to(layer * 200'000);
    transfers.push(id, 1'000'000);
  }
  transfers.close(id);
  network.run_until();
  EXPECT_EQ(log.done[1], 2'100'000);
  // Closing when all has arrived still tells the sink, later.
  const KvId late = transfers.open(a, b, 1, 2, &log);
  transfers.push(late, 1'000);
  network.run_until();
  EXPECT_EQ(log.done.count(2), 0u);
  transfers.close(late);
  EXPECT_EQ(log.done.count(2), 0u);
  network.run_until();
  EXPECT_EQ(log.done[2], network.now_ns());
}

TEST(KvTransfers, FailsWhenARankIsCutOffAndOthersGoOn) {
  Topology topology = make_topology("nvlink:devices=4,bandwidth=1,latency=0");
  Network network(topology);
  KvTransfers transfers(network);
  Log log;
  const std::vector<int32_t> a = {0}, b = {1, 2}, c = {3};
  transfers.send(a, b, 1'000'000, 1, 1, &log);
  transfers.send(c, a, 1'000'000, 1, 2, &log);
  const KvId third = transfers.send(c, a, 1'000'000, 1, 3, &log);
  network.advance_to(100'000);
  network.set_vertex_up(1, false);
  transfers.cancel(third);
  EXPECT_FALSE(transfers.active(third));
  network.run_until();
  EXPECT_EQ(log.failed, (std::map<uint64_t, int64_t>{{1, 100'000}}));
  EXPECT_EQ(log.done.size(), 1u);
  EXPECT_EQ(log.done.count(2), 1u);
  EXPECT_EQ(network.in_flight(), 0);
}

TEST(HeatMap, CellsSumToWhatWasSentAndWidenInsteadOfGrowing) {
  Topology topology = make_topology("nvlink:devices=8,bandwidth=1,latency=100");
  Network network(topology);
  HeatMap map({.devices = 8, .bucket_ns = 1000, .buckets = 16});
  network.set_observer(&map);
  CollectiveRunner runner(network);
  class Ignore : public CollectiveSink {
    void on_collective_done(uint64_t, int64_t) override {}
    void on_collective_failed(uint64_t, int64_t) override {}
  } ignore;
  std::vector<int64_t> bytes(64);
  core::Rng rng(4);
  for (size_t i = 0; i < 64; ++i) bytes[i] = static_cast<int64_t>(rng.below(30'000));  // skewed
  const auto plan = pairwise_all_to_all(8, bytes);
  std::vector<int32_t> devices(8);
  std::iota(devices.begin(), devices.end(), 0);
  runner.start(plan, devices, 1, 0, &ignore);
  network.run_until();
  network.flush_observer();
  EXPECT_LE(map.bucket_count(), 16);
  EXPECT_GT(map.bucket_ns(), 1000);  // it ran past 16 us
  EXPECT_GE(map.bucket_count() * map.bucket_ns(), network.now_ns() - 1000);
  for (int32_t device = 0; device < 8; ++device) {
    NanoBytes sum = 0;
    for (int32_t b = 0; b < map.bucket_count(); ++b) {
      sum += map.sent(device, b);
      EXPECT_LE(map.sent_bytes(device, b), map.bucket_ns() + 1);  // 1 byte a ns
    }
    int64_t expected = 0;
    for (int32_t to = 0; to < 8; ++to) {
      if (to != device) expected += bytes[static_cast<size_t>(device * 8 + to)];
    }
    EXPECT_TRUE(sum == NanoBytes{expected} * kNanoBytesPerByte) << device;
  }
}

TEST(HeatMap, AStretchFillsTheBucketsItCrosses) {
  HeatMap map({.devices = 2, .bucket_ns = 100, .buckets = 4});
  map.on_traffic(1, 0, 50, 250, 3, NanoBytes{599});  // one nanobyte less than 3 x 200
  EXPECT_EQ(map.bucket_count(), 3);
  EXPECT_TRUE(map.sent(1, 0) == 150);
  EXPECT_TRUE(map.sent(1, 1) == 300);
  EXPECT_TRUE(map.sent(1, 2) == 149);
  EXPECT_TRUE(map.sent(0, 0) == 0);
  map.on_traffic(0, 1, 799, 800, 7, NanoBytes{7});
  EXPECT_EQ(map.bucket_ns(), 200);
  EXPECT_TRUE(map.sent(1, 0) == 450);
  EXPECT_TRUE(map.sent(0, 3) == 7);
}

}  // namespace
}  // namespace prony::sim
