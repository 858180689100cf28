// The forward pass against a float64 reference written from the published formulas, at every layer,
// and against itself: chunks, batch, threads, pages and instruction sets must not change a bit.
#include "prony/engine/forward.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "prony/engine/dummy_tensors.hpp"
#include "prony/engine/reference_testing.hpp"
#include "prony/engine/specs_testing.hpp"
#include "prony/kernels/test_support.hpp"

namespace prony::engine {
namespace {

using kernels::Dtype;
using kernels::Isa;

constexpr int32_t kPages = 40;

/// Numbers of a model: of its weights, and of the rows that products read.
struct Numbers {
  const char* name;
  Dtype dtype;
  bool bf16_rows = false;
};
constexpr Numbers kNumbers[] = {{"fp32", Dtype::kF32},
                                {"bf16", Dtype::kBf16},
                                {"bf16 rows", Dtype::kBf16, true},
                                {"int8", Dtype::kI8}};

/// Everything a pass needs, and what the last pass computed.
struct Rig : ForwardObserver {
  Rig(const catalog::ModelSpec& spec, const Numbers& numbers, Isa isa, int threads = 1)
      : pool(threads),
        model(Model::load(spec, numbers.dtype, DummyTensors(17), pool).value()),
        kv(KvStore::create(spec, kv_dtype(numbers.dtype), kPages, false).value()),
        forward(
            Forward::create(model, kv, kernels::kernels_for(isa), pool,
                            {.max_tokens = 256, .max_rows = 40, .max_context = spec.max_context},
                            {.bf16_rows = numbers.bf16_rows})
                .value()) {}

  void on_hidden(int32_t layer, const float* hidden, int64_t stride, int64_t tokens) override {
    const int64_t width = model.spec().hidden;
    for (int64_t t = 0; t < tokens; ++t) {
      hidden_by_layer[layer].insert(hidden_by_layer[layer].end(), hidden + t * stride,
                                    hidden + t * stride + width);
    }
  }

  /// Logits of every row that wanted them, one after another.
  std::vector<float> run(const std::vector<ForwardRow>& rows) {
    hidden_by_layer.clear();
    forward.run(rows, this);
    std::vector<float> all;
    int32_t wanting = 0;
    for (const ForwardRow& row : rows) wanting += row.wants_logits ? 1 : 0;
    for (int32_t first = 0; first < wanting; first += 7) {
      const int32_t count = std::min(7, wanting - first);
      forward.compute_logits(first, count);
      for (int32_t i = 0; i < count; ++i) {
        all.insert(all.end(), forward.logits(i), forward.logits(i) + model.spec().vocab);
      }
    }
    return all;
  }

  kernels::ThreadPool pool;
  Model model;
  KvStore kv;
  Forward forward;
  std::map<int32_t, std::vector<float>> hidden_by_layer;  // [tokens][hidden] each
};

std::vector<int32_t> pages_from(int32_t first, int32_t step) {
  std::vector<int32_t> pages;
  for (int32_t i = 0; i < kPages / 2; ++i) pages.push_back((first + i * step) % kPages);
  return pages;
}

double rms(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

struct Worst {
  double error = 0;  // relative to the rms of the row
  double mean = 0;
};

Worst compare(const std::vector<float>& got, const ReferenceModel::Matrix& expected) {
  Worst worst;
  size_t at = 0;
  for (const auto& row : expected) {
    const double size = rms(row);
    for (const double value : row) {
      const double error = std::fabs(static_cast<double>(got[at++]) - value) / size;
      worst.error = std::max(worst.error, error);
      worst.mean += error;
    }
  }
  EXPECT_EQ(at, got.size());
  worst.mean /= static_cast<double>(at);
  return worst;
}

class ForwardTest : public testing::TestWithParam<NamedSpec> {};
INSTANTIATE_TEST_SUITE_P(Specs, ForwardTest, testing::ValuesIn(small_specs()),
                         [](const auto& param) { return param.param.name; });

// fp32: a product of k <= 610 terms is off by about sqrt(k) 2^-24 = 1.5e-6 of the size of its terms
// (k 2^-24 = 4e-5 in the worst case), and a few such steps a layer add up; 1e-6 to 3e-6 of the
// row's rms is seen. 2e-5 leaves room for neither a wrong formula nor a bf16 rounding (4e-3). bf16:
// weights, keys and values are rounded alike on both sides, so the error is the same, except where
// an fp32 error moves a key or value across a rounding boundary: one of about 10^4 of them, by 2^-8
// of itself. Hence a loose bound for the worst element and a tight one for the mean.
TEST_P(ForwardTest, MatchesFloat64AtEveryLayer) {
  const catalog::ModelSpec& spec = GetParam().spec;
  const std::vector<int32_t> tokens = random_tokens(83, spec.vocab, 5);
  const std::vector<int32_t> pages = pages_from(3, 7);
  for (const Numbers& numbers : {kNumbers[0], kNumbers[1]}) {
    const Dtype dtype = numbers.dtype;
    const DummyTensors source(17);
    const auto expected = ReferenceModel(spec, source, dtype == Dtype::kBf16).run(tokens);
    Rig rig(spec, numbers, kernels::supported_isas().back());
    const std::vector<float> logits =
        rig.run({{.tokens = tokens, .first_position = 0, .pages = pages, .wants_logits = true}});
    const double bound = dtype == Dtype::kF32 ? 2e-5 : 5e-3;
    const double mean_bound = dtype == Dtype::kF32 ? 2e-6 : 5e-5;
    ASSERT_EQ(rig.hidden_by_layer.size(), expected.hidden.size());
    for (size_t layer = 0; layer < expected.hidden.size(); ++layer) {
      const Worst worst =
          compare(rig.hidden_by_layer[static_cast<int32_t>(layer)], expected.hidden[layer]);
      EXPECT_LE(worst.error, bound) << "layer " << layer;
      EXPECT_LE(worst.mean, mean_bound) << "layer " << layer;
    }
    const Worst worst = compare(logits, {expected.logits.back()});
    EXPECT_LE(worst.error, bound) << "logits";
    RecordProperty(dtype == Dtype::kF32 ? "fp32" : "bf16", std::to_string(worst.error));
  }
}

// Rows rounded to bf16 are off by 2^-9 of each element at most, int8 rows and weights by 1/254 of
// the row's largest; such errors are independent and add up over the steps of a layer. Seen: means
// of 3e-3 to 1e-2 and of 1.3e-2 to 2.7e-2 of the rms. A scale, an offset or an order that is wrong
// gives errors near 1.
TEST_P(ForwardTest, LowPrecisionIsNearFloat64) {
  const catalog::ModelSpec& spec = GetParam().spec;
  const std::vector<int32_t> tokens = random_tokens(83, spec.vocab, 5);
  const std::vector<int32_t> pages = pages_from(3, 7);
  const auto expected = ReferenceModel(spec, DummyTensors(17), true).run(tokens);
  for (const Numbers& numbers : {kNumbers[2], kNumbers[3]}) {
    Rig rig(spec, numbers, kernels::supported_isas().back());
    const std::vector<float> logits =
        rig.run({{.tokens = tokens, .first_position = 0, .pages = pages, .wants_logits = true}});
    const Worst worst = compare(logits, {expected.logits.back()});
    EXPECT_LE(worst.mean, numbers.bf16_rows ? 2e-2 : 6e-2) << numbers.name;
    RecordProperty(numbers.bf16_rows ? "bf16_rows" : "int8", std::to_string(worst.mean));
  }
}

class EveryForwardTest : public testing::TestWithParam<NamedSpec> {};
INSTANTIATE_TEST_SUITE_P(Specs, EveryForwardTest, testing::ValuesIn(small_specs()),
                         [](const auto& param) { return param.param.name; });
INSTANTIATE_TEST_SUITE_P(Families, EveryForwardTest, testing::ValuesIn(family_specs()),
                         [](const auto& param) { return param.param.name; });

// A sequence alone in one step, against: every chunking, a batch with others around it, other
// pages, threads, and every instruction set. All layers and the logits, bit by bit.
TEST_P(EveryForwardTest, NothingAroundASequenceChangesItsBits) {
  const catalog::ModelSpec& spec = GetParam().spec;
  const std::vector<int32_t> tokens = random_tokens(75, spec.vocab, 6);
  const std::vector<int32_t> pages = pages_from(0, 1);
  for (const Numbers& numbers : kNumbers) {
    Rig alone(spec, numbers, kernels::supported_isas().back());
    const std::vector<float> logits =
        alone.run({{.tokens = tokens, .first_position = 0, .pages = pages, .wants_logits = true}});
    const auto hidden = alone.hidden_by_layer;

    for (const Isa isa : kernels::supported_isas()) {
      Rig rig(spec, numbers, isa, isa == Isa::kGeneric ? 1 : 3);
      for (const int32_t chunk : {1, 5, 16, 70}) {
        if (isa == Isa::kGeneric && chunk != 16) continue;  // slow, and the same code
        const std::vector<int32_t> other_pages = pages_from(5, 3);
        std::map<int32_t, std::vector<float>> chunked;
        std::vector<float> last;
        for (int32_t begin = 0; begin < 75; begin += chunk) {
          const auto part = std::span(tokens).subspan(
              static_cast<size_t>(begin), static_cast<size_t>(std::min(chunk, 75 - begin)));
          // A neighbour before and one behind, which write their own pages.
          const std::vector<int32_t> neighbour = random_tokens(1 + begin % 9, spec.vocab, 8);
          const std::vector<int32_t> page_a = {other_pages[10]}, page_b = {other_pages[11]};
          last = rig.run(
              {{.tokens = neighbour, .first_position = 0, .pages = page_a, .wants_logits = false},
               {.tokens = part,
                .first_position = begin,
                .pages = other_pages,
                .wants_logits = true},
               {.tokens = neighbour, .first_position = 0, .pages = page_b, .wants_logits = false}});
          const auto skip = static_cast<int64_t>(neighbour.size()) * spec.hidden;
          const auto size = static_cast<int64_t>(part.size()) * spec.hidden;
          for (const auto& [layer, values] : rig.hidden_by_layer) {
            chunked[layer].insert(chunked[layer].end(), values.begin() + skip,
                                  values.begin() + skip + size);
          }
        }
        EXPECT_EQ(kernels::first_difference(last, logits), -1) << chunk;
        for (const auto& [layer, values] : hidden) {
          EXPECT_EQ(kernels::first_difference(values, chunked[layer]), -1)
              << numbers.name << " chunk " << chunk << " layer " << layer << " isa "
              << isa_name(isa);
        }
      }
    }
  }
}

// A row may read a block that another row of the same step fills.
TEST(Forward, RowsOfOneStepShareBlocks) {
  const catalog::ModelSpec spec = small_spec();
  const std::vector<int32_t> tokens = random_tokens(40, spec.vocab, 9);
  const std::vector<int32_t> pages = {4, 5, 6}, shared = {4, 5, 9};
  Rig rig(spec, kNumbers[1], kernels::supported_isas().back());
  const std::vector<float> logits =
      rig.run({{.tokens = std::span(tokens).subspan(32),
                .first_position = 32,
                .pages = shared,
                .wants_logits = true},
               {.tokens = tokens, .first_position = 0, .pages = pages, .wants_logits = true}});
  const auto half = static_cast<int64_t>(logits.size() / 2);
  EXPECT_EQ(kernels::first_difference({logits.begin(), logits.begin() + half},
                                      {logits.begin() + half, logits.end()}),
            -1);
}

TEST(Forward, RefusesStepsBeyondItsLimits) {
  const catalog::ModelSpec spec = small_spec();
  const std::vector<int32_t> tokens = random_tokens(20, spec.vocab, 9);
  const std::vector<int32_t> one_page = {0}, bad_page = {0, kPages};
  Rig rig(spec, kNumbers[0], Isa::kGeneric);
  EXPECT_DEATH(rig.run({{.tokens = tokens, .first_position = 0, .pages = one_page}}),
               "too few pages");
  EXPECT_DEATH(rig.run({{.tokens = tokens, .first_position = 0, .pages = bad_page}}),
               "page does not exist");
  EXPECT_DEATH(rig.run({{.tokens = tokens, .first_position = 1010, .pages = one_page}}),
               "capacity");
  const std::vector<int32_t> wrong = {spec.vocab};
  EXPECT_DEATH(rig.run({{.tokens = wrong, .first_position = 0, .pages = one_page}}),
               "outside of the vocabulary");
}

TEST(DummyTensors, ElementsDependOnNameAndIndexAlone) {
  const DummyTensors source(5);
  std::vector<float> whole(30 * 7);
  ASSERT_TRUE(source.read({"a.weight", 30, 7, 0, 30}, whole.data()).ok());
  for (int64_t first = 0; first < 30; first += 4) {
    const int64_t count = std::min<int64_t>(4, 30 - first);
    std::vector<float> part(static_cast<size_t>(count * 7));
    ASSERT_TRUE(source.read({"a.weight", 30, 7, first, count}, part.data()).ok());
    for (size_t i = 0; i < part.size(); ++i) {
      EXPECT_EQ(part[i], whole[static_cast<size_t>(first * 7) + i]);
    }
  }
  std::vector<float> other(30 * 7);
  ASSERT_TRUE(source.read({"b.weight", 30, 7, 0, 30}, other.data()).ok());
  EXPECT_NE(whole, other);
  ASSERT_TRUE(DummyTensors(6).read({"a.weight", 30, 7, 0, 30}, other.data()).ok());
  EXPECT_NE(whole, other);
}

// 10^6 draws: the standard error of the variance of a uniform law is 9e-4 of it.
TEST(DummyTensors, VarianceIsOneOverTheInputs) {
  std::vector<float> values(1'000'000);
  ASSERT_TRUE(DummyTensors(1).read({"x.weight", 1000, 1000, 0, 1000}, values.data()).ok());
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_NEAR(sum / 1e6, 0, 5 * std::sqrt(1e-3 / 1e6));
  EXPECT_NEAR(squares / 1e6, 1e-3, 5e-6);
}

TEST(RopeTable, Llama3BlendsBetweenTheWavelengths) {
  // Llama 3.1: theta 500000, factor 8, context 8192, head_dim 128. The published scheme leaves
  // wavelengths below 2048 alone and divides by 8 those above 8192.
  const catalog::Rope rope{.type = catalog::RopeType::kLlama3,
                           .theta = 500'000,
                           .factor = 8,
                           .low_freq_factor = 1,
                           .high_freq_factor = 4,
                           .original_max_position = 8192};
  const std::vector<double> scaled = rope_frequencies(rope, 128);
  const std::vector<double> plain =
      rope_frequencies({.type = catalog::RopeType::kDefault, .theta = 500'000}, 128);
  int kept = 0, divided = 0, blended = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const double wavelength = 2 * std::numbers::pi / plain[i];
    if (wavelength < 2048) {
      EXPECT_EQ(scaled[i], plain[i]);
      ++kept;
    } else if (wavelength > 8192) {
      EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 8);
      ++divided;
    } else {
      EXPECT_LT(scaled[i], plain[i]);
      EXPECT_GT(scaled[i], plain[i] / 8);
      ++blended;
    }
  }
  // By hand: 2 pi 500000^(2i/128) passes 2048 after i = 28 and 8192 after i = 34.
  EXPECT_EQ(kept, 29);
  EXPECT_EQ(blended, 6);
  EXPECT_EQ(divided, 29);
}

}  // namespace
}  // namespace prony::engine
