// Micro benchmarks of the path from rows to a record: what a run pays after its last request.
// Counters say per token or per row; the machine and its load belong beside any number quoted.
#include <benchmark/benchmark.h>

#include "prony/record/random_rows.hpp"
#include "prony/record/rows_file.hpp"
#include "prony/record/sample_record.hpp"
#include "prony/record/summary.hpp"

namespace prony::record {
namespace {

// 1,000 streams of `tokens` tokens, one an event.
std::vector<RequestRow> streams(int64_t tokens) {
  core::Rng rng(1);
  auto rows = random_rows(rng, 1'000, 10'000'000'000);
  for (auto& row : rows) {
    if (row.status != Status::kOk) continue;
    row.events.clear();
    core::Nanos t = *row.t_first_token_ns;
    for (int64_t i = 0; i < tokens; ++i) {
      row.events.push_back({t, t + 20'000, 1});
      t += random_delay(rng, 10'000'000);
    }
    row.t_last_token_ns = row.t_done_ns = row.events.back().t_kernel_ns;
    row.output_tokens = static_cast<int32_t>(tokens);
  }
  return rows;
}

void BM_Summarize(benchmark::State& state) {
  const auto rows = streams(state.range(0));
  int64_t events = 0;
  for (const auto& row : rows) events += static_cast<int64_t>(row.events.size());
  for (auto _ : state) benchmark::DoNotOptimize(summarize(rows, {}));
  state.SetItemsProcessed(state.iterations() * events);
}
BENCHMARK(BM_Summarize)->Arg(10)->Arg(200)->Arg(2000)->Unit(benchmark::kMillisecond);

void BM_SummarizeByHistogram(benchmark::State& state) {
  const auto rows = streams(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(summarize(rows, {.exact_values_max = 1'000}));
  state.SetItemsProcessed(state.iterations() * state.range(0) * 1'000);
}
BENCHMARK(BM_SummarizeByHistogram)->Arg(200)->Unit(benchmark::kMillisecond);

void BM_RowToText(benchmark::State& state) {
  const auto rows = streams(200);
  const RowFormat format{.detailed = state.range(0) != 0};
  size_t i = 0, bytes = 0;
  for (auto _ : state) {
    bytes += core::write_json(row_to_json(rows[i++ % rows.size()], format)).value().size();
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(BM_RowToText)->Arg(0)->Arg(1);

void BM_ValidateRecord(benchmark::State& state) {
  const auto json = record_to_json(sample_record());
  for (auto _ : state) benchmark::DoNotOptimize(validate_record(json, "record").ok());
}
BENCHMARK(BM_ValidateRecord);

}  // namespace
}  // namespace prony::record
