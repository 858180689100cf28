// Speed of the whole engine: tokens per second of decode and prefill of the built-in dummies, one
// thread, and of the Llama-3.2-1B shape, two (2.5 GB of weights take seconds to fill:
// hence a fixed number of iterations), beside
// what the weights read a step would allow. Counters: tokens_per_s; weights_GB_per_s is the bytes
// of weights times steps per second, to be read beside ReadBandwidth of kernels_bench (a model
// under a few hundred MB runs partly from the last-level cache: the size is printed).
#include <benchmark/benchmark.h>

#include "prony/catalog/catalog.hpp"
#include "prony/engine/cpu_executor.hpp"
#include "prony/engine/dummy_tensors.hpp"
#include "prony/engine/specs_testing.hpp"

namespace prony::engine {
namespace {

std::unique_ptr<CpuExecutor> executor_of(const char* name, kernels::Dtype dtype) {
  CpuExecutorOptions options;
  options.dtype = dtype;
  options.bf16_rows = std::nullopt;  // as `prony serve` decides
  if (std::string_view(name).find("1b") != std::string_view::npos) {
    options.threads = 2;
    options.max_context = 2048;
    options.max_sequences = 16;
    options.kv_cache_bytes = int64_t{2} << 30;
  }
  return CpuExecutor::create(catalog::resolve_model(name).value(), DummyTensors(1), options)
      .value();
}

/// `batch` sequences of `prompt` tokens each, every one in its own run of blocks.
struct Batch {
  Batch(CpuExecutor& target, int32_t batch, int32_t prompt) : executor(target) {
    const int32_t blocks = executor.capacity().block_count / batch;
    for (int32_t i = 0; i < batch; ++i) {
      executor.start(
          static_cast<sched::Handle>(i),
          {.prompt = random_tokens(prompt, executor.model().vocab, static_cast<uint64_t>(i)),
           .max_new_tokens = executor.capacity().max_context - prompt});
      std::vector<int32_t>& own = pages.emplace_back();
      for (int32_t block = 0; block < blocks; ++block) own.push_back(i * blocks + block);
    }
    for (int32_t i = 0; i < batch; ++i) {
      plan.rows.push_back({.handle = static_cast<sched::Handle>(i),
                           .first_position = 0,
                           .token_count = prompt,
                           .samples = true,
                           .blocks = pages[static_cast<size_t>(i)]});
    }
  }
  /// Runs the plan, then makes it a decode step.
  void step() {
    executor.submit(plan);
    benchmark::DoNotOptimize(executor.wait().value().tokens[0].token);
    for (sched::StepRow& row : plan.rows) {
      row.first_position += row.token_count;
      row.token_count = 1;
    }
  }
  CpuExecutor& executor;
  std::vector<std::vector<int32_t>> pages;
  sched::StepPlan plan;
};

// Decode at a context of about 128 to 1000 tokens.
void Decode(benchmark::State& state, const char* name, kernels::Dtype dtype) {
  const auto rows = static_cast<int32_t>(state.range(0));
  const auto executor = executor_of(name, dtype);
  std::optional<Batch> batch;
  int32_t steps = 0;
  const auto restart = [&] {
    if (batch) {
      for (int32_t i = 0; i < rows; ++i) executor->finish(static_cast<sched::Handle>(i));
    }
    // Prompts of 128 tokens, but no more than a step may hold.
    batch.emplace(*executor, rows, std::min(128, executor->capacity().max_tokens_per_step / rows));
    batch->step();
    steps = 0;
  };
  for (auto _ : state) {
    if (!batch || ++steps == 800) {
      state.PauseTiming();
      restart();
      state.ResumeTiming();
    }
    batch->step();
  }
  state.counters["tokens_per_s"] =
      benchmark::Counter(rows, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["weights_GB_per_s"] =
      benchmark::Counter(static_cast<double>(executor->memory().weights_bytes) * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate);
  state.counters["weights_MB"] = static_cast<double>(executor->memory().weights_bytes) * 1e-6;
}
BENCHMARK_CAPTURE(Decode, demo_bf16, "dummy:demo", kernels::Dtype::kBf16)->Arg(1)->Arg(4)->Arg(32);
BENCHMARK_CAPTURE(Decode, demo_fp32, "dummy:demo", kernels::Dtype::kF32)->Arg(1);
BENCHMARK_CAPTURE(Decode, small_bf16, "dummy:small", kernels::Dtype::kBf16)->Arg(1)->Arg(16);

BENCHMARK_CAPTURE(Decode, llama_1b_bf16, "dummy:llama-3.2-1b", kernels::Dtype::kBf16)
    ->Arg(1)
    ->Arg(16)
    ->Iterations(24)
    ->UseRealTime();
BENCHMARK_CAPTURE(Decode, llama_1b_int8, "dummy:llama-3.2-1b", kernels::Dtype::kI8)
    ->Arg(1)
    ->Arg(16)
    ->Iterations(24)
    ->UseRealTime();

void Prefill(benchmark::State& state, const char* name, kernels::Dtype dtype) {
  const auto tokens = static_cast<int32_t>(state.range(0));
  const auto executor = executor_of(name, dtype);
  for (auto _ : state) {
    Batch batch(*executor, 1, tokens);
    batch.step();
    executor->finish(0);
  }
  state.counters["tokens_per_s"] =
      benchmark::Counter(tokens, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(Prefill, demo_bf16, "dummy:demo", kernels::Dtype::kBf16)->Arg(64)->Arg(512);
BENCHMARK_CAPTURE(Prefill, small_bf16, "dummy:small", kernels::Dtype::kBf16)->Arg(512);
BENCHMARK_CAPTURE(Prefill, llama_1b_bf16, "dummy:llama-3.2-1b", kernels::Dtype::kBf16)
    ->Arg(512)
    ->Iterations(3)
    ->UseRealTime();
BENCHMARK_CAPTURE(Prefill, llama_1b_int8, "dummy:llama-3.2-1b", kernels::Dtype::kI8)
    ->Arg(512)
    ->Iterations(3)
    ->UseRealTime();

}  // namespace
}  // namespace prony::engine
