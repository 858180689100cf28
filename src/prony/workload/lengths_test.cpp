// Tests of length laws: distance to the law by Kolmogorov-Smirnov on the integers, moments, ranges
// and the flag grammar. Seeds are fixed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "prony/core/math.hpp"
#include "prony/workload/lengths.hpp"

namespace prony::workload {
namespace {

using ::testing::HasSubstr;

std::vector<int32_t> draw(const LengthLaw& law, int count, uint64_t seed = 1) {
  core::Rng rng(seed, 2);
  std::vector<int32_t> values;
  for (int i = 0; i < count; ++i) values.push_back(law.sample(rng));
  return values;
}

// sqrt(n) times the largest distance between the empirical distribution and `cdf`, taken at the
// integers, where a rounded law is compared with the continuous one at k + 1/2. 1.95 is exceeded
// once in a thousand right samples.
double ks_on_integers(std::vector<int32_t> values, const std::function<double(double)>& cdf) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double distance = 0;
  for (int32_t k = values.front() - 1; k <= values.back(); ++k) {
    const auto below = std::upper_bound(values.begin(), values.end(), k) - values.begin();
    distance = std::max(distance, std::abs(static_cast<double>(below) / n - cdf(k + 0.5)));
  }
  return std::sqrt(n) * distance;
}

TEST(LengthLaw, ConstantIsConstant) {
  for (const int32_t value : draw(*LengthLaw::constant(77), 100)) EXPECT_EQ(value, 77);
}

TEST(LengthLaw, UniformTakesEveryValueAlike) {
  const auto values = draw(*LengthLaw::uniform(5, 14), 100'000);
  std::map<int32_t, int> counts;
  for (const int32_t value : values) ++counts[value];
  ASSERT_EQ(counts.size(), 10u);
  EXPECT_EQ(counts.begin()->first, 5);
  EXPECT_EQ(counts.rbegin()->first, 14);
  double chi_squared = 0;
  for (const auto& [value, count] : counts) {
    chi_squared += (count - 10'000.0) * (count - 10'000.0) / 10'000.0;
  }
  EXPECT_LT(chi_squared, 27.88);  // 0.999 quantile for 9 degrees of freedom
  EXPECT_EQ(draw(*LengthLaw::uniform(3, 3), 3), (std::vector<int32_t>{3, 3, 3}));
}

TEST(LengthLaw, NormalMatchesItsLawAndMoments) {
  const auto law = LengthLaw::normal(1000, 120);
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const auto values = draw(*law, 20'000, seed);
    const auto cdf = [](double x) { return core::normal_cdf((x - 1000) / 120); };
    EXPECT_LT(ks_on_integers(values, cdf), 1.95) << seed;
    const auto wrong = [](double x) { return core::normal_cdf((x - 1010) / 120); };
    EXPECT_GT(ks_on_integers(values, wrong), 1.95) << seed;
    double sum = 0, squares = 0;
    for (const int32_t value : values) {
      sum += value;
      squares += (value - 1000.0) * (value - 1000.0);
    }
    EXPECT_NEAR(sum / 20'000, 1000, 4 * 120 / std::sqrt(20'000));
    EXPECT_NEAR(std::sqrt(squares / 20'000), 120, 4 * 120 / std::sqrt(40'000));
  }
}

TEST(LengthLaw, NormalBelowOneBecomesOne) {
  const auto values = draw(*LengthLaw::normal(2, 10), 10'000);
  EXPECT_EQ(*std::min_element(values.begin(), values.end()), 1);
  const auto ones = std::count(values.begin(), values.end(), 1);
  EXPECT_NEAR(static_cast<double>(ones) / 10'000, core::normal_cdf(-0.05), 0.02);
}

TEST(LengthLaw, LognormalMatchesItsLaw) {
  const auto law = LengthLaw::lognormal(500, 0.8);
  const auto values = draw(*law, 20'000);
  const auto cdf = [](double x) { return core::normal_cdf(std::log(x / 500) / 0.8); };
  EXPECT_LT(ks_on_integers(values, cdf), 1.95);
  double sum = 0;
  for (const int32_t value : values) sum += value;
  // mean = median * exp(sigma^2 / 2); sd of the mean from the law's own variance.
  const double mean = 500 * std::exp(0.32);
  EXPECT_NEAR(sum / 20'000, mean, 4 * mean * std::sqrt(std::exp(0.64) - 1) / std::sqrt(20'000));
}

TEST(LengthLaw, EmpiricalGivesBackItsSample) {
  const std::vector<int32_t> source{10, 10, 10, 20, 500};
  const auto values = draw(*LengthLaw::empirical(source, "column"), 50'000);
  std::map<int32_t, int> counts;
  for (const int32_t value : values) ++counts[value];
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_NEAR(counts[10] / 50'000.0, 0.6, 0.01);
  EXPECT_NEAR(counts[20] / 50'000.0, 0.2, 0.01);
  EXPECT_NEAR(counts[500] / 50'000.0, 0.2, 0.01);
}

TEST(LengthLaw, RandomRangeIsVllms) {
  const auto described = [](int32_t tokens, double ratio) {
    return LengthLaw::random_range(tokens, ratio)->describe();
  };
  EXPECT_EQ(described(1024, 0), "uniform:1024,1024");
  EXPECT_EQ(described(1024, 0.5), "uniform:512,1536");
  EXPECT_EQ(described(128, 0.1), "uniform:115,141");  // floor(115.2), ceil(140.8)
  EXPECT_EQ(described(1, 0.5), "uniform:1,2");        // floor(0.5) = 0 is lifted to 1
  EXPECT_FALSE(LengthLaw::random_range(10, 1).ok());
  EXPECT_FALSE(LengthLaw::random_range(10, -0.1).ok());
  EXPECT_FALSE(LengthLaw::random_range(0, 0).ok());
  EXPECT_THAT(LengthLaw::random_range(10, 2).error().message, HasSubstr("--random-range-ratio"));
}

TEST(LengthLaw, TheKthDrawDependsOnKAlone) {
  // One uniform number a draw: a constant number of draws leaves all streams at one place.
  const auto laws = {LengthLaw::uniform(1, 9), LengthLaw::normal(10, 5),
                     LengthLaw::lognormal(10, 1), LengthLaw::empirical({1, 2, 3}, "x")};
  for (const auto& law : laws) {
    core::Rng used(4, 4), reference(4, 4);
    for (int i = 0; i < 100; ++i) {
      static_cast<void>(law->sample(used));
      static_cast<void>(reference.uniform());
    }
    EXPECT_EQ(used.next_u64(), reference.next_u64()) << law->describe();
  }
}

TEST(LengthLaw, ParseReadsWhatDescribeWrites) {
  for (const char* text : {"512", "uniform:100,1000", "normal:512,128.5", "lognormal:512,0.8"}) {
    const auto law = LengthLaw::parse(text, "--input-len");
    ASSERT_TRUE(law.ok()) << text;
    EXPECT_EQ(law->describe(), text);
  }
  EXPECT_EQ(LengthLaw::empirical({1}, "trace x")->describe(), "empirical:trace x");
}

TEST(LengthLaw, ParseNamesTheFlag) {
  for (const char* bad :
       {"", "x", "12x", "1.5", "uniform", "uniform:", "uniform:1", "uniform:1,2,3", "uniform:1.5,2",
        "normal:a,b", "zipf:1", ":1,2", "normal:1,"}) {
    const auto law = LengthLaw::parse(bad, "--input-len");
    ASSERT_FALSE(law.ok()) << bad;
    EXPECT_EQ(law.error().message,
              "--input-len: found '" + std::string(bad) +
                  "', expected N, uniform:LOW,HIGH, normal:MEAN,SD, "
                  "lognormal:MEDIAN,SIGMA, zipf:EXPONENT,MOST or a mixture like 0.7*512+0.3*4096");
  }
  EXPECT_EQ(LengthLaw::parse("0", "--output-len").error().message,
            "--output-len: length: found 0, expected 1 to 100000000 tokens");
  EXPECT_EQ(LengthLaw::parse("uniform:9,3", "--output-len").error().message,
            "--output-len: uniform length: found 9 to 3, expected the low end first");
}

TEST(LengthLaw, NumbersOutOfRangeAreRefused) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(LengthLaw::constant(-1).ok());
  EXPECT_FALSE(LengthLaw::constant(kTokensMax + 1).ok());
  EXPECT_TRUE(LengthLaw::constant(kTokensMax).ok());
  EXPECT_FALSE(LengthLaw::uniform(0, 5).ok());
  EXPECT_FALSE(LengthLaw::normal(kNan, 1).ok());
  EXPECT_FALSE(LengthLaw::normal(10, -1).ok());
  EXPECT_FALSE(LengthLaw::normal(10, kInfinity).ok());
  EXPECT_FALSE(LengthLaw::lognormal(10, 11).ok());
  EXPECT_FALSE(LengthLaw::lognormal(10, kNan).ok());
  EXPECT_FALSE(LengthLaw::empirical({}, "x").ok());
  EXPECT_FALSE(LengthLaw::empirical({5, 0}, "x").ok());
  // The widest lognormal stays inside the type.
  for (const int32_t value : draw(*LengthLaw::lognormal(1e6, 10), 10'000)) {
    EXPECT_GE(value, 1);
    EXPECT_LE(value, kTokensMax);
  }
}

}  // namespace
}  // namespace prony::workload
