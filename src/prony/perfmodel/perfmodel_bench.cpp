// What a step's operator list costs: budget 20 us for 256 mixed rows, rows added anew every time as
// an emulator would do. Times are of this machine; the ratio to the budget is what matters.
#include <benchmark/benchmark.h>

#include <string>

#include "prony/catalog/catalog.hpp"
#include "prony/perfmodel/step_model.hpp"

namespace prony::perfmodel {
namespace {

void step(benchmark::State& state, const std::string& id) {
  const auto spec = catalog::resolve_model(id);
  if (!spec.ok()) {
    state.SkipWithError(spec.error().message.c_str());
    return;
  }
  const StepModel model(*spec, published_precision(*spec));
  StepShape shape;
  std::vector<Operator> ops;
  for (auto _ : state) {
    shape.clear();
    for (int64_t row = 0; row < state.range(0); ++row) {
      // Every eighth row is a prefill chunk, the others decode at different contexts.
      shape.add(row % 8 == 0 ? StepRow{row * 16, 128, false} : StepRow{1000 + row * 7, 1, true});
    }
    model.operators(shape, &ops);
    benchmark::DoNotOptimize(totals(ops).flops);
  }
  state.counters["operators"] = static_cast<double>(ops.size());
}

BENCHMARK_CAPTURE(step, llama_3_1_8b, "llama-3.1-8b")
    ->Arg(1)
    ->Arg(256)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(step, gpt_oss_120b, "gpt-oss-120b")->Arg(256)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(step, deepseek_v3, "deepseek-v3")->Arg(256)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace prony::perfmodel
