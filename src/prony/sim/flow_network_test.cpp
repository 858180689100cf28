// FlowNetwork against hand cases, against progressive filling from nothing in long double, against
// the definition of max-min fairness itself, and against byte conservation, over random histories.
#include "prony/sim/flow_network.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "prony/core/rng.hpp"

namespace prony::sim {
namespace {

using Path = std::vector<int32_t>;

// What a test knows of a flow, kept apart from the network.
struct Known {
  FlowId id;
  Path path;
  uint32_t weight;
  int64_t bytes;
};

// Raises the level of all flows together; where a link fills its flows stop.
std::vector<long double> fill_from_nothing(const std::vector<int64_t>& capacities,
                                           const std::vector<Known>& flows) {
  std::vector<long double> rest(capacities.begin(), capacities.end());
  std::vector<long double> rates(flows.size(), -1);
  for (size_t left = flows.size(); left > 0;) {
    std::vector<long double> weights(capacities.size(), 0);
    for (size_t f = 0; f < flows.size(); ++f) {
      if (rates[f] >= 0) continue;
      for (const int32_t link : flows[f].path)
        weights[static_cast<size_t>(link)] += flows[f].weight;
    }
    size_t tightest = capacities.size();
    for (size_t l = 0; l < capacities.size(); ++l) {
      if (weights[l] == 0) continue;
      if (tightest == capacities.size() ||
          rest[l] / weights[l] < rest[tightest] / weights[tightest]) {
        tightest = l;
      }
    }
    const long double level = std::max(0.0L, rest[tightest] / weights[tightest]);
    for (size_t f = 0; f < flows.size(); ++f) {
      const Path& path = flows[f].path;
      if (rates[f] >= 0) continue;
      if (std::find(path.begin(), path.end(), static_cast<int32_t>(tightest)) == path.end())
        continue;
      rates[f] = level * flows[f].weight;
      for (const int32_t link : path) rest[static_cast<size_t>(link)] -= rates[f];
      --left;
    }
  }
  return rates;
}

void expect_max_min(FlowNetwork& network, const std::vector<int64_t>& capacities,
                    const std::vector<Known>& flows) {
  const auto expected = fill_from_nothing(capacities, flows);
  std::vector<int64_t> load(capacities.size(), 0);
  std::vector<double> level_max(capacities.size(), 0);
  std::vector<int> crossing(capacities.size(), 0);
  for (size_t f = 0; f < flows.size(); ++f) {
    const int64_t rate = network.rate_bytes_per_s(flows[f].id);
    const double room = 10.0 * flows[f].weight + 1e-8 * static_cast<double>(expected[f]);
    ASSERT_NEAR(static_cast<double>(rate), static_cast<double>(expected[f]), room) << "flow " << f;
    for (const int32_t link : flows[f].path) {
      const auto l = static_cast<size_t>(link);
      load[l] += rate;
      ++crossing[l];
      level_max[l] = std::max(level_max[l], static_cast<double>(rate) / flows[f].weight);
    }
  }
  for (size_t l = 0; l < capacities.size(); ++l) {
    ASSERT_LE(load[l], capacities[l]);  // to the byte
    ASSERT_EQ(load[l], network.load_bytes_per_s(static_cast<int32_t>(l)));
  }
  // The definition: a saturated link on which nobody has more.
  for (const Known& flow : flows) {
    const double level = static_cast<double>(network.rate_bytes_per_s(flow.id)) / flow.weight;
    const bool bound = std::any_of(flow.path.begin(), flow.path.end(), [&](int32_t link) {
      const auto l = static_cast<size_t>(link);
      return capacities[l] - load[l] <= crossing[l] + 1 && level >= level_max[l] * (1 - 1e-8) - 10;
    });
    ASSERT_TRUE(bound);
  }
}

Path random_path(core::Rng& rng, size_t links) {
  Path path;
  const uint64_t length = 1 + rng.below(std::min<size_t>(links, 4));
  while (path.size() < length) {
    const auto link = static_cast<int32_t>(rng.below(links));
    if (std::find(path.begin(), path.end(), link) == path.end()) path.push_back(link);
  }
  return path;
}

TEST(FlowNetwork, OneFlowHasTheLinkAndEndsWhenItsBytesAreGone) {
  const std::vector<int64_t> capacities = {1'000'000'000};
  FlowNetwork network(capacities);
  EXPECT_EQ(network.next_end_ns(), kNeverNs);
  const Path path = {0};
  const FlowId id = network.start({.bytes = 1'000'000, .tag = 7}, path);
  EXPECT_EQ(network.rate_bytes_per_s(id), 1'000'000'000);
  EXPECT_EQ(network.next_end_ns(), 1'000'000);
  std::vector<FlowEnd> ended;
  network.advance_to(400'000, ended);
  EXPECT_TRUE(ended.empty());
  EXPECT_TRUE(network.remaining(id) == NanoBytes{600'000} * kNanoBytesPerByte);
  network.advance_to(1'000'000, ended);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].tag, 7u);
  EXPECT_EQ(ended[0].at_ns, 1'000'000);
  EXPECT_FALSE(network.alive(id));
  EXPECT_EQ(network.active_count(), 0);
}

// Bertsekas & Gallager's kind of example: two short flows and one over both links. 6 and 10 GB/s:
// the long one and the first short one have 3, the second short one the 7 that are left.
TEST(FlowNetwork, SharesAsWorkedOutByHand) {
  const std::vector<int64_t> capacities = {6'000'000'000, 10'000'000'000};
  FlowNetwork network(capacities);
  const FlowId both = network.start({.bytes = 1 << 30}, Path{0, 1});
  const FlowId first = network.start({.bytes = 1 << 30}, Path{0});
  const FlowId second = network.start({.bytes = 1 << 30}, Path{1});
  EXPECT_EQ(network.rate_bytes_per_s(both), 3'000'000'000);
  EXPECT_EQ(network.rate_bytes_per_s(first), 3'000'000'000);
  EXPECT_EQ(network.rate_bytes_per_s(second), 7'000'000'000);
  network.set_weight(both, 2);  // 4, 2 and 6
  EXPECT_EQ(network.rate_bytes_per_s(both), 4'000'000'000);
  EXPECT_EQ(network.rate_bytes_per_s(first), 2'000'000'000);
  EXPECT_EQ(network.rate_bytes_per_s(second), 6'000'000'000);
  network.cancel(first);  // then link 0 alone bounds the long one: 6, and 4 are left
  EXPECT_EQ(network.rate_bytes_per_s(both), 6'000'000'000);
  EXPECT_EQ(network.rate_bytes_per_s(second), 4'000'000'000);
  network.set_capacity(0, 1'000'000'000);
  EXPECT_EQ(network.rate_bytes_per_s(both), 1'000'000'000);
  EXPECT_EQ(network.rate_bytes_per_s(second), 9'000'000'000);
  network.set_capacity(0, 0);
  EXPECT_EQ(network.rate_bytes_per_s(both), 0);
  EXPECT_EQ(network.rate_bytes_per_s(second), 10'000'000'000);
  network.reroute(both, Path{1});  // weights 2 to 1
  EXPECT_EQ(network.rate_bytes_per_s(both), 6'666'666'666);
  EXPECT_EQ(network.rate_bytes_per_s(second), 3'333'333'333);
}

// Two flows, one of half the bytes: it ends when each has moved as much, then the other has all.
TEST(FlowNetwork, EndsFollowTheChangesOfRate) {
  const std::vector<int64_t> capacities = {2'000'000'000};
  FlowNetwork network(capacities);
  network.start({.bytes = 1'000'000, .tag = 1}, Path{0});
  network.start({.bytes = 3'000'000, .tag = 2}, Path{0});
  std::vector<FlowEnd> ended;
  while (network.next_end_ns() != kNeverNs) network.advance_to(network.next_end_ns(), ended);
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0].at_ns, 1'000'000);
  EXPECT_EQ(ended[1].at_ns, 2'000'000);
}

TEST(FlowNetwork, FlowsWithoutBytesOrLinksEndNowInOrderOfTheirStart) {
  const std::vector<int64_t> capacities = {5};
  FlowNetwork network(capacities);
  network.start({.bytes = 0, .tag = 1}, Path{0});
  network.start({.bytes = 10, .tag = 2}, Path{});
  network.start({.bytes = 0, .tag = 3}, Path{});
  EXPECT_EQ(network.next_end_ns(), 0);
  std::vector<FlowEnd> ended;
  network.advance_to(0, ended);
  ASSERT_EQ(ended.size(), 3u);
  EXPECT_EQ(ended[0].tag, 1u);
  EXPECT_EQ(ended[2].tag, 3u);
}

TEST(FlowNetwork, AHaltedFlowNeverEndsUntilItsLinkIsBack) {
  const std::vector<int64_t> capacities = {0};
  FlowNetwork network(capacities);
  network.start({.bytes = 100}, Path{0});
  EXPECT_EQ(network.next_end_ns(), kNeverNs);
  std::vector<FlowEnd> ended;
  network.advance_to(5'000, ended);
  network.set_capacity(0, 1'000'000'000);
  EXPECT_EQ(network.next_end_ns(), 5'100);
}

TEST(FlowNetwork, SizesBeyondSixtyFourBitsOfNanobytesStayExact) {
  const std::vector<int64_t> capacities = {450'000'000'000};
  FlowNetwork network(capacities);
  network.start({.bytes = 1'000'000'000'000'000}, Path{0});  // a petabyte
  EXPECT_EQ(network.next_end_ns(), 2'222'222'222'223);
}

// Random histories of starts, ends, cancels, new weights, new paths and failing links: after every
// event the allocation is the one that a solution from nothing gives.
TEST(FlowNetwork, IsMaxMinFairAfterEveryEventOfRandomHistories) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    core::Rng rng(seed);
    const size_t links = 1 + rng.below(14);
    std::vector<int64_t> capacities(links);
    for (int64_t& capacity : capacities) {
      capacity = static_cast<int64_t>(1'000'000 + rng.below(100'000'000'000));
    }
    FlowNetwork network(capacities);
    std::vector<Known> flows;
    std::vector<FlowEnd> ended;
    const uint32_t heaviest = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 9 : kFlowWeightMax;
    for (int event = 0; event < 120; ++event) {
      const uint64_t what = rng.below(10);
      if (what < 5 || flows.empty()) {
        Known flow{{}, random_path(rng, links), 1, 0};
        flow.weight = 1 + static_cast<uint32_t>(rng.below(heaviest));
        flow.bytes = static_cast<int64_t>(1 + rng.below(1'000'000'000));
        flow.id = network.start({.bytes = flow.bytes, .weight = flow.weight}, flow.path);
        flows.push_back(flow);
      } else if (what < 7) {
        const int64_t end = network.next_end_ns();
        if (end != kNeverNs) network.advance_to(end, ended);
        std::erase_if(flows, [&](const Known& flow) { return !network.alive(flow.id); });
      } else {
        Known& flow = flows[rng.below(flows.size())];
        if (what == 7) {
          network.cancel(flow.id);
          std::erase_if(flows, [&](const Known& known) { return !network.alive(known.id); });
        } else if (what == 8) {
          flow.weight = 1 + static_cast<uint32_t>(rng.below(heaviest));
          network.set_weight(flow.id, flow.weight);
          flow.path = random_path(rng, links);
          network.reroute(flow.id, flow.path);
        } else {
          const size_t link = rng.below(links);
          capacities[link] =
              rng.below(4) == 0 ? 0 : static_cast<int64_t>(1'000'000 + rng.below(100'000'000'000));
          network.set_capacity(static_cast<int32_t>(link), capacities[link]);
        }
      }
      ASSERT_NO_FATAL_FAILURE(expect_max_min(network, capacities, flows))
          << "seed " << seed << " event " << event;
    }
  }
}

class Ledger : public FlowObserver {
 public:
  void on_stretch(uint64_t tag, int64_t from_ns, int64_t to_ns, int64_t bytes_per_s,
                  NanoBytes moved) override {
    EXPECT_LT(from_ns, to_ns);
    EXPECT_GE(from_ns, last_ns[tag]);
    EXPECT_TRUE(moved <= NanoBytes{bytes_per_s} * (to_ns - from_ns));
    last_ns[tag] = to_ns;
    sum[tag] += moved;
  }
  std::map<uint64_t, NanoBytes> sum;
  std::map<uint64_t, int64_t> last_ns;
};

// What links carried is what flows moved, to 1e-9 byte, and the observer saw all of it.
TEST(FlowNetwork, BytesAreConserved) {
  for (uint64_t seed = 100; seed < 120; ++seed) {
    core::Rng rng(seed);
    const size_t links = 6;
    std::vector<int64_t> capacities(links);
    for (int64_t& capacity : capacities) {
      capacity = static_cast<int64_t>(1'000'000'000 + rng.below(1'000'000'007));
    }
    FlowNetwork network(capacities);
    Ledger ledger;
    network.set_observer(&ledger);
    std::map<uint64_t, Known> flows;
    std::vector<NanoBytes> expected(links, 0);
    std::vector<FlowEnd> ended;
    const auto add = [&](uint64_t tag, NanoBytes moved) {
      for (const int32_t link : flows[tag].path) expected[static_cast<size_t>(link)] += moved;
      EXPECT_TRUE(ledger.sum[tag] == moved) << tag;
      flows.erase(tag);
    };
    for (uint64_t tag = 0; tag < 400; ++tag) {
      Known flow{{}, random_path(rng, links), 1 + static_cast<uint32_t>(rng.below(3)), 0};
      flow.bytes = static_cast<int64_t>(1 + rng.below(100'000));
      flow.id = network.start({.bytes = flow.bytes, .weight = flow.weight, .tag = tag}, flow.path);
      flows[tag] = flow;
      const auto gap = static_cast<int64_t>(rng.below(30'000));
      const int64_t until = network.now_ns() + gap;
      ended.clear();
      while (network.next_end_ns() <= until) network.advance_to(network.next_end_ns(), ended);
      network.advance_to(until, ended);
      for (const FlowEnd& end : ended) {
        add(end.tag, NanoBytes{flows[end.tag].bytes} * kNanoBytesPerByte);
      }
      if (tag % 7 == 0 && !flows.empty()) {
        const uint64_t victim = flows.begin()->first;
        add(victim, network.cancel(flows[victim].id));
      }
    }
    for (auto& [tag, flow] : flows) {
      const NanoBytes moved =
          NanoBytes{flow.bytes} * kNanoBytesPerByte - network.remaining(flow.id);
      for (const int32_t link : flow.path) expected[static_cast<size_t>(link)] += moved;
    }
    for (size_t l = 0; l < links; ++l) {
      EXPECT_TRUE(network.carried(static_cast<int32_t>(l)) == expected[l]) << "link " << l;
    }
    network.flush_observer();
    for (auto& [tag, flow] : flows) {
      EXPECT_TRUE(ledger.sum[tag] ==
                  NanoBytes{flow.bytes} * kNanoBytesPerByte - network.remaining(flow.id));
    }
  }
}

// Flows that share nothing cost nothing: one of a thousand pairs changes, two flows are solved.
TEST(FlowNetwork, AnEventSolvesOnlyWhatItCanChange) {
  const std::vector<int64_t> capacities(1000, 1'000'000'000);
  FlowNetwork network(capacities);
  for (int32_t l = 0; l < 1000; ++l) network.start({.bytes = 1'000'000'000}, Path{l});
  network.next_end_ns();
  const uint64_t before = network.effort().flows_solved;
  network.start({.bytes = 5}, Path{17});
  network.next_end_ns();
  EXPECT_LE(network.effort().flows_solved - before, 3u);
}

// A chain in which every flow shares a link with the next, and only one link is tight.
TEST(FlowNetwork, AChainOfSharedLinksIsSolvedOnlyWhereItBinds) {
  std::vector<int64_t> capacities(501, 10'000'000'000);
  for (size_t l = 0; l < 501; l += 50) capacities[l] = 1'000'000'000;
  FlowNetwork network(capacities);
  std::vector<Known> flows;
  for (int32_t f = 0; f < 500; ++f) {
    Known flow{{}, {f, f + 1}, 1, 1'000'000'000};
    flow.id = network.start({.bytes = flow.bytes}, flow.path);
    flows.push_back(flow);
  }
  expect_max_min(network, capacities, flows);
  const uint64_t before = network.effort().flows_solved;
  network.cancel(flows[250].id);
  flows.erase(flows.begin() + 250);
  expect_max_min(network, capacities, flows);
  EXPECT_LT(network.effort().flows_solved - before, 60u);
}

}  // namespace
}  // namespace prony::sim
