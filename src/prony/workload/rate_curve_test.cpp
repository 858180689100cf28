// RateCurve against its definition (integral and inverse), and arrivals by time rescaling: rescaled
// gaps must follow the law of rate 1, whatever the curve.
#include "prony/workload/rate_curve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "prony/stats/gamma_law.hpp"
#include "prony/stats/kolmogorov.hpp"
#include "prony/workload/arrivals.hpp"

namespace prony::workload {
namespace {

using ::testing::HasSubstr;

std::vector<RateCurve> curves() {
  return {RateCurve::on_off(20, "5s,15s").value(),
          RateCurve::on_off(20, "500ms,0s").value(),
          RateCurve::stages("4@60s,0@30s,8-16@1m,2@10").value(),
          RateCurve::diurnal(10, "100s,0.8").value(),
          RateCurve::diurnal(10, "100,1").value(),
          RateCurve::ramp(1, 40, 50, "linear").value(),
          RateCurve::ramp(40, 1, 50, "linear").value(),
          RateCurve::ramp(1, 40, 50, "exponential").value(),
          RateCurve::ramp(0, 40, 50, "linear").value()};
}

TEST(RateCurve, ExpectedIsTheIntegralOfTheRate) {
  for (const auto& curve : curves()) {
    const double until = curve.repeats() ? 2.3 * curve.duration_s() : curve.duration_s();
    constexpr int kSteps = 200'000;
    double sum = 0;
    for (int i = 0; i < kSteps; ++i) {
      sum += curve.rate((i + 0.5) * until / kSteps) * until / kSteps;
      if (i % 20'000 != 19'999) continue;
      EXPECT_NEAR(curve.expected((i + 1) * until / kSteps), sum, 1e-3 * (1 + sum))
          << curve.describe();
    }
    if (!curve.repeats()) {
      EXPECT_EQ(curve.expected(1e6), curve.expected(until));
      EXPECT_TRUE(std::isinf(curve.instant(curve.expected(until) * 1.0001)));
    }
    EXPECT_NEAR(curve.mean_per_s() * curve.duration_s(), curve.expected(curve.duration_s()), 1e-9);
  }
}

TEST(RateCurve, InstantInvertsExpectedAndNeverFallsIntoAPause) {
  for (const auto& curve : curves()) {
    const double total = curve.mean_per_s() * curve.duration_s() * (curve.repeats() ? 3 : 1);
    double before = 0;
    for (int i = 1; i <= 3000; ++i) {
      const double events = total * i / 3000 * (1 - 1e-12);
      const double t = curve.instant(events);
      ASSERT_GE(t, before) << curve.describe();
      ASSERT_NEAR(curve.expected(t), events, 1e-7 * total) << curve.describe();
      before = t;
    }
  }
  // The hundredth event of 20/s for 5 s ends its burst; it does not wait for the next.
  EXPECT_NEAR(RateCurve::on_off(20, "5s,15s").value().instant(100), 5, 1e-9);
  EXPECT_NEAR(RateCurve::on_off(20, "5s,15s").value().instant(101), 20.05, 1e-9);
}

TEST(RateCurve, CosineIsTheLibrarysToTheLastDigits) {
  for (int i = -400; i <= 400; ++i) {
    const double turns = i / 173.0;
    EXPECT_NEAR(cos_turns(turns), std::cos(turns * 2 * std::acos(-1.0)), 4e-15) << turns;
  }
}

TEST(RateCurve, DiurnalBeginsInTheValleyAndKeepsItsMean) {
  const auto day = RateCurve::diurnal(10, "24h,0.6").value();
  EXPECT_EQ(day.duration_s(), 86'400);
  EXPECT_NEAR(day.rate(0), 4, 1e-9);
  EXPECT_NEAR(day.rate(43'200), 16, 1e-9);
  EXPECT_NEAR(day.mean_per_s(), 10, 1e-9);
}

TEST(RateCurve, BadTextsNameTheirFlag) {
  const auto stages = [](const char* text) { return RateCurve::stages(text).error().message; };
  for (const char* bad : {"", "4", "4@", "@60s", "4@60s,", "x@60s", "-4@60s", "4@-60s", "4@0s",
                          "4@60d", "nan@6s", "inf@6s", "4-@6s", "4@1e999s", ",4@6s"}) {
    EXPECT_THAT(stages(bad), HasSubstr("--stages: found '" + std::string(bad))) << bad;
  }
  EXPECT_THAT(stages("0@60s"), HasSubstr("a rate above 0"));
  for (const char* bad : {"", "5s", "5s,", ",5s", "0s,5s", "5s,x", "5s,5s,5s"}) {
    EXPECT_THAT(RateCurve::on_off(4, bad).error().message, HasSubstr("--on-off: found")) << bad;
  }
  for (const char* bad : {"", "24h", "24h,2", "24h,-1", "0s,0.5", "24h,x"}) {
    EXPECT_THAT(RateCurve::diurnal(4, bad).error().message, HasSubstr("--diurnal: found")) << bad;
  }
  EXPECT_THAT(RateCurve::ramp(1, 2, 3, "cubic").error().message,
              HasSubstr("--ramp-up-strategy: found 'cubic'"));
  EXPECT_FALSE(RateCurve::ramp(0, 2, 3, "exponential").ok());
  EXPECT_FALSE(RateCurve::create({}, false, "x").ok());
}

// Kolmogorov-Smirnov on rescaled gaps: every curve with every law of gaps.
TEST(CurvedArrivals, RescaledGapsFollowTheLaw) {
  for (const auto& curve : curves()) {
    const auto shared = std::make_shared<const RateCurve>(curve);
    for (const double shape : {0.4, 1.0, 5.0}) {
      ArrivalOptions options;
      options.kind = shape == 1 ? ArrivalKind::kPoisson : ArrivalKind::kGamma;
      options.burstiness = shape;
      options.curve = shared;
      auto process = ArrivalProcess::create(options, core::Rng(3, 1)).value();
      std::vector<double> gaps;
      double before = 0;
      for (int i = 0; i < 4000; ++i) {
        const int64_t t_ns = process.next_ns();
        if (t_ns == ArrivalProcess::kNeverNs) break;
        const double now = curve.expected(static_cast<double>(t_ns) / 1e9);
        gaps.push_back(now - before);
        before = now;
      }
      ASSERT_GE(gaps.size(), 200u);
      std::sort(gaps.begin(), gaps.end());
      const auto ks =
          stats::ks_one_sample(gaps, [&](double x) { return stats::gamma_cdf(x * shape, shape); });
      EXPECT_GT(ks.p_value, 1e-3) << curve.describe() << " shape " << shape;
    }
  }
}

TEST(CurvedArrivals, ConstantGapsAreEvenInTheCurvesOwnTime) {
  ArrivalOptions options;
  options.kind = ArrivalKind::kConstant;
  options.curve = std::make_shared<const RateCurve>(RateCurve::stages("2@2s,10@1s").value());
  auto process = ArrivalProcess::create(options, core::Rng(1)).value();
  std::vector<int64_t> ms;
  for (int64_t t = process.next_ns(); t != ArrivalProcess::kNeverNs; t = process.next_ns()) {
    ms.push_back((t + 500'000) / 1'000'000);
  }
  EXPECT_THAT(ms, ::testing::ElementsAre(500, 1000, 1500, 2000, 2100, 2200, 2300, 2400, 2500, 2600,
                                         2700, 2800, 2900, 3000));
}

TEST(RampedArrivals, RateGoesByTheNumberOfTheRequestAsInVllm) {
  for (const bool exponential : {false, true}) {
    ArrivalOptions options;
    options.kind = ArrivalKind::kConstant;
    options.ramp = IndexRamp{1, 16, exponential, 5};
    auto process = ArrivalProcess::create(options, core::Rng(1)).value();
    const double linear[] = {1, 4.75, 8.5, 12.25, 16}, doubling[] = {1, 2, 4, 8, 16};
    double t = 0;
    for (int i = 0; i < 5; ++i) {
      t += 1 / (exponential ? doubling : linear)[i];
      EXPECT_NEAR(static_cast<double>(process.next_ns()) / 1e9, t, 1e-8);
    }
  }
  ArrivalOptions options;
  options.ramp = IndexRamp{2, 50, false, 5000};
  auto process = ArrivalProcess::create(options, core::Rng(4, 1)).value();
  std::vector<double> gaps;
  double before = 0;
  for (int64_t i = 0; i < 5000; ++i) {
    const auto t = static_cast<double>(process.next_ns()) / 1e9;
    gaps.push_back((t - before) * options.ramp->rate(i));
    before = t;
  }
  std::sort(gaps.begin(), gaps.end());
  EXPECT_GT(stats::ks_one_sample(gaps, [](double x) { return stats::gamma_cdf(x, 1); }).p_value,
            1e-3);
  options.ramp->start_per_s = 0;
  EXPECT_FALSE(ArrivalProcess::create(options, core::Rng(1)).ok());
}

TEST(ParseSeconds, UnitsAndRefusals) {
  EXPECT_EQ(parse_seconds("250ms", "-").value(), 0.25);
  EXPECT_EQ(parse_seconds("90", "-").value(), 90);
  EXPECT_EQ(parse_seconds("5m", "-").value(), 300);
  EXPECT_EQ(parse_seconds("24h", "-").value(), 86'400);
  for (const char* bad : {"", "s", "-1s", "1d", "1 s", "nan", "1e9h"}) {
    EXPECT_FALSE(parse_seconds(bad, "-").ok()) << bad;
  }
}

}  // namespace
}  // namespace prony::workload
