// Elementwise kernels and norms against float64, and all instruction sets against each other.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "prony/kernels/kernels.hpp"
#include "prony/kernels/test_support.hpp"

namespace prony::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Distance in units of the last place of the exact value rounded to float.
double error_ulp(float got, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (got == rounded) return 0;
  const float next = std::nextafter(std::fabs(rounded), kInfinity);
  return std::fabs(static_cast<double>(got) - exact) /
         (static_cast<double>(next) - std::fabs(static_cast<double>(rounded)));
}

class ElementwiseTest : public testing::TestWithParam<Isa> {
 protected:
  const Kernels& kernels() const { return kernels_for(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Isas, ElementwiseTest, testing::ValuesIn(supported_isas()),
                         [](const auto& param) { return isa_test_name(param); });

TEST_P(ElementwiseTest, ExpIsWithinTwoUlp) {
  std::vector<float> x;
  for (double v = -104.5; v < 89; v += 1.0 / 512) x.push_back(static_cast<float>(v));
  for (const float v : random_floats(5000, 3)) x.push_back(v * 0.01f);
  std::vector<float> y(x.size());
  kernels().exp(x.data(), y.data(), static_cast<int64_t>(x.size()), 0, 1);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    if (exact < 0x1p-126) {  // gradual underflow: absolute error of one subnormal step
      ASSERT_LE(std::fabs(static_cast<double>(y[i]) - exact), 0x1p-149) << x[i];
    } else if (static_cast<float>(exact) == kInfinity) {
      ASSERT_EQ(y[i], kInfinity) << x[i];
    } else {
      worst = std::max(worst, error_ulp(y[i], exact));
    }
  }
  EXPECT_LE(worst, 2.0);
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST_P(ElementwiseTest, SoftcapIsACappedTanh) {
  std::vector<float> x;
  for (double v = -12; v < 12; v += 1.0 / 512) x.push_back(static_cast<float>(v));
  for (const float v : random_floats(5000, 4)) x.push_back(v * 0.01f);
  double worst = 0;
  for (const float cap : {1.0f, 50.0f}) {
    std::vector<float> y = x;
    kernels().softcap(y.data(), static_cast<int64_t>(y.size()), cap);
    for (size_t i = 0; i < x.size(); ++i) {
      const auto c = static_cast<double>(cap);
      worst = std::max(worst, error_ulp(y[i], c * std::tanh(static_cast<double>(x[i]) / c)));
    }
  }
  EXPECT_LE(worst, 4.0);
  std::vector<float> special = {kInfinity, -kInfinity, kNaN, 0, -0.0f};
  kernels().softcap(special.data(), 5, 30);
  EXPECT_EQ(special[0], 30.0f);
  EXPECT_EQ(special[1], -30.0f);
  EXPECT_TRUE(std::isnan(special[2]));
  EXPECT_EQ(special[3], 0.0f);
  EXPECT_EQ(special[4], 0.0f);
}

TEST_P(ElementwiseTest, GeluAndScaledSums) {
  const std::vector<float> gate = random_floats(1003, 8), up = random_floats(1003, 9);
  std::vector<float> y(gate.size()), sum = up;
  kernels().gelu_mul(gate.data(), up.data(), y.data(), 1003);
  kernels().add_scaled(sum.data(), gate.data(), 1003, 0.3f);
  const double root = std::sqrt(2 / std::acos(-1.0));
  for (size_t i = 0; i < gate.size(); ++i) {
    const auto a = static_cast<double>(gate[i]) * 1, u = static_cast<double>(up[i]);
    const double gelu = a / 2 * (1 + std::tanh(root * (a + 0.044715 * a * a * a)));
    // 1 + tanh cancels for a below 0: the error is one of a, not of the result.
    ASSERT_NEAR(static_cast<double>(y[i]), gelu * u, 5e-7 * std::fabs(a * u) + 1e-12);
    ASSERT_NEAR(static_cast<double>(sum[i]), u + static_cast<double>(0.3f) * a,
                3e-7 * (std::fabs(u) + std::fabs(a)));
  }
}

TEST_P(ElementwiseTest, ExpOfSpecialValues) {
  const std::vector<float> x = {0, -0.0f, kInfinity, -kInfinity, kNaN, 200, -200, 1e30f, -1e30f};
  std::vector<float> y(x.size());
  kernels().exp(x.data(), y.data(), static_cast<int64_t>(x.size()), 0, 1);
  const std::vector<float> expected = {1, 1, kInfinity, 0, kNaN, kInfinity, 0, kInfinity, 0};
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(y[i]));
    } else {
      EXPECT_EQ(y[i], expected[i]) << x[i];
    }
  }
}

TEST_P(ElementwiseTest, RmsNormMatchesFloat64) {
  for (const int64_t n : {1, 7, 15, 16, 17, 64, 100, 4096}) {
    const int64_t rows = 3, stride = n + 2;
    const std::vector<float> x = random_floats(rows * stride, 11);
    const std::vector<float> weight = random_floats(n, 12);
    std::vector<float> y(static_cast<size_t>(rows * stride), -7);
    kernels().rmsnorm({.x = x.data(),
                       .x_stride = stride,
                       .rows = rows,
                       .n = n,
                       .weight = weight.data(),
                       .epsilon = 1e-5f,
                       .y = y.data(),
                       .y_stride = stride});
    for (int64_t row = 0; row < rows; ++row) {
      double squares = 0;
      for (int64_t i = 0; i < n; ++i) {
        const auto v = static_cast<double>(x[static_cast<size_t>(row * stride + i)]);
        squares += v * v;
      }
      const double inverse = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5f);
      for (int64_t i = 0; i < stride; ++i) {
        const auto at = static_cast<size_t>(row * stride + i);
        if (i >= n) {
          ASSERT_EQ(y[at], -7);
          continue;
        }
        const double exact = static_cast<double>(x[at]) * inverse *
                             static_cast<double>(weight[static_cast<size_t>(i)]);
        // n / 16 + 4 roundings of the sum (halved by the root), five after it.
        const double bound = (static_cast<double>(n) / 32 + 7) * 0x1p-24 * std::fabs(exact);
        ASSERT_LE(std::fabs(static_cast<double>(y[at]) - exact), bound) << n << " " << i;
      }
    }
  }
}

TEST_P(ElementwiseTest, RmsNormRoundsBeforeTheWeightWhenAsked) {
  const int64_t n = 50;
  const std::vector<float> x = random_floats(n, 21), weight = random_floats(n, 22);
  const std::vector<float> ones(static_cast<size_t>(n), 1.0f);
  std::vector<float> plain(static_cast<size_t>(n)), rounded(plain);
  RmsNormArgs args{.x = x.data(),
                   .x_stride = n,
                   .rows = 1,
                   .n = n,
                   .weight = ones.data(),
                   .epsilon = 1e-6f,
                   .y = plain.data(),
                   .y_stride = n};
  kernels().rmsnorm(args);
  args.weight = weight.data();
  args.round_to_bf16_before_weight = true;
  args.y = rounded.data();
  kernels().rmsnorm(args);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(rounded[i], quant::round_to_bf16(plain[i]) * weight[i]);
  }
}

TEST_P(ElementwiseTest, SiluMulMatchesFloat64) {
  for (const int64_t n : {1, 16, 19, 333}) {
    std::vector<float> gate = random_floats(n, 31), up = random_floats(n, 32);
    for (float& value : gate) value *= 20;
    if (n > 3) gate[1] = 300, gate[2] = -300, gate[3] = 0;
    std::vector<float> y(static_cast<size_t>(n) + 1, 5);
    kernels().silu_mul(gate.data(), up.data(), y.data(), n);
    EXPECT_EQ(y.back(), 5);
    for (size_t i = 0; i < gate.size(); ++i) {
      const auto a = static_cast<double>(gate[i]);
      const double exact = a / (1 + std::exp(-a)) * static_cast<double>(up[i]);
      ASSERT_NEAR(static_cast<double>(y[i]), exact, 5 * 0x1p-24 * std::fabs(exact) + 1e-38) << a;
    }
  }
}

TEST_P(ElementwiseTest, RopeRotatesHalfSplitPairs) {
  for (const int64_t half : {1, 4, 10, 16, 32, 50}) {
    const std::vector<float> x = random_floats(2 * half, 41);
    std::vector<float> cosine(static_cast<size_t>(half)), sine(cosine), y(x);
    for (size_t i = 0; i < cosine.size(); ++i) {
      cosine[i] = static_cast<float>(std::cos(0.7 * static_cast<double>(i + 1)));
      sine[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i + 1)));
    }
    kernels().rope(y.data(), cosine.data(), sine.data(), half);
    for (size_t i = 0; i < cosine.size(); ++i) {
      const auto h = static_cast<size_t>(half);
      const double a = static_cast<double>(x[i]), b = static_cast<double>(x[i + h]);
      const double c = static_cast<double>(cosine[i]), s = static_cast<double>(sine[i]);
      const double bound = 0x1p-23 * (std::fabs(a) + std::fabs(b));
      ASSERT_NEAR(static_cast<double>(y[i]), a * c - b * s, bound);
      ASSERT_NEAR(static_cast<double>(y[i + h]), b * c + a * s, bound);
    }
  }
}

TEST_P(ElementwiseTest, AddAddsEveryElementOnce) {
  for (const int64_t n : {1, 15, 16, 17, 100}) {
    const std::vector<float> before = random_floats(n, 51), y = random_floats(n, 52);
    std::vector<float> x = before;
    kernels().add(x.data(), y.data(), n);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], before[i] + y[i]);
  }
}

TEST_P(ElementwiseTest, LargestTakesTheLowestIndexOfATie) {
  for (const int64_t n : {1, 5, 16, 17, 31, 100, 1000}) {
    std::vector<float> x = random_floats(n, 61);
    for (float& value : x) value = -std::fabs(value) - 1;  // negative: a zero lane must not win
    for (int64_t i = 0; i < n; i += 7) {
      std::vector<float> y = x;
      y[static_cast<size_t>(i)] = -0.5f;
      y[static_cast<size_t>(n - 1)] = -0.5f;
      const LargestResult got = kernels().largest(y.data(), n);
      EXPECT_TRUE(got.finite);
      EXPECT_EQ(got.index, i);
      EXPECT_EQ(got.value, -0.5f);
    }
  }
  EXPECT_EQ(kernels().largest(nullptr, 0).index, -1);
}

TEST_P(ElementwiseTest, LargestFindsEveryNonFiniteElement) {
  for (const float bad : {kNaN, kInfinity, -kInfinity}) {
    for (const int64_t n : {1, 3, 16, 40}) {
      for (int64_t i = 0; i < n; ++i) {
        std::vector<float> x = random_floats(n, 62);
        x[static_cast<size_t>(i)] = bad;
        const LargestResult got = kernels().largest(x.data(), n);
        ASSERT_FALSE(got.finite);
        ASSERT_EQ(got.index, -1);
      }
    }
  }
}

// The contract: equal bits in every instruction set, special values included.
TEST(Elementwise, EveryIsaGivesTheSameBits) {
  std::vector<float> x = random_floats(4099, 71), up = random_floats(4099, 72);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= std::ldexp(1.0f, static_cast<int>(i % 160) - 150);
  for (size_t i = 0; i < x.size(); i += 3) x[i] = up[i] * 60;
  x[4] = kInfinity, x[5] = -kInfinity, x[6] = -0.0f;
  std::vector<std::vector<float>> results;
  for (const Isa isa : supported_isas()) {
    const Kernels& kernels = kernels_for(isa);
    const auto n = static_cast<int64_t>(x.size());
    std::vector<float> all, y(x.size());
    kernels.exp(x.data(), y.data(), n, 0.3f, 1.7f);
    all.insert(all.end(), y.begin(), y.end());
    kernels.silu_mul(x.data(), up.data(), y.data(), n);
    all.insert(all.end(), y.begin(), y.end());
    kernels.gelu_mul(x.data(), up.data(), y.data(), n);
    all.insert(all.end(), y.begin(), y.end());
    y = x;
    kernels.softcap(y.data(), n, 7.5f);
    all.insert(all.end(), y.begin(), y.end());
    kernels.add_scaled(y.data(), up.data(), n, 0.77f);
    all.insert(all.end(), y.begin(), y.end());
    for (const bool round : {false, true}) {
      kernels.rmsnorm({.x = up.data(),
                       .x_stride = n,
                       .rows = 1,
                       .n = n,
                       .weight = up.data(),
                       .epsilon = 1e-5f,
                       .round_to_bf16_before_weight = round,
                       .y = y.data(),
                       .y_stride = n});
      all.insert(all.end(), y.begin(), y.end());
    }
    y = up;
    kernels.rope(y.data(), up.data() + 1, up.data() + 50, 1111);
    all.insert(all.end(), y.begin(), y.end());
    results.push_back(all);
  }
  for (const std::vector<float>& result : results) {
    EXPECT_EQ(first_difference(results.front(), result), -1);
  }
}

}  // namespace
}  // namespace prony::kernels
