// Paged attention and the KV store against float64, and the laws that make batching and chunking
// invisible: results must not depend on chunks, on page numbers, or on what lies behind a query.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "prony/core/rng.hpp"
#include "prony/kernels/kernels.hpp"
#include "prony/kernels/test_support.hpp"

namespace prony::kernels {
namespace {

struct Shape {
  int32_t heads, kv_heads, head_dim, context;
  Dtype dtype;
  int32_t window = 0;
  float softcap = 0;
  int32_t narrow_values = 0;  // width of the values where it is not head_dim

  int32_t value_dim() const { return narrow_values > 0 ? narrow_values : head_dim; }
};

/// A sequence whose keys and values were stored through the kernel, in pages in random order.
class Sequence {
 public:
  Sequence(const Shape& shape, Isa isa, uint64_t seed, int32_t page_shift = 0)
      : shape_(shape), kernels_(kernels_for(isa)) {
    kv_.dtype = shape.dtype;
    kv_.kv_heads = shape.kv_heads;
    kv_.head_dim = shape.head_dim;
    kv_.value_dim = shape.value_dim();
    kv_.value_stride = round_up(shape.value_dim(), kLanes);
    kv_.page_bytes = (kv_.key_elements() + kv_.value_elements()) * dtype_bytes(shape.dtype);
    const int32_t pages = (shape.context + 15) / 16;
    const int32_t pool_pages = pages + page_shift + 2;
    storage_.resize(static_cast<size_t>(pool_pages * kv_.page_bytes) / 64 + 1);
    kv_.layer = storage_[0].bytes;
    // Positions nobody has written hold NaNs: reading one would show. The values' padding columns
    // are zero in an engine, so they are here.
    fill_nan();
    for (int32_t i = 0; i < pages; ++i) pages_.push_back((i * 7 + page_shift) % pool_pages);
    if (pool_pages % 7 == 0) {  // 7 does not generate all pages then
      for (int32_t i = 0; i < pages; ++i) pages_[static_cast<size_t>(i)] = i + page_shift;
    }
    const int64_t row = int64_t{shape.kv_heads} * shape.head_dim;
    keys_ = random_floats(shape.context * row, seed);
    values_ = random_floats(int64_t{shape.context} * shape.kv_heads * shape.value_dim(), seed + 1);
    queries_ = random_floats(int64_t{shape.context} * shape.heads * shape.head_dim, seed + 2);
  }

  void store(int32_t begin, int32_t end) {
    const int64_t row = int64_t{shape_.kv_heads} * shape_.head_dim;
    const int64_t value_row = int64_t{shape_.kv_heads} * shape_.value_dim();
    for (int32_t position = begin; position < end; ++position) {
      kernels_.store_kv({.key = keys_.data() + position * row,
                         .value = values_.data() + position * value_row,
                         .kv = &kv_,
                         .page = pages_[static_cast<size_t>(position / 16)],
                         .slot = position % 16});
    }
  }

  /// Attention of the queries [begin, end), written into their rows of `out`,
  /// [context][heads][value_dim].
  void attend(int32_t begin, int32_t end, std::vector<float>& out) const {
    const int64_t row = int64_t{shape_.heads} * shape_.head_dim;
    const int64_t out_row = int64_t{shape_.heads} * shape_.value_dim();
    const AttentionArgs args{.q = queries_.data() + begin * row,
                             .q_stride = row,
                             .out = out.data() + begin * out_row,
                             .out_stride = out_row,
                             .tokens = end - begin,
                             .first_position = begin,
                             .pages = pages_.data(),
                             .kv = &kv_,
                             .heads = shape_.heads,
                             .scale = scale(),
                             .window = shape_.window,
                             .softcap = shape_.softcap};
    for (int32_t head = 0; head < shape_.kv_heads; ++head) {
      kernels_.attention(args, head, 0, int64_t{end - begin} * shape_.heads / shape_.kv_heads);
    }
  }

  std::vector<float> empty_output() const {
    return std::vector<float>(
        static_cast<size_t>(int64_t{shape_.context} * shape_.heads * shape_.value_dim()),
        std::numeric_limits<float>::quiet_NaN());
  }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)); }

  /// Exact attention of one query and head; `magnitude` bounds |weights . values|.
  double reference(int32_t position, int32_t head, int32_t d, double* magnitude) const {
    const auto dim = static_cast<size_t>(shape_.head_dim);
    const size_t kv_head = static_cast<size_t>(head / (shape_.heads / shape_.kv_heads));
    const size_t row = static_cast<size_t>(shape_.kv_heads) * dim;
    const float* q = queries_.data() + (static_cast<size_t>(position * shape_.heads + head)) * dim;
    std::vector<double> scores;
    double largest = -std::numeric_limits<double>::infinity();
    const auto value_dim = static_cast<size_t>(shape_.value_dim());
    const int32_t hidden = shape_.window > 0 ? std::max(0, position + 1 - shape_.window) : 0;
    for (auto p = static_cast<size_t>(hidden); p <= static_cast<size_t>(position); ++p) {
      double score = 0;
      for (size_t i = 0; i < dim; ++i) {
        score += static_cast<double>(q[i]) * stored(keys_[p * row + kv_head * dim + i]);
      }
      score *= static_cast<double>(scale());
      const auto cap = static_cast<double>(shape_.softcap);
      if (cap > 0) score = cap * std::tanh(score / cap);
      scores.push_back(score);
      largest = std::max(largest, scores.back());
    }
    double sum = 0, result = 0;
    *magnitude = 0;
    for (size_t p = 0; p < scores.size(); ++p) {
      const double weight = std::exp(scores[p] - largest);
      const size_t at = p + static_cast<size_t>(hidden);
      const double value =
          stored(values_[(at * static_cast<size_t>(shape_.kv_heads) + kv_head) * value_dim +
                         static_cast<size_t>(d)]);
      sum += weight;
      result += weight * value;
      *magnitude += weight * std::fabs(value);
    }
    *magnitude /= sum;
    return result / sum;
  }

  const KvLayout& kv() const { return kv_; }

 private:
  double stored(float value) const {
    return static_cast<double>(shape_.dtype == Dtype::kF32 ? value : quant::round_to_bf16(value));
  }
  void fill_nan() {
    const int64_t page_elements = kv_.page_bytes / dtype_bytes(shape_.dtype);
    const auto bytes = static_cast<int64_t>(storage_.size() * 64);
    for (int64_t i = 0; i < bytes / dtype_bytes(shape_.dtype); ++i) {
      const int64_t in_values = i % page_elements - kv_.key_elements();
      const bool padding = in_values >= 0 && in_values % kv_.value_stride >= kv_.value_dim;
      const float value = padding ? 0.0f : std::numeric_limits<float>::quiet_NaN();
      if (shape_.dtype == Dtype::kF32) {
        reinterpret_cast<float*>(kv_.layer)[i] = value;
      } else {
        reinterpret_cast<quant::Bf16*>(kv_.layer)[i] = quant::to_bf16(value);
      }
    }
  }

  Shape shape_;
  const Kernels& kernels_;
  KvLayout kv_;
  std::vector<OwnedMatrix::Line> storage_;
  std::vector<int32_t> pages_;
  std::vector<float> keys_, values_, queries_;  // [context][heads or kv_heads][head_dim]
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBf16}) {
    for (const int32_t context : {1, 15, 16, 17, 63, 64, 65, 130}) {
      all.push_back({4, 2, 16, context, dtype});
    }
    all.push_back({4, 4, 64, 70, dtype});  // every head its own keys
    all.push_back({7, 1, 20, 70, dtype});  // one kv head, odd group, head_dim off the lanes
    all.push_back({6, 2, 80, 70, dtype});
    all.push_back({5, 5, 2, 67, dtype});
    all.push_back({8, 2, 128, 40, dtype});
    all.push_back({2, 1, 256, 40, dtype});
    for (const int32_t window : {1, 7, 16, 64, 65, 200})
      all.push_back({4, 2, 16, 150, dtype, window});
    all.push_back({8, 2, 20, 90, dtype, 0, 2.0f});
    all.push_back({3, 3, 24, 90, dtype, 20, 0.5f});
    all.push_back({4, 1, 576, 40, dtype, 0, 0, 512});  // latent attention
    all.push_back({6, 2, 24, 70, dtype, 9, 0, 10});
  }
  return all;
}

class AttentionTest : public testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Isas, AttentionTest, testing::ValuesIn(supported_isas()),
                         [](const auto& param) { return isa_test_name(param); });

TEST_P(AttentionTest, MatchesFloat64) {
  for (const Shape& shape : shapes()) {
    Sequence sequence(shape, GetParam(), 100);
    sequence.store(0, shape.context);
    std::vector<float> out = sequence.empty_output();
    sequence.attend(0, shape.context, out);
    for (int32_t position = 0; position < shape.context; ++position) {
      for (int32_t head = 0; head < shape.heads; ++head) {
        const int32_t d = (position + head) % shape.value_dim();
        double magnitude = 0;
        const double exact = sequence.reference(position, head, d, &magnitude);
        const float got =
            out[static_cast<size_t>((position * shape.heads + head) * shape.value_dim() + d)];
        // A score of size s carries an error of about head_dim u s (s < 5 here), which exp turns
        // into a relative one; the sums add context u. 576 + 130 roundings of 2^-24, all worst
        // case, stay below 1e-4.
        ASSERT_NEAR(static_cast<double>(got), exact, 1e-4 * magnitude)
            << position << " " << head << " dim " << shape.head_dim;
      }
    }
  }
}

TEST_P(AttentionTest, ChunksDoNotChangeABit) {
  for (const Shape& shape : shapes()) {
    Sequence whole(shape, GetParam(), 200);
    whole.store(0, shape.context);
    std::vector<float> expected = whole.empty_output();
    whole.attend(0, shape.context, expected);
    for (const int32_t chunk : {1, 3, 16, 50}) {
      // The chunk's own keys are stored just before: what lies behind is still NaN.
      Sequence chunked(shape, GetParam(), 200, chunk % 3);
      std::vector<float> out = chunked.empty_output();
      for (int32_t begin = 0; begin < shape.context; begin += chunk) {
        const int32_t end = std::min(begin + chunk, shape.context);
        chunked.store(begin, end);
        chunked.attend(begin, end, out);
      }
      ASSERT_EQ(first_difference(expected, out), -1) << chunk << " dim " << shape.head_dim;
    }
  }
}

TEST(Attention, EveryIsaGivesTheSameBits) {
  for (const Shape& shape : shapes()) {
    std::vector<std::vector<float>> results;
    for (const Isa isa : supported_isas()) {
      Sequence sequence(shape, isa, 300);
      sequence.store(0, shape.context);
      std::vector<float> out = sequence.empty_output();
      sequence.attend(0, shape.context, out);
      results.push_back(out);
    }
    for (const std::vector<float>& result : results) {
      ASSERT_EQ(first_difference(results.front(), result), -1) << shape.head_dim;
    }
  }
}

// Scores far apart and very large must neither overflow nor lose the largest.
TEST_P(AttentionTest, ExtremeScoresPickTheLargest) {
  const Shape shape{1, 1, 16, 200, Dtype::kF32};
  KvLayout kv{
      .dtype = Dtype::kF32, .kv_heads = 1, .head_dim = 16, .value_dim = 16, .value_stride = 16};
  kv.page_bytes = (kv.key_elements() + kv.value_elements()) * 4;
  std::vector<OwnedMatrix::Line> storage(static_cast<size_t>(13 * kv.page_bytes) / 64 + 1);
  kv.layer = storage[0].bytes;
  std::vector<int32_t> pages;
  for (int32_t i = 0; i < 13; ++i) pages.push_back(i);
  const Kernels& kernels = kernels_for(GetParam());
  std::vector<float> key(16, 0.0f), value(16, 0.0f), q(16, 0.0f), out(16);
  for (int32_t position = 0; position < shape.context; ++position) {
    key[0] = position == 150 ? 1e4f : -1e4f + static_cast<float>(position);
    value[3] = static_cast<float>(position);
    kernels.store_kv({.key = key.data(),
                      .value = value.data(),
                      .kv = &kv,
                      .page = pages[static_cast<size_t>(position / 16)],
                      .slot = position % 16});
  }
  q[0] = 1e3f;
  kernels.attention({.q = q.data(),
                     .q_stride = 16,
                     .out = out.data(),
                     .out_stride = 16,
                     .tokens = 1,
                     .first_position = 199,
                     .pages = pages.data(),
                     .kv = &kv,
                     .heads = 1,
                     .scale = 1},
                    0, 0, 1);
  EXPECT_EQ(out[3], 150.0f);
  EXPECT_EQ(out[0], 0.0f);
}

}  // namespace
}  // namespace prony::kernels
