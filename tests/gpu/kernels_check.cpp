// Every CUDA kernel against float64 on the CPU, at the shapes in use and at odd ones. Outputs, unused
// pages and the tails of pages are poisoned with NaNs before each launch, inputs are fresh random
// numbers, and each launch is made twice to see that the bits repeat.
// Budget: ||out - reference|| / ||reference||; bf16 operands and outputs stay under 1e-2 (rounding to
// bf16 alone is up to 4e-3), float outputs of bf16 operands under 1e-5.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "device_memory.hpp"
#include "prony/core/rng.hpp"
#include "prony/kernels/cuda/layout.hpp"
#include "prony/kernels/cuda/ops.hpp"
#include "prony/quant/bf16.hpp"

namespace prony::gpu {
namespace {

using kernels::cuda::kPageTokens;
using kernels::cuda::Store;
using quant::Bf16;

constexpr double kBudgetBf16 = 1e-2;
constexpr double kBudgetFloat = 1e-5;

class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  uint32_t bits() {
    const uint64_t at = used_++;
    const auto words = core::philox4x32(
        {static_cast<uint32_t>(at / 4), static_cast<uint32_t>(at / 4 >> 32), 7, 0},
        {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
    return words[at % 4];
  }
  /// In [-1, 1).
  float number() { return static_cast<float>(bits() >> 8) * 0x1p-23f - 1.0f; }
  int32_t below(int32_t n) { return static_cast<int32_t>(bits() % static_cast<uint32_t>(n)); }
  std::vector<Bf16> halves(size_t count) {
    std::vector<Bf16> out(count);
    for (auto& x : out) x = quant::to_bf16(number());
    return out;
  }
  std::vector<float> floats(size_t count) {
    std::vector<float> out(count);
    for (auto& x : out) x = number();
    return out;
  }

 private:
  uint64_t seed_, used_ = 0;
};

double value(Bf16 x) { return quant::to_float(x); }
double value(float x) { return x; }

template <class T>
double distance(const std::vector<T>& out, const std::vector<double>& reference) {
  EXPECT_EQ(out.size(), reference.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const double d = value(out[i]) - reference[i];
    difference += d * d;
    size += reference[i] * reference[i];
  }
  const double result = std::sqrt(difference / size);
  return std::isfinite(result) ? result : INFINITY;
}

bool same_bits(const std::vector<Bf16>& a, const std::vector<Bf16>& b) { return a == b; }

// A cache of random pages behind a random table, everything else poisoned, and the plain copy.
struct Cache {
  int32_t kv_heads, head_dim;
  std::vector<int32_t> lengths, table_start, tables;
  std::vector<std::vector<float>> keys, values;  // [row] of [token][kv_head][dim]
  std::vector<Bf16> pages;

  Cache(std::vector<int32_t> row_lengths, int32_t kv_heads_in, int32_t dim, Random& random)
      : kv_heads(kv_heads_in), head_dim(dim), lengths(std::move(row_lengths)) {
    int32_t used = 0;
    for (const int32_t length : lengths) {
      table_start.push_back(used);
      used += (length + kPageTokens - 1) / kPageTokens;
    }
    std::vector<int32_t> order(static_cast<size_t>(used) + 3);  // three pages nobody uses
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int32_t>(i)))]);
    }
    tables.assign(order.begin(), order.begin() + used);
    pages.assign(order.size() * static_cast<size_t>(kv_heads * 2 * kPageTokens * dim), Bf16{0xFFFF});
    for (size_t row = 0; row < lengths.size(); ++row) {
      const auto count = static_cast<size_t>(lengths[row] * kv_heads * dim);
      keys.emplace_back(count);
      values.emplace_back(count);
      for (int32_t t = 0; t < lengths[row]; ++t) {
        for (int32_t h = 0; h < kv_heads; ++h) {
          for (int32_t d = 0; d < dim; ++d) put(row, t, h, d, random);
        }
      }
    }
  }
  size_t place(int32_t row_start, int32_t t, int32_t h, bool is_value, int32_t d) const {
    const int32_t page = tables[static_cast<size_t>(row_start + t / kPageTokens)];
    const int32_t in_page = t % kPageTokens, chunks = head_dim / 8;
    const int32_t chunk = (d / 8) ^ (in_page & 7 & (chunks - 1));
    return static_cast<size_t>(
        ((int64_t{page} * kv_heads + h) * 2 + (is_value ? 1 : 0)) * kPageTokens * head_dim +
        in_page * head_dim + chunk * 8 + d % 8);
  }
  void put(size_t row, int32_t t, int32_t h, int32_t d, Random& random) {
    const auto at = static_cast<size_t>((t * kv_heads + h) * head_dim + d);
    for (const bool is_value : {false, true}) {
      const Bf16 x = quant::to_bf16(random.number());
      pages[place(table_start[row], t, h, is_value, d)] = x;
      (is_value ? values : keys)[row][at] = quant::to_float(x);
    }
  }
  /// Softmax attention of one query of one head over tokens [0, seen).
  void attend(size_t row, int32_t kv_head, const Bf16* q, int32_t seen, double scale,
              double* out) const {
    std::vector<double> scores(static_cast<size_t>(seen));
    for (int32_t t = 0; t < seen; ++t) {
      const float* key = &keys[row][static_cast<size_t>((t * kv_heads + kv_head) * head_dim)];
      double sum = 0;
      for (int32_t d = 0; d < head_dim; ++d) sum += value(q[d]) * static_cast<double>(key[d]);
      scores[static_cast<size_t>(t)] = sum * scale;
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    std::fill(out, out + head_dim, 0.0);
    for (int32_t t = 0; t < seen; ++t) {
      const double weight = std::exp(scores[static_cast<size_t>(t)] - largest);
      total += weight;
      const float* v = &values[row][static_cast<size_t>((t * kv_heads + kv_head) * head_dim)];
      for (int32_t d = 0; d < head_dim; ++d) out[d] += weight * static_cast<double>(v[d]);
    }
    for (int32_t d = 0; d < head_dim; ++d) out[d] /= total;
  }
};

// Picks of a large output, so that float64 ends in seconds: all of it up to `most` queries.
std::vector<size_t> picks(size_t count, size_t most, Random& random) {
  std::vector<size_t> all;
  if (count <= most) {
    all.resize(count);
    std::iota(all.begin(), all.end(), size_t{0});
    return all;
  }
  for (size_t i = 0; i < most; ++i) {
    all.push_back(static_cast<size_t>(random.bits()) % count);
  }
  all.push_back(count - 1);
  return all;
}

void check_decode(std::vector<int32_t> lengths, int32_t kv_heads, int32_t group, int32_t dim,
                  uint64_t seed) {
  SCOPED_TRACE(testing::Message() << lengths.size() << " rows, " << kv_heads << " kv heads x "
                                  << group << ", dim " << dim << ", seed " << seed);
  Random random(seed);
  const Cache cache(std::move(lengths), kv_heads, dim, random);
  const auto rows = static_cast<int32_t>(cache.lengths.size());
  const int32_t heads = kv_heads * group, stride = (heads + 2 * kv_heads) * dim;
  const auto q = random.halves(static_cast<size_t>(rows * stride));
  const DeviceArray<Bf16> device_q(q), pages(cache.pages);
  const DeviceArray<int32_t> tables(cache.tables), starts(cache.table_start), kv(cache.lengths);
  DeviceArray<Bf16> out(static_cast<size_t>(rows * heads * dim));
  const int32_t splits = kernels::cuda::decode_splits(rows, kv_heads);
  DeviceArray<float> partial(static_cast<size_t>(rows * heads * splits * (dim + 2)));
  DeviceArray<int32_t> tickets(static_cast<size_t>(rows * kv_heads));
  tickets.zero();
  const double scale = 1.3 / std::sqrt(dim);
  const kernels::cuda::AttentionArguments arguments{.qkv = device_q.get(),
                                                    .pages = pages.get(),
                                                    .tables = tables.get(),
                                                    .table_start = starts.get(),
                                                    .kv_tokens = kv.get(),
                                                    .out = out.get(),
                                                    .heads = heads,
                                                    .kv_heads = kv_heads,
                                                    .head_dim = dim,
                                                    .q_stride = stride,
                                                    .scale = static_cast<float>(scale)};
  const auto run = [&] {
    out.poison();
    partial.poison();
    kernels::cuda::attention_decode(arguments, rows, splits, partial.get(), tickets.get(), nullptr);
    return out.read();
  };
  const auto first = run();
  EXPECT_TRUE(same_bits(first, run()));
  std::vector<Bf16> seen;
  std::vector<double> reference;
  for (const size_t pick : picks(static_cast<size_t>(rows * heads), 96, random)) {
    const size_t row = pick / static_cast<size_t>(heads);
    const auto head = static_cast<int32_t>(pick % static_cast<size_t>(heads));
    std::vector<double> one(static_cast<size_t>(dim));
    cache.attend(row, head / group, &q[row * static_cast<size_t>(stride) + static_cast<size_t>(head * dim)],
                 cache.lengths[row], scale, one.data());
    reference.insert(reference.end(), one.begin(), one.end());
    const auto* got = &first[pick * static_cast<size_t>(dim)];
    seen.insert(seen.end(), got, got + dim);
  }
  for (const Bf16 x : first) ASSERT_TRUE(std::isfinite(value(x))) << "not written";
  EXPECT_LT(distance(seen, reference), kBudgetBf16);
}

TEST(AttentionDecode, EveryGroupAndWidth) {
  uint64_t seed = 1;
  for (const int32_t dim : {16, 32, 64, 128}) {
    for (const int32_t group : {1, 2, 3, 4, 7, 8, 16}) {
      check_decode({1, 15, 16, 17, 63, 64, 65, 300}, 2, group, dim, seed++);
    }
  }
}
TEST(AttentionDecode, OneToManySequences) {
  Random random(5);
  for (const int32_t rows : {1, 2, 5, 33, 256}) {
    std::vector<int32_t> lengths;
    for (int32_t i = 0; i < rows; ++i) lengths.push_back(1 + random.below(700));
    check_decode(lengths, 8, 4, 128, 100 + static_cast<uint64_t>(rows));
  }
}
TEST(AttentionDecode, LongContexts) {
  check_decode({32768}, 8, 4, 128, 200);
  check_decode({1, 32767, 5, 2048}, 1, 16, 128, 201);
  check_decode({32768, 16385}, 2, 1, 64, 202);
}

struct Chunk {
  int32_t prefix, tokens;
};

void check_prefill(const std::vector<Chunk>& chunks, int32_t kv_heads, int32_t group, int32_t dim,
                   uint64_t seed) {
  SCOPED_TRACE(testing::Message() << chunks.size() << " rows, " << kv_heads << " kv heads x "
                                  << group << ", dim " << dim << ", seed " << seed);
  Random random(seed);
  std::vector<int32_t> lengths, row_start, row_tokens, tiles;
  int32_t tokens = 0;
  for (const Chunk& chunk : chunks) {
    for (int32_t first = 0; first < chunk.tokens; first += kernels::cuda::kQueryTile) {
      tiles.push_back(static_cast<int32_t>(lengths.size()));
      tiles.push_back(first);
    }
    lengths.push_back(chunk.prefix + chunk.tokens);
    row_start.push_back(tokens);
    row_tokens.push_back(chunk.tokens);
    tokens += chunk.tokens;
  }
  const Cache cache(lengths, kv_heads, dim, random);
  const int32_t heads = kv_heads * group, stride = (heads + 2 * kv_heads) * dim;
  const auto q = random.halves(static_cast<size_t>(tokens) * static_cast<size_t>(stride));
  const DeviceArray<Bf16> device_q(q), pages(cache.pages);
  const DeviceArray<int32_t> tables(cache.tables), table_start(cache.table_start), kv(lengths),
      starts(row_start), counts(row_tokens), device_tiles(tiles);
  DeviceArray<Bf16> out(static_cast<size_t>(tokens) * static_cast<size_t>(heads * dim));
  const double scale = 1.3 / std::sqrt(dim);
  const kernels::cuda::AttentionArguments arguments{.qkv = device_q.get(),
                                                    .pages = pages.get(),
                                                    .tables = tables.get(),
                                                    .table_start = table_start.get(),
                                                    .kv_tokens = kv.get(),
                                                    .out = out.get(),
                                                    .heads = heads,
                                                    .kv_heads = kv_heads,
                                                    .head_dim = dim,
                                                    .q_stride = stride,
                                                    .scale = static_cast<float>(scale)};
  const auto run = [&] {
    out.poison();
    kernels::cuda::attention_prefill(arguments, device_tiles.get(),
                                     static_cast<int32_t>(tiles.size() / 2), starts.get(),
                                     counts.get(), nullptr);
    return out.read();
  };
  const auto first = run();
  EXPECT_TRUE(same_bits(first, run()));
  for (const Bf16 x : first) ASSERT_TRUE(std::isfinite(value(x))) << "not written";
  std::vector<Bf16> seen;
  std::vector<double> reference;
  for (size_t row = 0; row < chunks.size(); ++row) {
    const auto queries = static_cast<size_t>(row_tokens[row] * heads);
    for (const size_t pick : picks(queries, 200, random)) {
      const auto token = static_cast<int32_t>(pick / static_cast<size_t>(heads));
      const auto head = static_cast<int32_t>(pick % static_cast<size_t>(heads));
      const auto at = static_cast<size_t>(row_start[row] + token);
      std::vector<double> one(static_cast<size_t>(dim));
      cache.attend(row, head / group,
                   &q[at * static_cast<size_t>(stride) + static_cast<size_t>(head * dim)],
                   chunks[row].prefix + token + 1, scale, one.data());
      reference.insert(reference.end(), one.begin(), one.end());
      const auto* got = &first[(at * static_cast<size_t>(heads) + static_cast<size_t>(head)) *
                               static_cast<size_t>(dim)];
      seen.insert(seen.end(), got, got + dim);
    }
  }
  EXPECT_LT(distance(seen, reference), kBudgetBf16);
}

TEST(AttentionPrefill, EveryGroupAndWidth) {
  uint64_t seed = 300;
  for (const int32_t dim : {16, 32, 64, 128}) {
    for (const int32_t group : {1, 3, 4, 16}) {
      check_prefill({{0, 2}, {0, 17}, {5, 3}, {0, 129}, {61, 70}}, 2, group, dim, seed++);
    }
  }
}
TEST(AttentionPrefill, EdgesOfTiles) {
  uint64_t seed = 400;
  for (const int32_t tokens : {1, 15, 16, 63, 64, 65, 127, 128, 129, 255, 300}) {
    for (const int32_t prefix : {0, 1, 16, 63, 100}) {
      check_prefill({{prefix, tokens}}, 1, 2, 64, seed++);
    }
  }
}
TEST(AttentionPrefill, LongContexts) {
  check_prefill({{0, 2048}}, 2, 4, 128, 500);
  check_prefill({{32000, 768}, {0, 5}}, 1, 4, 128, 501);
}

TEST(ProductFew, EveryStore) {
  Random random(600);
  for (const int32_t k : {8, 48, 512, 1000, 4096, 14336}) {
    for (const int32_t n : {2, 6, 130, 1026}) {
      for (int32_t m = 1; m <= kernels::cuda::kFewRows; ++m) {
        const auto x = random.halves(static_cast<size_t>(m * k));
        const auto w = random.halves(static_cast<size_t>(n * k));
        const auto before = random.floats(static_cast<size_t>(m * n));
        std::vector<double> plain(static_cast<size_t>(m * n)), added(plain.size());
        std::vector<double> paired(static_cast<size_t>(m * n / 2));
        for (int32_t i = 0; i < m; ++i) {
          for (int32_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int32_t at = 0; at < k; ++at) {
              sum += value(x[static_cast<size_t>(i * k + at)]) * value(w[static_cast<size_t>(j * k + at)]);
            }
            const auto to = static_cast<size_t>(i * n + j);
            plain[to] = sum;
            added[to] = sum + static_cast<double>(before[to]);
          }
          for (int32_t j = 0; j < n / 2; ++j) {
            // Both in bf16 between, as ops.hpp says: half a digit of a large gate is a large factor.
            const auto rounded = [](double exact) {
              return static_cast<double>(quant::round_to_bf16(static_cast<float>(exact)));
            };
            const double gate = rounded(plain[static_cast<size_t>(i * n + j)]);
            paired[static_cast<size_t>(i * n / 2 + j)] =
                gate / (1 + std::exp(-gate)) *
                rounded(plain[static_cast<size_t>(i * n + n / 2 + j)]);
          }
        }
        const DeviceArray<Bf16> dx(x), dw(w);
        DeviceArray<Bf16> halves(plain.size()), pairs(paired.size());
        DeviceArray<float> floats(plain.size()), sums(before);
        const auto run = [&](Store store, void* y) {
          kernels::cuda::product_few(dx.get(), dw.get(), m, n, k, store, y, nullptr);
        };
        run(Store::kBf16, halves.get());
        run(Store::kFloat, floats.get());
        run(Store::kAdd, sums.get());
        run(Store::kSiluPair, pairs.get());
        SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
        EXPECT_LT(distance(halves.read(), plain), kBudgetBf16);
        EXPECT_LT(distance(floats.read(), plain), kBudgetFloat);
        EXPECT_LT(distance(sums.read(), added), kBudgetFloat);
        EXPECT_LT(distance(pairs.read(), paired), kBudgetBf16);
      }
    }
  }
}

TEST(RmsNorm, WidthsAndPickedRows) {
  Random random(700);
  for (const int32_t hidden : {8, 48, 2048, 4096, 5120, 16384}) {
    const std::vector<int32_t> rows = {4, 0, 2};
    const auto x = random.floats(static_cast<size_t>(5 * hidden));
    const auto weight = random.floats(static_cast<size_t>(hidden));
    std::vector<double> reference;
    for (const int32_t row : rows) {
      const float* from = &x[static_cast<size_t>(row * hidden)];
      double squares = 0;
      for (int32_t i = 0; i < hidden; ++i) squares += static_cast<double>(from[i]) * from[i];
      for (int32_t i = 0; i < hidden; ++i) {
        reference.push_back(from[i] / std::sqrt(squares / hidden + 1e-5) *
                            static_cast<double>(weight[static_cast<size_t>(i)]));
      }
    }
    const DeviceArray<float> dx(x), dw(weight);
    const DeviceArray<int32_t> picked(rows);
    DeviceArray<Bf16> y(reference.size());
    kernels::cuda::rms_norm(dx.get(), picked.get(), dw.get(), 1e-5f, 3, hidden, y.get(), nullptr);
    EXPECT_LT(distance(y.read(), reference), kBudgetBf16) << hidden;
  }
}

TEST(Silu, AgainstFloat64) {
  Random random(800);
  for (const int32_t n : {8, 136, 14336}) {
    const auto x = random.halves(static_cast<size_t>(7 * 2 * n));
    std::vector<double> reference;
    for (int32_t t = 0; t < 7; ++t) {
      for (int32_t i = 0; i < n; ++i) {
        const double gate = value(x[static_cast<size_t>(t * 2 * n + i)]);
        reference.push_back(gate / (1 + std::exp(-gate)) *
                            value(x[static_cast<size_t>(t * 2 * n + n + i)]));
      }
    }
    const DeviceArray<Bf16> dx(x);
    DeviceArray<Bf16> y(reference.size());
    kernels::cuda::silu_multiply(dx.get(), 7, n, y.get(), nullptr);
    EXPECT_LT(distance(y.read(), reference), kBudgetBf16) << n;
  }
}

TEST(ChooseGreedy, TiesNansAndLogprobs) {
  Random random(900);
  constexpr int32_t kRows = 5, kStride = 128256, kN = 128003;
  auto logits = random.floats(static_cast<size_t>(kRows) * kStride);
  const auto at = [&](int32_t row, int32_t i) -> float& {
    return logits[static_cast<size_t>(row) * kStride + static_cast<size_t>(i)];
  };
  at(0, 777) = at(0, 100'000) = 3;  // the lower of two equals
  at(1, kN - 1) = 9;                // the last
  at(1, kN) = 99;                   // may not be sampled
  at(2, 5) = NAN;
  at(3, 6) = INFINITY;
  const DeviceArray<float> device(logits);
  DeviceArray<int32_t> tokens(kRows), finite(kRows);
  DeviceArray<float> logprobs(kRows);
  kernels::cuda::choose_greedy(device.get(), kRows, kN, kStride, tokens.get(), logprobs.get(),
                               finite.get(), nullptr);
  const auto chosen = tokens.read();
  EXPECT_EQ(chosen[0], 777);
  EXPECT_EQ(chosen[1], kN - 1);
  EXPECT_EQ(finite.read(), (std::vector<int32_t>{1, 1, 0, 0, 1}));
  for (const int32_t row : {0, 1, 4}) {
    double sum = 0, largest = -INFINITY;
    for (int32_t i = 0; i < kN; ++i) largest = std::max(largest, static_cast<double>(at(row, i)));
    for (int32_t i = 0; i < kN; ++i) sum += std::exp(static_cast<double>(at(row, i)) - largest);
    EXPECT_NEAR(logprobs.read()[static_cast<size_t>(row)], -std::log(sum), 1e-4);
    EXPECT_EQ(static_cast<double>(at(row, chosen[static_cast<size_t>(row)])), largest);
  }
}

class Prepared : public testing::Environment {
  void SetUp() override { kernels::cuda::prepare_kernels(); }
};
const auto* const kPrepared = testing::AddGlobalTestEnvironment(new Prepared);

}  // namespace
}  // namespace prony::gpu
