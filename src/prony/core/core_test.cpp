// Tests of core: results, clock, files, JSON, RNG known answers and moments, portable math.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "prony/core/clock.hpp"
#include "prony/core/file.hpp"
#include "prony/core/json.hpp"
#include "prony/core/math.hpp"
#include "prony/core/result.hpp"
#include "prony/core/rng.hpp"
#include "prony/core/system.hpp"
#include "prony/core/units.hpp"

namespace prony::core {
namespace {

std::string temporary_folder() {
  std::string path = ::testing::TempDir() + "prony_core_XXXXXX";
  PRONY_CHECK(::mkdtemp(path.data()) != nullptr);
  return path;
}

TEST(Result, HoldsValueOrError) {
  const Result<int> good = 3;
  EXPECT_EQ(good.value(), 3);
  const Result<int> bad = invalid_argument("--rate: found -1, expected > 0");
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
  EXPECT_DEATH(static_cast<void>(bad.value()), "found -1");
}

TEST(ManualClock, SleepAdvancesItself) {
  ManualClock clock(5);
  clock.sleep_until(100);
  EXPECT_EQ(clock.now_ns(), 100);
  clock.sleep_until(50);  // the past is no reason to go back
  EXPECT_EQ(clock.now_ns(), 100);
}

TEST(Clock, RealtimeConvertsToMonotonic) {
  const auto convert = RealtimeToMonotonic::measure();
  const Nanos before = monotonic_ns();
  const Nanos converted = realtime_ns() + convert.offset_ns;
  const Nanos after = monotonic_ns();
  EXPECT_GE(converted, before - convert.error_bound_ns - 1000);
  EXPECT_LE(converted, after + convert.error_bound_ns + 1000);
}

TEST(Clock, UtcText) {
  EXPECT_STREQ(utc_text(1700158543LL * kNanosPerSecond).text, "2023-11-16T18:15:43Z");
}

TEST(File, AtomicWriteLeavesNothingBehindWhenAbandoned) {
  const auto folder = temporary_folder();
  {
    auto file = AtomicFile::create(folder + "/abandoned");
    ASSERT_TRUE(file.ok());
    file->append("half");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  ASSERT_TRUE(write_file_atomic(folder + "/kept", "whole").ok());
  EXPECT_EQ(read_file(folder + "/kept").value(), "whole");
  EXPECT_EQ(read_file(folder + "/none").error().message,
            "cannot read " + folder + "/none: No such file or directory");
  std::filesystem::remove_all(folder);
}

TEST(Json, RefusesNotFinite) {
  Json json;
  json["metrics"]["ttft_ms"]["p50"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(write_json(json).error().message, "json: /metrics/ttft_ms/p50 is not a finite number");
  EXPECT_THAT(parse_json("{\"a\":", "x.json").error().message,
              ::testing::StartsWith("x.json: not JSON at byte 6"));
  EXPECT_THAT(parse_json("[1e999]", "x.json").error().message,
              ::testing::HasSubstr("number overflow"));
}

// Known answers of Random123 1.09's kat_vectors for philox4x32 10.
TEST(Philox, KnownAnswers) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

struct Moments {
  double mean, variance;
};
template <class Draw>
Moments moments(int n, Draw draw) {
  double mean = 0, square = 0;
  for (int i = 1; i <= n; ++i) {  // Welford
    const double x = draw(), delta = x - mean;
    mean += delta / i;
    square += delta * (x - mean);
  }
  return {mean, square / (n - 1)};
}

// Seeds are fixed, so these cannot flake; bounds are 5 standard errors.
TEST(Rng, MomentsOfSamplers) {
  constexpr int kDraws = 200'000;
  Rng rng(42, 7);
  const auto uniform = moments(kDraws, [&] { return rng.uniform(); });
  EXPECT_NEAR(uniform.mean, 0.5, 5 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(uniform.variance, 1.0 / 12, 0.001);
  const auto normal = moments(kDraws, [&] { return rng.normal(); });
  EXPECT_NEAR(normal.mean, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(normal.variance, 1, 5 * std::sqrt(2.0 / kDraws));
  const auto exponential = moments(kDraws, [&] { return rng.exponential(); });
  EXPECT_NEAR(exponential.mean, 1, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(exponential.variance, 1, 5 * std::sqrt(8.0 / kDraws));
  for (const double shape : {0.1, 0.5, 1.0, 4.0, 50.0}) {
    const auto gamma = moments(kDraws, [&] { return rng.gamma(shape); });
    EXPECT_NEAR(gamma.mean, shape, 5 * std::sqrt(shape / kDraws)) << shape;
    EXPECT_NEAR(gamma.variance, shape, 5 * std::sqrt((2 + 6 / shape) / kDraws) * shape) << shape;
  }
}

TEST(Rng, StreamsDifferAndRepeat) {
  Rng a(1, 0), b(1, 1), c(1, 0);
  const auto first = a.next_u64();
  EXPECT_NE(first, b.next_u64());
  EXPECT_EQ(first, c.next_u64());
}

TEST(Rng, BelowIsUniform) {
  Rng rng(3);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts[rng.below(7)];
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - 10'000.0) * (count - 10'000.0) / 10'000;
  EXPECT_LT(chi_square, 27.9);  // p = 1e-4 with 6 degrees of freedom
}

TEST(Math, AgreesWithLibm) {
  Rng rng(5);
  for (int i = 0; i < 100'000; ++i) {
    const double x = std::exp(1400 * (rng.uniform() - 0.5));
    ASSERT_NEAR(math::log(x), std::log(x), 1e-15 * std::fabs(std::log(x)) + 1e-18) << x;
    const double y = 1400 * (rng.uniform() - 0.5);
    ASSERT_NEAR(math::exp(y) / std::exp(y), 1, 1e-15) << y;
    const double base = 10 * rng.uniform_open(), power = 6 * (rng.uniform() - 0.5);
    ASSERT_NEAR(math::pow(base, power) / std::pow(base, power), 1, 1e-14) << base << " " << power;
    const double z = 14 * (rng.uniform() - 0.5);
    ASSERT_NEAR(math::erf(z), std::erf(z), 2e-15) << z;
    const double g = 50 * rng.uniform_open();
    ASSERT_NEAR(math::log_gamma(g), std::lgamma(g), 1e-13 * std::fabs(std::lgamma(g)) + 2e-14) << g;
  }
  EXPECT_EQ(math::log(0), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(math::log(-1)));
  EXPECT_EQ(math::exp(1000), std::numeric_limits<double>::infinity());
  EXPECT_EQ(math::exp(-1000), 0);
  EXPECT_EQ(math::exp(0), 1);
  EXPECT_EQ(math::pow(0, 0), 1);
}

TEST(Math, InverseNormalInvertsTheNormal) {
  for (double p = 1e-12; p < 1; p += 1.0 / 1024) {
    ASSERT_NEAR(normal_cdf(inverse_normal_cdf(p)), p, 2e-15);
  }
  EXPECT_NEAR(inverse_normal_cdf(0.975), 1.959963984540054, 1e-14);
}

// Bits, not values: equal seeds must give equal schedules on every machine.
TEST(Math, BitsAreFixed) {
  EXPECT_EQ(math::log(3.0), 0x1.193ea7aad030ap+0);
  EXPECT_EQ(math::exp(1.5), 0x1.1ed3fe64fc541p+2);
  EXPECT_EQ(Rng(2026, 11).gamma(0.5), Rng(2026, 11).gamma(0.5));
}

TEST(System, OpenFilesNamesBothNumbers) {
  EXPECT_TRUE(ensure_open_files(64).ok());
  EXPECT_FALSE(allowed_cores().empty());
}

TEST(Units, TimeIsWorkOverRate) {
  EXPECT_DOUBLE_EQ((Flops{2e12} / FlopsPerSecond{1e12}).value, 2.0);
}

}  // namespace
}  // namespace prony::core
