#include "prony/probe/cpu_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "prony/core/clock.hpp"
#include "prony/kernels/memory.hpp"
#include "prony/telemetry/host_counters.hpp"

namespace prony::probe {
namespace {

using kernels::Dtype;
using kernels::Kernels;
using kernels::MatmulArgs;
using kernels::PackedMatrix;
using kernels::PackedRows;
using kernels::Pages;
using kernels::ThreadPool;

constexpr int64_t kOutputs = 4096, kInputs = 4096;

double seconds_since(core::Nanos begin_ns) {
  return core::to_seconds(core::monotonic_ns() - begin_ns);
}

// The shortest of `repetitions` calls.
template <class Body>
double best_of(int repetitions, const Body& body) {
  double best = 1e30;
  for (int i = 0; i < repetitions; ++i) {
    const core::Nanos begin = core::monotonic_ns();
    body();
    best = std::min(best, seconds_since(begin));
  }
  return std::max(best, 1e-9);
}

// Products of one shape, each with the next of several weights, so that none is in a cache.
class Products {
 public:
  static Result<std::unique_ptr<Products>> create(const Kernels& kernels, ThreadPool& pool,
                                                  Dtype dtype, bool packed, int64_t rows_max,
                                                  int64_t buffer_bytes) {
    std::unique_ptr<Products> out(new Products(kernels, pool, dtype, packed));
    const int64_t one = PackedMatrix::size_bytes(dtype, kOutputs, kInputs);
    out->count_ = std::max<int64_t>(2, buffer_bytes / one);
    out->stride_ = kernels::round_up(one, kernels::kAlignmentBytes);
    auto weights = Pages::create(out->count_ * out->stride_, true);
    if (!weights) return weights.error();
    auto rows = Pages::create(rows_max * (kInputs + kOutputs) * 4 +
                                  PackedRows::size_bytes(dtype, rows_max, kInputs) +
                                  kernels::round_up(rows_max * 8, 64) + 256,
                              true);
    if (!rows) return rows.error();
    out->weights_ = std::move(weights).value();
    out->rows_ = std::move(rows).value();
    out->rows_max_ = rows_max;
    return out;
  }

  /// One product of so many rows [s].
  double once(int64_t rows) {
    const PackedMatrix weight(dtype_, kOutputs, kInputs, weights_.data() + next_ * stride_);
    next_ = (next_ + 1) % count_;
    auto* x = reinterpret_cast<float*>(rows_.data());
    auto* y = x + rows_max_ * kInputs;
    auto* after = reinterpret_cast<std::byte*>(y + rows_max_ * kOutputs);
    PackedRows packed{.dtype = dtype_,
                      .data = after,
                      .block_bytes = PackedRows::block_bytes_for(dtype_, kInputs)};
    packed.scale = reinterpret_cast<float*>(
        after + kernels::round_up(PackedRows::size_bytes(dtype_, rows_max_, kInputs), 64));
    packed.sum = reinterpret_cast<int32_t*>(packed.scale + rows_max_);
    MatmulArgs args{
        .x = x, .x_stride = kInputs, .rows = rows, .weight = &weight, .y = y, .y_stride = kOutputs};
    const core::Nanos begin = core::monotonic_ns();
    if (packed_) {
      pool_.run(rows, PackedRows::kTileRows, [&](int64_t first, int64_t end) {
        kernels_.pack_rows({.x = x + first * kInputs,
                            .x_stride = kInputs,
                            .rows = end - first,
                            .inputs = kInputs,
                            .to = &packed,
                            .first = first});
      });
      args.packed = &packed;
    }
    pool_.run(weight.panels(), 1,
              [&](int64_t first, int64_t end) { kernels_.matmul(args, first, end); });
    return seconds_since(begin);
  }

 private:
  Products(const Kernels& kernels, ThreadPool& pool, Dtype dtype, bool packed)
      : kernels_(kernels), pool_(pool), dtype_(dtype), packed_(packed) {}
  const Kernels& kernels_;
  ThreadPool& pool_;
  Dtype dtype_;
  bool packed_;
  int64_t count_ = 0, stride_ = 0, next_ = 0, rows_max_ = 0;
  Pages weights_, rows_;
};

Result<double> read_rate(ThreadPool& pool, const Pages& pages, int repetitions) {
  const auto* words = reinterpret_cast<const uint64_t*>(pages.data());
  std::atomic<uint64_t> sum{0};
  const double seconds = best_of(repetitions, [&] {
    pool.run(pages.size_bytes() / 8, std::max<int64_t>(pages.size_bytes() / 8 / 64, 1),
             [&](int64_t begin, int64_t end) {
               sum.fetch_add(kernels::touch_lines(words + begin, words + end),
                             std::memory_order_relaxed);
             });
  });
  return static_cast<double>(pages.size_bytes()) / seconds;
}

// x += y over arrays that no cache holds [bytes/s].
double elementwise_rate(const Kernels& kernels, ThreadPool& pool, const Pages& pages,
                        int repetitions) {
  const int64_t half = pages.size_bytes() / 8 / 16 * 16;  // floats
  auto* x = reinterpret_cast<float*>(pages.data());
  const double seconds = best_of(repetitions, [&] {
    pool.run(half / 16, std::max<int64_t>(half / 16 / 64, 1), [&](int64_t begin, int64_t end) {
      kernels.add(x + 16 * begin, x + half + 16 * begin, 16 * (end - begin));
    });
  });
  return 3.0 * 4 * static_cast<double>(half) / seconds;
}

// Attention of 32 query heads over 8 KV heads of 128 dimensions, KV cache in bf16.
Result<AttentionPoint> attention(const Kernels& kernels, ThreadPool& pool, int64_t sequences,
                                 int64_t tokens, int64_t context, int repetitions) {
  constexpr int32_t kHeads = 32, kKvHeads = 8, kDim = 128;
  kernels::KvLayout kv{.dtype = Dtype::kBf16,
                       .kv_heads = kKvHeads,
                       .head_dim = kDim,
                       .value_dim = kDim,
                       .value_stride = kDim};
  kv.page_bytes = (kv.key_elements() + kv.value_elements()) * 2;
  const int64_t pages_each = (context + tokens + kernels::kPageTokens - 1) / kernels::kPageTokens;
  auto cache = Pages::create(sequences * pages_each * kv.page_bytes, true);
  if (!cache) return cache.error();
  kv.layer = cache->data();
  std::vector<int32_t> pages(static_cast<size_t>(sequences * pages_each));
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<int32_t>(i);
  const auto row = static_cast<size_t>(kHeads * kDim);
  std::vector<float> q(static_cast<size_t>(tokens) * row, 0.1F);
  std::vector<float> out(static_cast<size_t>(sequences * tokens) * row);
  const int64_t group_rows = tokens * (kHeads / kKvHeads);
  const int64_t grain = std::min<int64_t>(group_rows, 64);
  const int64_t pieces = (group_rows + grain - 1) / grain;
  AttentionPoint point{.sequences = sequences, .tokens = tokens, .context = context};
  point.seconds = best_of(repetitions, [&] {
    pool.run(sequences * kKvHeads * pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t sequence = i / (kKvHeads * pieces), piece = i % pieces;
        const kernels::AttentionArgs args{
            .q = q.data(),
            .q_stride = kHeads * kDim,
            .out = out.data() + static_cast<size_t>(sequence * tokens) * row,
            .out_stride = kHeads * kDim,
            .tokens = static_cast<int32_t>(tokens),
            .first_position = static_cast<int32_t>(context),
            .pages = pages.data() + sequence * pages_each,
            .kv = &kv,
            .heads = kHeads,
            .scale = 0.088F};
        kernels.attention(args, static_cast<int32_t>(i / pieces % kKvHeads), piece * grain,
                          std::min(group_rows, (piece + 1) * grain));
      }
    });
  });
  const auto n = static_cast<double>(sequences), t = static_cast<double>(tokens);
  const double pairs = n * t * (static_cast<double>(context) + (t + 1) / 2);
  point.ops = 4 * pairs * kHeads * kDim;
  point.kv_bytes = n * (static_cast<double>(context) + t) * kKvHeads * kDim * 2 * 2;
  return point;
}

// From the call until every thread of the team has its piece [s]; the median, for a team that
// happens to be awake is no ceiling. A thread that does not come is waited for a millisecond at
// most.
double launch_s(ThreadPool& pool, int repetitions) {
  std::vector<double> seconds;
  for (int i = 0; i < repetitions; ++i) {
    std::atomic<int> here{0};
    const core::Nanos begin = core::monotonic_ns();
    pool.run(pool.threads(), 1, [&](int64_t first, int64_t end) {
      here.fetch_add(static_cast<int>(end - first));
      while (here.load() < pool.threads() && core::monotonic_ns() - begin < core::kNanosPerMilli) {
      }
    });
    seconds.push_back(seconds_since(begin));
  }
  std::nth_element(seconds.begin(), seconds.begin() + repetitions / 2, seconds.end());
  return seconds[static_cast<size_t>(repetitions / 2)];
}

Result<void> run_sustained(Products& products, double sustained_s, CpuProbe& probe) {
  constexpr int64_t kRows = 64;
  const core::Nanos begin = core::monotonic_ns();
  while (seconds_since(begin) < sustained_s) {
    const core::Nanos second = core::monotonic_ns();
    double ops = 0;
    do {
      (void)products.once(kRows);
      ops += 2.0 * kRows * kOutputs * kInputs;
    } while (seconds_since(second) < 1);
    probe.sustained.push_back({seconds_since(begin), ops / seconds_since(second),
                               telemetry::read_host_counters().frequency_mhz.value_or(0)});
  }
  return {};
}

}  // namespace

double CpuProbe::peak_ops(Dtype dtype) const {
  double peak = dtype == Dtype::kI8                  ? ceilings.int8_ops
                : dtype == Dtype::kBf16 && bf16_rows ? ceilings.bf16_ops
                                                     : ceilings.fp32_ops;
  for (const GemmPoint& point : gemms) {
    if (point.dtype == dtype) peak = std::max(peak, point.ops() / point.seconds);
  }
  return peak;
}

double CpuProbe::bandwidth() const {
  double best = ceilings.read_bytes;
  for (const MemoryPoint& point : memory) best = std::max(best, point.read_bytes_per_s);
  return best;
}

Result<CpuProbe> probe_cpu(const CpuProbeOptions& options) {
  if (options.threads < 1 || options.threads > 1024) {
    return invalid_argument(
        fmt::format("--threads: found {}, expected 1 to 1024", options.threads));
  }
  const auto note = [&](std::string_view text) {
    if (options.note) options.note(text);
  };
  const auto isa = kernels::isa_from_environment();
  if (!isa) return isa.error();
  const Kernels& kernels = kernels::kernels_for(*isa);
  const int repetitions = options.quick ? 3 : 7;
  const int64_t buffer =
      options.buffer_bytes > 0 ? options.buffer_bytes : int64_t{options.quick ? 256 : 1024} << 20;
  CpuProbe probe;
  probe.isa = *isa;
  probe.bf16_rows = *isa == kernels::Isa::kAmx;
  probe.threads = options.threads;
  {
    auto pages = Pages::create(buffer, true);
    if (!pages) return pages.error();
    for (int threads = 1;; threads = std::min(2 * threads, options.threads)) {
      note(fmt::format("memory, {} threads", threads));
      ThreadPool pool(threads);
      const auto rate = read_rate(pool, *pages, repetitions);
      if (!rate) return rate.error();
      probe.memory.push_back({threads, *rate});
      if (threads == options.threads) break;
    }
    ThreadPool pool(options.threads);
    probe.elementwise_bytes_per_s = elementwise_rate(kernels, pool, *pages, repetitions);
  }
  ThreadPool pool(options.threads);
  note("launch of the thread team");
  probe.launch_s = launch_s(pool, options.quick ? 200 : 2000);
  note("arithmetic");
  const auto ceilings = kernels::measure_ceilings(kernels, pool, buffer);
  if (!ceilings) return ceilings.error();
  probe.ceilings = *ceilings;
  const std::vector<int64_t> all_rows =
      options.quick ? std::vector<int64_t>{1, 8, 64, 256}
                    : std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBf16, Dtype::kI8}) {
    const bool packed = dtype == Dtype::kI8 || (dtype == Dtype::kBf16 && probe.bf16_rows);
    auto products = Products::create(kernels, pool, dtype, packed, all_rows.back(), buffer);
    if (!products) return products.error();
    for (const int64_t rows : all_rows) {
      note(fmt::format("products of {} rows", rows));
      double best = 1e30;
      const int turns = rows >= 256 ? std::min(repetitions, 3) : 2 * repetitions;
      for (int i = 0; i < turns; ++i) best = std::min(best, (*products)->once(rows));
      probe.gemms.push_back({dtype, rows, kOutputs, kInputs, best});
    }
    if (dtype == Dtype::kBf16 && options.sustained_s > 0) {
      note("sustained products");
      if (auto done = run_sustained(**products, options.sustained_s, probe); !done) {
        return done.error();
      }
    }
  }
  note("attention");
  const auto decode = attention(kernels, pool, options.quick ? 16 : 32, 1, 2047, repetitions);
  if (!decode) return decode.error();
  probe.decode = *decode;
  const auto prefill = attention(kernels, pool, 1, options.quick ? 512 : 2048, 0, repetitions);
  if (!prefill) return prefill.error();
  probe.prefill = *prefill;
  return probe;
}

}  // namespace prony::probe
