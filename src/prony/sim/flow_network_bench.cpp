// Flow events (starts and ends) per second of FlowNetwork, closed loop: when a flow ends another
// starts, so that `concurrent` flows share the network all the time. Figures: docs/topology.md.
#include <benchmark/benchmark.h>

#include <vector>

#include "prony/core/rng.hpp"
#include "prony/sim/flow_network.hpp"
#include "prony/sim/topology_routes.hpp"
#include "prony/sim/topology_testing.hpp"

namespace prony::sim {
namespace {

std::vector<int64_t> capacities_of(const Topology& topology) {
  std::vector<int64_t> capacities;
  for (int32_t id = 0; id < topology.link_count(); ++id) {
    capacities.push_back(topology.capacity(id));
  }
  return capacities;
}

void run(benchmark::State& state, const char* text) {
  const Topology topology = testing::make_topology(text);
  Routes routes(topology);
  FlowNetwork network(capacities_of(topology));
  core::Rng rng(1);
  const auto devices = static_cast<uint64_t>(topology.device_count());
  std::vector<int32_t> path;
  const auto start = [&] {
    const auto from = static_cast<int32_t>(rng.below(devices));
    const auto to = static_cast<int32_t>(rng.below(devices));
    routes.find(from, to, rng.next_u64(), path);
    network.start({.bytes = static_cast<int64_t>(1'000'000 + rng.below(100'000'000))}, path);
  };
  for (int64_t i = 0; i < state.range(0); ++i) start();
  std::vector<FlowEnd> ended;
  uint64_t events = 0, before = network.effort().flows_solved;
  for (auto _ : state) {
    ended.clear();
    network.advance_to(network.next_end_ns(), ended);
    for (size_t i = 0; i < ended.size(); ++i) start();
    events += 2 * ended.size();
  }
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
  state.counters["solved/event"] =
      static_cast<double>(network.effort().flows_solved - before) / static_cast<double>(events);
}

void BM_FatTree1024(benchmark::State& state) {
  run(state, "fat-tree:nodes=128,rails=8,group=32");
}
BENCHMARK(BM_FatTree1024)->Arg(64)->Arg(256)->Arg(1024);
void BM_Torus256(benchmark::State& state) {
  run(state, "torus:16x16");
}
BENCHMARK(BM_Torus256)->Arg(64)->Arg(256);

}  // namespace
}  // namespace prony::sim
