// Micro benchmarks of stats: the histogram stands on the client's token path, so a sample must cost
// a few nanoseconds; intervals are asked once a second by the progress line.
#include <benchmark/benchmark.h>

#include <vector>

#include "prony/core/rng.hpp"
#include "prony/stats/histogram.hpp"
#include "prony/stats/quantile.hpp"

namespace prony::stats {
namespace {

void BM_HistogramRecord(benchmark::State& state) {
  auto histogram = Histogram::create({}).value();
  core::Rng rng(1);
  std::vector<uint64_t> values(4096);
  for (auto& value : values) value = static_cast<uint64_t>(1e7 * rng.exponential());
  size_t i = 0;
  for (auto _ : state) histogram.record(values[i++ & 4095]);
  benchmark::DoNotOptimize(histogram.count());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_HistogramRecord);

void BM_HistogramQuantile(benchmark::State& state) {
  auto histogram = Histogram::create({}).value();
  core::Rng rng(1);
  for (int i = 0; i < 100'000; ++i) {
    histogram.record(static_cast<uint64_t>(1e7 * rng.exponential()));
  }
  for (auto _ : state) benchmark::DoNotOptimize(histogram.quantile(0.99));
}
BENCHMARK(BM_HistogramQuantile);

void BM_QuantileRanks(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(quantile_ranks(state.range(0), 0.99));
}
BENCHMARK(BM_QuantileRanks)->Arg(1'000)->Arg(1'000'000)->Arg(100'000'000);

}  // namespace
}  // namespace prony::stats
