// Products of packed rows, bf16 and int8: the rounding of rows and weights, the sums against
// float64 and bit by bit against the contract, at every instruction set level this machine has, and
// the AMX kernel on emulated tiles, so that its packing and blocking are tested where there are
// none.
#include <gtest/gtest.h>

#include "prony/kernels/cpu/matmul_amx_impl.hpp"
#include "prony/kernels/packed_testing.hpp"

namespace prony::kernels {
namespace {

struct Problem {
  int64_t rows, outputs, inputs;
  Dtype dtype;
  bool bias;
};

struct Data {
  explicit Data(const Problem& p, uint64_t seed = 1)
      : problem(p),
        x_stride(p.inputs + 3),
        y_stride(p.outputs + 5),
        x(random_floats(p.rows * x_stride, seed)),
        w(random_floats(p.outputs * p.inputs, seed + 1)),
        bias(random_floats(p.outputs, seed + 2)),
        weight(p.dtype, p.outputs, p.inputs, w),
        packed(p.dtype, p.rows, p.inputs) {}
  void pack(Isa isa) {
    kernels_for(isa).pack_rows({.x = x.data(),
                                .x_stride = x_stride,
                                .rows = problem.rows,
                                .inputs = problem.inputs,
                                .to = &packed.rows});
  }
  MatmulArgs args(std::vector<float>& y) const {
    return {.packed = &packed.rows,
            .rows = problem.rows,
            .weight = &weight.matrix,
            .bias = problem.bias ? bias.data() : nullptr,
            .y = y.data(),
            .y_stride = y_stride};
  }
  std::vector<float> empty() const {
    return std::vector<float>(static_cast<size_t>(problem.rows * y_stride), kCanary);
  }
  std::vector<float> run(Isa isa) {
    pack(isa);
    std::vector<float> y = empty();
    kernels_for(isa).matmul(args(y), 0, weight.matrix.panels());
    return y;
  }
  /// What the contract says, number by number; `worst` gets the largest |error| over its bound
  /// against float64, inputs and weights as they are rounded.
  std::vector<float> expected(double* worst) const {
    std::vector<float> y = empty();
    std::vector<std::vector<float>> w_rows;
    std::vector<std::vector<int32_t>> w_int;
    std::vector<float> w_scale(static_cast<size_t>(problem.outputs));
    const auto inputs = static_cast<size_t>(problem.inputs);
    for (int64_t n = 0; n < problem.outputs; ++n) {
      const float* row = w.data() + n * problem.inputs;
      std::vector<float>& rounded = w_rows.emplace_back();
      for (size_t k = 0; k < inputs; ++k) rounded.push_back(quant::round_to_bf16(row[k]));
      w_int.push_back(quantized(row, problem.inputs, &w_scale[static_cast<size_t>(n)]));
    }
    *worst = 0;
    for (int64_t m = 0; m < problem.rows; ++m) {
      const float* row = x.data() + m * x_stride;
      std::vector<float> rounded;
      for (size_t k = 0; k < inputs; ++k) rounded.push_back(quant::round_to_bf16(row[k]));
      float x_scale = 0;
      const std::vector<int32_t> x_int = quantized(row, problem.inputs, &x_scale);
      for (int64_t n = 0; n < problem.outputs; ++n) {
        const auto column = static_cast<size_t>(n);
        double exact = 0, magnitude = 0;
        float value = 0;
        if (problem.dtype == Dtype::kI8) {
          int64_t sum = 0;
          for (size_t k = 0; k < inputs; ++k) sum += int64_t{x_int[k]} * w_int[column][k];
          value = static_cast<float>(static_cast<int32_t>(sum)) * x_scale * w_scale[column];
          exact = static_cast<double>(sum) * static_cast<double>(x_scale) *
                  static_cast<double>(w_scale[column]);
          magnitude = std::fabs(exact);
        } else {
          value = tile_order_sum(rounded, w_rows[column]);
          for (size_t k = 0; k < inputs; ++k) {
            const double product =
                static_cast<double>(rounded[k]) * static_cast<double>(w_rows[column][k]);
            exact += product;
            magnitude += std::fabs(product);
          }
        }
        if (problem.bias) {
          value += bias[column];
          exact += static_cast<double>(bias[column]);
          magnitude += std::fabs(static_cast<double>(bias[column]));
        }
        y[static_cast<size_t>(m * y_stride + n)] = value;
        // Roundings of 2^-24 on the longest path to the result (Higham 2002, 3.1): an integer sum
        // has three after it and the bias's.
        const auto steps = static_cast<double>(problem.dtype == Dtype::kI8 ? 4 : inputs + 4);
        const double bound = steps * 0x1p-24 * 1.001 * magnitude;
        const double error = std::fabs(static_cast<double>(value) - exact);
        if (error > 0) *worst = std::max(*worst, error / bound);
      }
    }
    return y;
  }
  static constexpr float kCanary = -12345.5f;
  Problem problem;
  int64_t x_stride, y_stride;
  std::vector<float> x, w, bias;
  OwnedMatrix weight;
  OwnedRows packed;
};

std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kI8}) {
    for (int64_t rows = 1; rows <= 9; ++rows) all.push_back({rows, 75, 37, dtype, rows % 2 == 0});
    for (const int64_t rows : {15, 16, 17, 31, 32, 33, 48, 50, 65}) {
      all.push_back({rows, 80, 70, dtype, rows % 2 == 1});
    }
    for (const int64_t outputs : {1, 15, 16, 17, 31, 32, 33, 48, 49, 64, 97}) {
      all.push_back({1, outputs, 33, dtype, true});
      all.push_back({18, outputs, 65, dtype, false});
    }
    all.push_back({65, 9 * 32 + 20, 530, dtype, true});  // more panels than a group
    // Around a tile of inputs and a block of sixteen of them.
    for (const int64_t inputs : {1, 2, 3, 31, 32, 63, 64, 65, 511, 512, 513, 1024, 1030, 1100}) {
      all.push_back({1, 40, inputs, dtype, false});
      all.push_back({35, 40, inputs, dtype, true});
    }
  }
  return all;
}

class PackedTest : public testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Isas, PackedTest, testing::ValuesIn(supported_isas()),
                         [](const auto& param) { return isa_test_name(param); });

TEST_P(PackedTest, MatchesFloat64AndTheContract) {
  for (const Problem& p : problems()) {
    Data data(p);
    double worst = 0;
    const std::vector<float> expected = data.expected(&worst);
    EXPECT_LE(worst, 1) << "the contract itself is inexact";
    ASSERT_EQ(first_difference(expected, data.run(GetParam())), -1)
        << p.rows << "x" << p.outputs << "x" << p.inputs << " dtype " << static_cast<int>(p.dtype);
  }
}

TEST_P(PackedTest, RowsAndPanelsDoNotInfluenceEachOther) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kI8}) {
    Data data({70, 200, 515, dtype, true}, 77);
    const std::vector<float> whole = data.run(GetParam());
    for (const int64_t rows : {1, 2, 3, 7, 16, 33}) {
      std::vector<float> y = data.empty();
      for (int64_t first = 0; first < data.problem.rows; first += rows) {
        const int64_t count = std::min(rows, data.problem.rows - first);
        OwnedRows part(dtype, count, data.problem.inputs);
        kernels_for(GetParam())
            .pack_rows({.x = data.x.data() + first * data.x_stride,
                        .x_stride = data.x_stride,
                        .rows = count,
                        .inputs = data.problem.inputs,
                        .to = &part.rows});
        MatmulArgs args = data.args(y);
        args.packed = &part.rows;
        args.rows = count;
        args.y += first * args.y_stride;
        for (int64_t panel = 0; panel < data.weight.matrix.panels(); panel += 3) {
          kernels_for(GetParam())
              .matmul(args, panel, std::min(panel + 3, data.weight.matrix.panels()));
        }
      }
      EXPECT_EQ(first_difference(whole, y), -1) << rows;
    }
  }
}

TEST_P(PackedTest, RowsAreRoundedToNearestAndPadded) {
  const Kernels& kernels = kernels_for(GetParam());
  for (const int64_t inputs : {1, 15, 16, 17, 64, 100}) {
    const std::vector<float> x = random_floats(3 * inputs, 9);
    for (const Dtype dtype : {Dtype::kBf16, Dtype::kI8}) {
      OwnedRows packed(dtype, 5, inputs);
      kernels.pack_rows({.x = x.data(),
                         .x_stride = inputs,
                         .rows = 3,
                         .inputs = inputs,
                         .to = &packed.rows,
                         .first = 2});
      for (int64_t row = 0; row < 3; ++row) {
        float scale = 0;
        const auto values = quantized(x.data() + row * inputs, inputs, &scale);
        int32_t sum = 0;
        for (int64_t k = 0; k < PackedMatrix::padded_inputs(dtype, inputs); ++k) {
          const float value = k < inputs ? x[static_cast<size_t>(row * inputs + k)] : 0.0f;
          if (dtype == Dtype::kBf16) {
            ASSERT_EQ(packed.bf16(row + 2, k), quant::round_to_bf16(value));
            continue;
          }
          const int32_t expected = k < inputs ? values[static_cast<size_t>(k)] : 0;
          ASSERT_EQ(packed.int8(row + 2, k), expected);
          sum += expected;
        }
        if (dtype == Dtype::kBf16) continue;
        EXPECT_EQ(packed.sums[static_cast<size_t>(row + 2)], sum);
        EXPECT_EQ(packed.scales[static_cast<size_t>(row + 2)], scale);
      }
    }
  }
}

// What is not a number must stay visible, in rows and in weights; nothing but zeros must not
// divide.
TEST_P(PackedTest, NotFiniteStaysNotFiniteAndZeroStaysZero) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kI8}) {
    for (const float bad : {kNan, kInfinity, -kInfinity, 0.0f, 1e-38f}) {
      Data data({20, 33, 70, dtype, false});
      for (int64_t k = 0; k < 70; ++k) {
        const bool all = std::isfinite(bad);
        if (all || k == 41) data.x[static_cast<size_t>(3 * data.x_stride + k)] = bad;
      }
      const std::vector<float> y = data.run(GetParam());
      for (int64_t n = 0; n < 33; ++n) {
        const float got = y[static_cast<size_t>(3 * data.y_stride + n)];
        EXPECT_EQ(std::isfinite(got), std::isfinite(bad));
        if (std::isfinite(bad)) {
          EXPECT_LE(std::fabs(got), 1e-36f);
        }
        EXPECT_TRUE(std::isfinite(y[static_cast<size_t>(4 * data.y_stride + n)]));
      }
    }
  }
  std::vector<float> w(4 * 40, 1.0f);
  w[41] = kNan;
  for (size_t k = 80; k < 120; ++k) w[k] = 0;
  const OwnedMatrix weight(Dtype::kI8, 4, 40, w);
  std::vector<float> row(40);
  weight.matrix.read_row(1, row.data());
  EXPECT_TRUE(std::isnan(row[0]));
  weight.matrix.read_row(2, row.data());
  EXPECT_EQ(row[0], 0.0f);
}

TEST(PackedMatrixInt8, ReadRowIsWithinHalfAStep) {
  for (const int64_t outputs : {1, 16, 17, 33, 100}) {
    for (const int64_t inputs : {1, 3, 64, 130}) {
      const std::vector<float> rows = random_floats(outputs * inputs, 5);
      const OwnedMatrix owned(Dtype::kI8, outputs, inputs, rows);
      std::vector<float> row(static_cast<size_t>(inputs));
      for (int64_t n = 0; n < outputs; ++n) {
        owned.matrix.read_row(n, row.data());
        float scale = 0;
        (void)quantized(rows.data() + n * inputs, inputs, &scale);
        for (int64_t k = 0; k < inputs; ++k) {
          ASSERT_NEAR(row[static_cast<size_t>(k)], rows[static_cast<size_t>(n * inputs + k)],
                      scale * 0.5001f);
        }
      }
    }
  }
}

// Tiles as arrays, after the manual: registers of 16 rows of 64 bytes.
struct EmulatedTiles {
  struct Tile {
    alignas(64) std::byte row[16][64];
  };
  static Tile& tile(int index) {
    static Tile tiles[8];
    return tiles[index];
  }
  template <class T>
  static T at(const Tile& t, int row, int index) {
    T value;
    std::memcpy(&value, t.row[row] + static_cast<size_t>(index) * sizeof(T), sizeof(T));
    return value;
  }
  template <int kTile>
  static void load(const void* p, int64_t stride) {
    for (int row = 0; row < 16; ++row) {
      std::memcpy(tile(kTile).row[row], static_cast<const std::byte*>(p) + row * stride, 64);
    }
  }
  template <int kTile>
  static void store(void* p, int64_t stride) {
    for (int row = 0; row < 16; ++row) {
      std::memcpy(static_cast<std::byte*>(p) + row * stride, tile(kTile).row[row], 64);
    }
  }
  template <int kTile>
  static void zero() {
    std::memset(&tile(kTile), 0, sizeof(Tile));
  }
  template <bool kInt8, int kSum, int kX, int kW>
  static void multiply() {
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 16; ++n) {
        if constexpr (kInt8) {
          auto sum = at<uint32_t>(tile(kSum), m, n);
          for (int k = 0; k < 64; ++k) {
            const int product =
                int{at<int8_t>(tile(kX), m, k)} * int{at<uint8_t>(tile(kW), k / 4, n * 4 + k % 4)};
            sum += static_cast<uint32_t>(product);
          }
          std::memcpy(tile(kSum).row[m] + n * 4, &sum, 4);
        } else {
          std::vector<float> x, w;
          for (int k = 0; k < 32; ++k) {
            x.push_back(quant::to_float(at<quant::Bf16>(tile(kX), m, k)));
            w.push_back(quant::to_float(at<quant::Bf16>(tile(kW), k / 2, n * 2 + k % 2)));
          }
          const float sum = at<float>(tile(kSum), m, n) + tile_order_sum(x, w);
          std::memcpy(tile(kSum).row[m] + n * 4, &sum, 4);
        }
      }
    }
  }
};

// The few Lanes that amx_panels asks for, as arrays.
struct ArrayLanes {
  struct F {
    float lane[16];
  };
  struct I {
    uint32_t lane[16];
  };
  template <class Function>
  static F make(const Function& function) {
    F f;
    for (int i = 0; i < 16; ++i) f.lane[i] = function(i);
    return f;
  }
  static F set1(float x) {
    return make([&](int) { return x; });
  }
  static F load(const float* p) { return load_n(p, 16); }
  static F load_n(const float* p, int64_t n) {
    return make([&](int i) { return i < n ? p[i] : 0.0f; });
  }
  static I iload_n(const void* p, int64_t n) {
    I value{};
    std::memcpy(value.lane, p, static_cast<size_t>(std::clamp<int64_t>(n, 0, 16)) * 4);
    return value;
  }
  static void store_n(float* p, const F& f, int64_t n) {
    for (int64_t i = 0; i < std::min<int64_t>(n, 16); ++i) p[i] = f.lane[i];
  }
  static F add(const F& a, const F& b) {
    return make([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static F mul(const F& a, const F& b) {
    return make([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  static F to_float_less(const I& sum, uint32_t less) {
    return make(
        [&](int i) { return static_cast<float>(static_cast<int32_t>(sum.lane[i] - less)); });
  }
};

TEST(AmxKernel, GivesTheSameBitsOnEmulatedTiles) {
  for (const Problem& p : problems()) {
    Data data(p);
    const std::vector<float> expected = data.run(Isa::kGeneric);
    std::vector<float> y = data.empty();
    const int64_t panels = data.weight.matrix.panels();
    if (p.dtype == Dtype::kI8) {
      cpu::amx_panels<EmulatedTiles, ArrayLanes, true>(data.args(y), 0, panels);
    } else {
      cpu::amx_panels<EmulatedTiles, ArrayLanes, false>(data.args(y), 0, panels);
    }
    ASSERT_EQ(first_difference(expected, y), -1)
        << p.rows << "x" << p.outputs << "x" << p.inputs << " dtype " << static_cast<int>(p.dtype);
  }
}

}  // namespace
}  // namespace prony::kernels
