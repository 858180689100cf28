// The matrix product against float64 and against the contract's chain of fma, for every shape
// class, dtype and instruction set this machine has.
#include <gtest/gtest.h>

#include <cmath>

#include "prony/kernels/kernels.hpp"
#include "prony/kernels/test_support.hpp"
#include "prony/kernels/thread_pool.hpp"

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
        packed(p.dtype, p.outputs, p.inputs, w) {
    if (p.dtype == Dtype::kBf16) {
      for (float& value : w) value = quant::round_to_bf16(value);
    }
  }
  MatmulArgs args(std::vector<float>& y) const {
    return {.x = x.data(),
            .x_stride = x_stride,
            .rows = problem.rows,
            .weight = &packed.matrix,
            .bias = problem.bias ? bias.data() : nullptr,
            .y = y.data(),
            .y_stride = y_stride};
  }
  /// All of y, with a canary wherever the kernel must not write.
  std::vector<float> run(Isa isa) const {
    std::vector<float> y(static_cast<size_t>(problem.rows * y_stride), kCanary);
    kernels_for(isa).matmul(args(y), 0, packed.matrix.panels());
    return y;
  }
  static constexpr float kCanary = -12345.5f;
  Problem problem;
  int64_t x_stride, y_stride;
  std::vector<float> x, w, bias;
  OwnedMatrix packed;
};

std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBf16}) {
    // Every row count around the tile sizes (1, 4, 6, 12) on a shape with a narrow last panel.
    for (int64_t rows = 1; rows <= 14; ++rows) all.push_back({rows, 75, 37, dtype, rows % 2 == 0});
    for (const int64_t rows : {23, 24, 25, 37, 64}) all.push_back({rows, 64, 300, dtype, true});
    // Every remainder of the outputs, single and paired panels.
    for (const int64_t outputs : {1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 97, 160}) {
      all.push_back({1, outputs, 33, dtype, true});
      all.push_back({5, outputs, 33, dtype, false});
      all.push_back({13, outputs, 34, dtype, true});
    }
    // Inputs around the pair and the block of 256.
    for (const int64_t inputs : {1, 2, 3, 255, 256, 257, 511, 512, 513, 1100}) {
      all.push_back({1, 40, inputs, dtype, false});
      all.push_back({7, 40, inputs, dtype, true});
      all.push_back({20, 33, inputs, dtype, true});
    }
  }
  return all;
}

class MatmulTest : public testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Isas, MatmulTest, testing::ValuesIn(supported_isas()),
                         [](const auto& param) { return isa_test_name(param); });

// The bound is the classical one of a sum of k rounded steps (Higham 2002, section 3.1):
// |error| <= k u / (1 - k u) sum |x w|, u = 2^-24, one step more for the bias.
TEST_P(MatmulTest, MatchesFloat64AndTheContractChain) {
  for (const Problem& p : problems()) {
    const Data data(p);
    const std::vector<float> y = data.run(GetParam());
    for (int64_t m = 0; m < p.rows; ++m) {
      for (int64_t n = 0; n < data.y_stride; ++n) {
        const float got = y[static_cast<size_t>(m * data.y_stride + n)];
        if (n >= p.outputs) {
          ASSERT_EQ(got, Data::kCanary) << "wrote behind the row";
          continue;
        }
        double exact = 0, magnitude = 0;
        float chain = 0;
        for (int64_t k = 0; k < p.inputs; ++k) {
          const float a = data.x[static_cast<size_t>(m * data.x_stride + k)];
          const float b = data.w[static_cast<size_t>(n * p.inputs + k)];
          exact += static_cast<double>(a) * static_cast<double>(b);
          magnitude += std::fabs(static_cast<double>(a) * static_cast<double>(b));
          chain = std::fmaf(a, b, chain);
        }
        if (p.bias) {
          exact += static_cast<double>(data.bias[static_cast<size_t>(n)]);
          magnitude += std::fabs(static_cast<double>(data.bias[static_cast<size_t>(n)]));
          chain += data.bias[static_cast<size_t>(n)];
        }
        ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(chain))
            << p.rows << "x" << p.outputs << "x" << p.inputs << " at " << m << "," << n;
        const double bound = static_cast<double>(p.inputs + 2) * 0x1p-24 * 1.001 * magnitude;
        ASSERT_LE(std::fabs(static_cast<double>(got) - exact), bound);
      }
    }
  }
}

// Rows alone, any split of the panels over calls: the same bits as all at once.
TEST_P(MatmulTest, RowsAndPanelsDoNotInfluenceEachOther) {
  const Kernels& kernels = kernels_for(GetParam());
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBf16}) {
    const Data data({33, 200, 515, dtype, true}, 77);
    const std::vector<float> whole = data.run(GetParam());
    for (const int64_t rows : {1, 2, 5, 6, 7, 12, 13}) {
      std::vector<float> y(whole.size(), Data::kCanary);
      for (int64_t first = 0; first < data.problem.rows; first += rows) {
        MatmulArgs args = data.args(y);
        args.rows = std::min(rows, data.problem.rows - first);
        args.x += first * args.x_stride;
        args.y += first * args.y_stride;
        for (int64_t panel = 0; panel < data.packed.matrix.panels(); panel += 3) {
          kernels.matmul(args, panel, std::min(panel + 3, data.packed.matrix.panels()));
        }
      }
      EXPECT_EQ(first_difference(whole, y), -1) << rows;
    }
  }
}

TEST(Matmul, ThreadsShareThePanels) {
  const Data data({9, 1000, 130, Dtype::kBf16, true});
  const Isa isa = supported_isas().back();
  const std::vector<float> expected = data.run(isa);
  ThreadPool pool(4);
  for (int64_t grain = 1; grain <= 40; grain += 13) {
    std::vector<float> y(expected.size(), Data::kCanary);
    const MatmulArgs args = data.args(y);
    pool.run(data.packed.matrix.panels(), grain,
             [&](int64_t begin, int64_t end) { kernels_for(isa).matmul(args, begin, end); });
    EXPECT_EQ(first_difference(expected, y), -1) << grain;
  }
}

TEST(PackedMatrix, ReadRowGivesBackWhatWasPacked) {
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBf16}) {
    for (const int64_t outputs : {1, 16, 17, 33, 100}) {
      for (const int64_t inputs : {1, 2, 7, 64}) {
        const std::vector<float> rows = random_floats(outputs * inputs, 5);
        const OwnedMatrix owned(dtype, outputs, inputs, rows);
        std::vector<float> row(static_cast<size_t>(inputs));
        for (int64_t n = 0; n < outputs; ++n) {
          owned.matrix.read_row(n, row.data());
          for (int64_t k = 0; k < inputs; ++k) {
            const float value = rows[static_cast<size_t>(n * inputs + k)];
            const float expected = dtype == Dtype::kF32 ? value : quant::round_to_bf16(value);
            ASSERT_EQ(row[static_cast<size_t>(k)], expected);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace prony::kernels
