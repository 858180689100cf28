#include "prony/kernels/ceilings.hpp"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/rng.hpp"
#include "prony/kernels/memory.hpp"

namespace prony::kernels {
namespace {

constexpr int kRepetitions = 5;

// Seconds of the fastest repetition.
template <class Body>
double best_seconds(const Body& body) {
  core::Nanos best = INT64_MAX;
  for (int i = 0; i < kRepetitions; ++i) {
    const core::Nanos begin = core::monotonic_ns();
    body();
    best = std::min(best, core::monotonic_ns() - begin);
  }
  return core::to_seconds(std::max<core::Nanos>(best, 1));
}

// Operations per second of the product of one panel, the same small one again and again.
Result<double> product_rate(const Kernels& kernels, ThreadPool& pool, Dtype dtype) {
  constexpr int64_t kRows = 48, kInputs = 256;  // 32 KiB of weights at most
  constexpr int64_t kXBytes = kRows * (kInputs + kLanes) * 4, kYBytes = kRows * kPanelColumns * 4;
  const int64_t packed_bytes = PackedRows::size_bytes(dtype, kRows, kInputs);
  // Each worker has its own rows and outputs, and its own copy of the weight.
  const int64_t weight_bytes = PackedMatrix::size_bytes(dtype, kPanelColumns, kInputs);
  const int64_t own_bytes = round_up(kXBytes, 64) + kYBytes + packed_bytes +
                            round_up(weight_bytes, 64) + round_up(kRows * 8, 64);
  Result<Pages> pages = Pages::create(pool.threads() * own_bytes, true);
  if (!pages.ok()) return pages.error();
  core::Rng rng(1);
  std::vector<float> row(static_cast<size_t>(kInputs));
  for (float& value : row) value = static_cast<float>(rng.normal());
  struct Worker {
    MatmulArgs args;
    PackedRows packed;
    PackedMatrix weight;
  };
  std::vector<Worker> workers(static_cast<size_t>(pool.threads()));
  std::byte* next = pages->data();
  for (Worker& worker : workers) {
    const auto take = [&](int64_t bytes) { return std::exchange(next, next + bytes); };
    auto* x = reinterpret_cast<float*>(take(round_up(kXBytes, 64)));
    auto* y = reinterpret_cast<float*>(take(kYBytes));
    worker.packed = {.dtype = dtype,
                     .data = take(packed_bytes),
                     .block_bytes = PackedRows::block_bytes_for(dtype, kInputs)};
    worker.weight = PackedMatrix(dtype, kPanelColumns, kInputs, take(round_up(weight_bytes, 64)));
    worker.packed.scale = reinterpret_cast<float*>(take(round_up(kRows * 8, 64)));
    worker.packed.sum = reinterpret_cast<int32_t*>(worker.packed.scale + kRows);
    for (int64_t i = 0; i < kRows; ++i)
      std::copy(row.begin(), row.end(), x + i * (kInputs + kLanes));
    for (int64_t n = 0; n < kPanelColumns; ++n) worker.weight.pack_rows(n, 1, row.data());
    worker.args = {.x = x,
                   .x_stride = kInputs + kLanes,
                   .rows = kRows,
                   .weight = &worker.weight,
                   .y = y,
                   .y_stride = kPanelColumns};
    if (dtype == Dtype::kF32) continue;
    kernels.pack_rows({.x = x,
                       .x_stride = kInputs + kLanes,
                       .rows = kRows,
                       .inputs = kInputs,
                       .to = &worker.packed});
    worker.args.packed = &worker.packed;
  }
  // About 20 ms a repetition, whatever the level.
  const double once = best_seconds([&] { kernels.matmul(workers[0].args, 0, 1); });
  const auto turns = static_cast<int64_t>(std::clamp(0.02 / once, 1.0, 1e5));
  // Whoever takes two of the pieces makes the repetition slow; the best one has none of that.
  const double seconds = best_seconds([&] {
    pool.run(pool.threads(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t turn = 0; turn < turns; ++turn) {
          kernels.matmul(workers[static_cast<size_t>(i)].args, 0, 1);
        }
      }
    });
  });
  const double ops =
      2.0 * kRows * kInputs * kPanelColumns * static_cast<double>(turns) * pool.threads();
  return ops / seconds;
}

}  // namespace

uint64_t touch_lines(const uint64_t* begin, const uint64_t* end) {
  constexpr int64_t kWords = 8, kAhead = 64 * kWords;  // of a line; 4 KiB
  const int64_t quarter = (end - begin) / 4 / kWords * kWords;
  uint64_t sum = 0;
  for (int64_t i = 0; i < quarter; i += kWords) {
    for (int64_t stream = 0; stream < 4; ++stream) {
      const uint64_t* word = begin + stream * quarter + i;
      __builtin_prefetch(word + kAhead);
      sum += *word;
    }
  }
  return sum;
}

Result<Ceilings> measure_ceilings(const Kernels& kernels, ThreadPool& pool,
                                  int64_t read_size_bytes) {
  Ceilings ceilings;
  Result<Pages> pages = Pages::create(read_size_bytes, true);
  if (!pages.ok()) return pages.error();
  const auto* words = reinterpret_cast<const uint64_t*>(pages->data());
  std::atomic<uint64_t> sum{0};
  const double seconds = best_seconds([&] {
    // Pieces small enough that no thread waits long for another at the end.
    pool.run(read_size_bytes / 8, std::max<int64_t>(read_size_bytes / 8 / 64, 1),
             [&](int64_t begin, int64_t end) {
               sum.fetch_add(touch_lines(words + begin, words + end), std::memory_order_relaxed);
             });
  });
  ceilings.read_bytes = static_cast<double>(read_size_bytes) / seconds;
  for (const auto& [dtype, target] :
       {std::pair{Dtype::kF32, &ceilings.fp32_ops}, std::pair{Dtype::kBf16, &ceilings.bf16_ops},
        std::pair{Dtype::kI8, &ceilings.int8_ops}}) {
    const Result<double> rate = product_rate(kernels, pool, dtype);
    if (!rate.ok()) return rate.error();
    *target = *rate;
  }
  return ceilings;
}

}  // namespace prony::kernels
