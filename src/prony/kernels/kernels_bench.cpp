// Speed of the CPU kernels beside the ceilings of the machine, measured in the same run because a
// shared host moves by 20 % within an hour: a matrix-vector product against the read rate of memory
// of the same size, a matrix product against the rate of fused multiply-adds on registers.
// Counters: GB_per_s is bytes of weights (GB = 1e9), GFLOP_per_s counts a multiply-add as two.
// Weights of 64 MiB and less partly come from the last-level cache; the argument names say the
// size.
#include <benchmark/benchmark.h>

#include <cmath>

#include "prony/kernels/ceilings.hpp"
#include "prony/kernels/kernels.hpp"
#include "prony/kernels/memory.hpp"
#include "prony/kernels/test_support.hpp"
#include "prony/kernels/thread_pool.hpp"

namespace prony::kernels {
namespace {

const Kernels& fastest() {
  return kernels_for(isa_from_environment().value());
}

void set_bytes(benchmark::State& state, int64_t bytes) {
  state.counters["GB_per_s"] = benchmark::Counter(static_cast<double>(bytes) * 1e-9,
                                                  benchmark::Counter::kIsIterationInvariantRate);
}
void set_flops(benchmark::State& state, double flops) {
  state.counters["GFLOP_per_s"] =
      benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

// A weight in huge pages, as the engine keeps it.
struct Weight {
  Weight(Dtype dtype, int64_t outputs, int64_t inputs)
      : pages(Pages::create(PackedMatrix::size_bytes(dtype, outputs, inputs), true).value()),
        matrix(dtype, outputs, inputs, pages.data()) {
    const std::vector<float> row = random_floats(inputs, 1);
    for (int64_t n = 0; n < outputs; ++n) matrix.pack_rows(n, 1, row.data());
  }
  int64_t bytes() const { return pages.size_bytes(); }
  Pages pages;
  PackedMatrix matrix;
};

// The ceiling of every product with few rows: memory read once.
void ReadBandwidth(benchmark::State& state) {
  const int64_t bytes = state.range(0) << 20;
  const Pages pages = Pages::create(bytes, true).value();
  const auto* words = reinterpret_cast<const uint64_t*>(pages.data());
  ThreadPool pool(static_cast<int>(state.range(1)));
  for (auto _ : state) {
    pool.run(bytes / 8, bytes / 8 / pool.threads(), [&](int64_t begin, int64_t end) {
      benchmark::DoNotOptimize(touch_lines(words + begin, words + end));
    });
  }
  set_bytes(state, bytes);
}
BENCHMARK(ReadBandwidth)
    ->ArgNames({"MiB", "threads"})
    ->Args({16, 1})
    ->Args({512, 1})
    ->Args({512, 2})
    ->UseRealTime();

// rows, outputs, inputs, bf16, threads.
void Matmul(benchmark::State& state) {
  const int64_t rows = state.range(0), outputs = state.range(1), inputs = state.range(2);
  const Weight weight(state.range(3) != 0 ? Dtype::kBf16 : Dtype::kF32, outputs, inputs);
  const int64_t x_stride = inputs + kLanes, y_stride = outputs + kLanes;
  const std::vector<float> x = random_floats(rows * x_stride, 2);
  std::vector<float> y(static_cast<size_t>(rows * y_stride));
  const MatmulArgs args{.x = x.data(),
                        .x_stride = x_stride,
                        .rows = rows,
                        .weight = &weight.matrix,
                        .y = y.data(),
                        .y_stride = y_stride};
  ThreadPool pool(static_cast<int>(state.range(4)));
  const Kernels& kernels = fastest();
  const int64_t panels = weight.matrix.panels();
  const int64_t grain = pool.threads() == 1 ? panels : round_up(panels / (4 * pool.threads()), 2);
  for (auto _ : state) {
    pool.run(panels, grain, [&](int64_t begin, int64_t end) { kernels.matmul(args, begin, end); });
    benchmark::DoNotOptimize(y.data());
  }
  set_bytes(state, weight.bytes());
  set_flops(state, 2.0 * static_cast<double>(rows * outputs * inputs));
}
BENCHMARK(Matmul)
    ->ArgNames({"rows", "outputs", "inputs", "bf16", "threads"})
    // Decode: 8192 x 8192 fp32 is 256 MiB, 16384 x 16384 bf16 is 512 MiB.
    ->Args({1, 8192, 8192, 0, 1})
    ->Args({1, 16384, 16384, 1, 1})
    ->Args({1, 16384, 16384, 1, 2})
    ->Args({4, 16384, 16384, 1, 1})
    ->Args({8, 16384, 16384, 1, 1})
    // dummy:demo, gate and up: 2048 x 384, 1.5 MiB.
    ->Args({1, 2048, 384, 1, 1})
    // Prefill.
    ->Args({16, 2048, 2048, 1, 1})
    ->Args({64, 2048, 2048, 1, 1})
    ->Args({512, 2048, 2048, 0, 1})
    ->Args({512, 2048, 2048, 1, 1})
    ->Args({512, 2048, 2048, 1, 2})
    ->Args({512, 2048, 384, 1, 1})
    ->UseRealTime();

// Rows packed in bf16 or int8, the packing included: rows, outputs, inputs, int8, threads.
void MatmulPacked(benchmark::State& state) {
  const int64_t rows = state.range(0), outputs = state.range(1), inputs = state.range(2);
  const Dtype dtype = state.range(3) != 0 ? Dtype::kI8 : Dtype::kBf16;
  const Weight weight(dtype, outputs, inputs);
  const int64_t x_stride = inputs + kLanes, y_stride = outputs + kLanes;
  // In huge pages, as the engine's buffers.
  const Pages memory = Pages::create((x_stride + y_stride) * rows * 4, true).value();
  const std::vector<float> values = random_floats(rows * x_stride, 2);
  auto* x = reinterpret_cast<float*>(memory.data());
  float* y = x + values.size();
  std::copy(values.begin(), values.end(), x);
  const Pages storage = Pages::create(PackedRows::size_bytes(dtype, rows, inputs), true).value();
  std::vector<float> scales(static_cast<size_t>(rows));
  std::vector<int32_t> sums(static_cast<size_t>(rows));
  const PackedRows packed{.dtype = dtype,
                          .data = storage.data(),
                          .block_bytes = PackedRows::block_bytes_for(dtype, inputs),
                          .scale = scales.data(),
                          .sum = sums.data()};
  const MatmulArgs args{
      .packed = &packed, .rows = rows, .weight = &weight.matrix, .y = y, .y_stride = y_stride};
  ThreadPool pool(static_cast<int>(state.range(4)));
  const Kernels& kernels = fastest();
  const int64_t panels = weight.matrix.panels();
  const int64_t grain = pool.threads() == 1 ? panels : round_up(panels / (4 * pool.threads()), 2);
  for (auto _ : state) {
    pool.run(rows, 8, [&](int64_t begin, int64_t end) {
      kernels.pack_rows({.x = x + begin * x_stride,
                         .x_stride = x_stride,
                         .rows = end - begin,
                         .inputs = inputs,
                         .to = &packed,
                         .first = begin});
    });
    pool.run(panels, grain, [&](int64_t begin, int64_t end) { kernels.matmul(args, begin, end); });
    benchmark::DoNotOptimize(y);
  }
  set_bytes(state, weight.bytes());
  set_flops(state, 2.0 * static_cast<double>(rows * outputs * inputs));
}
BENCHMARK(MatmulPacked)
    ->ArgNames({"rows", "outputs", "inputs", "int8", "threads"})
    // Llama-3.2-1B's widest products: gate and up, head (decode streams 512 and 256 MiB).
    ->ArgsProduct({{1, 2, 3, 4, 8, 16}, {131072}, {2048}, {0, 1}, {2}})
    ->ArgsProduct({{32, 128, 512}, {16384}, {2048}, {0, 1}, {1, 2}})
    ->Args({512, 2048, 8192, 0, 2})
    ->Args({512, 2048, 8192, 1, 2})
    ->UseRealTime();

// The ceilings that docs and traces name, see ceilings.hpp; threads.
void MachineCeilings(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  Ceilings ceilings;
  for (auto _ : state) ceilings = measure_ceilings(fastest(), pool).value();
  state.counters["read_GB_per_s"] = ceilings.read_bytes * 1e-9;
  state.counters["fp32_GFLOP_per_s"] = ceilings.fp32_ops * 1e-9;
  state.counters["bf16_GFLOP_per_s"] = ceilings.bf16_ops * 1e-9;
  state.counters["int8_GOP_per_s"] = ceilings.int8_ops * 1e-9;
}
BENCHMARK(MachineCeilings)->ArgName("threads")->Arg(1)->Arg(2)->Iterations(1);

// tokens, context, heads, kv_heads, head_dim, bf16.
void Attention(benchmark::State& state) {
  const auto tokens = static_cast<int32_t>(state.range(0));
  const auto context = static_cast<int32_t>(state.range(1));
  const auto heads = static_cast<int32_t>(state.range(2));
  KvLayout kv;
  kv.dtype = state.range(5) != 0 ? Dtype::kBf16 : Dtype::kF32;
  kv.kv_heads = static_cast<int32_t>(state.range(3));
  kv.head_dim = static_cast<int32_t>(state.range(4));
  kv.value_stride = round_up(kv.head_dim, kLanes);
  kv.page_bytes = (kv.key_elements() + kv.value_elements()) * dtype_bytes(kv.dtype);
  const int32_t page_count = (context + kPageTokens - 1) / kPageTokens;
  const Pages storage = Pages::create(page_count * kv.page_bytes, true).value();
  kv.layer = storage.data();
  std::vector<int32_t> pages;
  for (int32_t i = 0; i < page_count; ++i) pages.push_back(i);
  const int64_t row = int64_t{heads} * kv.head_dim;
  const std::vector<float> q = random_floats(tokens * row, 3);
  std::vector<float> out(q.size());
  const AttentionArgs args{.q = q.data(),
                           .q_stride = row,
                           .out = out.data(),
                           .out_stride = row,
                           .tokens = tokens,
                           .first_position = context - tokens,
                           .pages = pages.data(),
                           .kv = &kv,
                           .heads = heads,
                           .scale = 0.1f};
  const Kernels& kernels = fastest();
  for (auto _ : state) {
    for (int32_t head = 0; head < kv.kv_heads; ++head) {
      kernels.attention(args, head, 0, int64_t{tokens} * heads / kv.kv_heads);
    }
    benchmark::DoNotOptimize(out.data());
  }
  set_bytes(state, page_count * kv.page_bytes);
  const double pairs = static_cast<double>(tokens) * (context - (tokens - 1) / 2.0);
  set_flops(state, 4.0 * static_cast<double>(row) * pairs);
}
BENCHMARK(Attention)
    ->ArgNames({"tokens", "context", "heads", "kv_heads", "head_dim", "bf16"})
    ->Args({1, 1024, 6, 2, 64, 1})
    ->Args({1, 1024, 32, 8, 128, 1})
    ->Args({1, 1024, 32, 32, 128, 0})
    ->Args({256, 256, 6, 2, 64, 1})
    ->Args({512, 2048, 32, 8, 128, 1});

void SiluMul(benchmark::State& state) {
  const int64_t n = state.range(0);
  const std::vector<float> gate = random_floats(n, 4), up = random_floats(n, 5);
  std::vector<float> y(gate.size());
  for (auto _ : state) {
    fastest().silu_mul(gate.data(), up.data(), y.data(), n);
    benchmark::DoNotOptimize(y.data());
  }
  set_bytes(state, 12 * n);
}
BENCHMARK(SiluMul)->ArgName("n")->Arg(1024)->Arg(14336);

}  // namespace
}  // namespace prony::kernels
