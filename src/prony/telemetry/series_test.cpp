// Tests of bounded series and of the periodic thread.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "prony/telemetry/periodic.hpp"
#include "prony/telemetry/series.hpp"

namespace prony::telemetry {
namespace {

TEST(Series, KeepsEverySampleWhileItIsShort) {
  Series series("a", "W", "here");
  for (int i = 0; i < 1500; ++i) series.add(1000 * i, i);
  series.add(1'600'000, std::nan(""));
  const auto json = series.to_json();
  ASSERT_EQ(json["values"].size(), 1500U);
  EXPECT_EQ(json["t_ns"][7], 7000);
  EXPECT_EQ(json["values"][7], 7);
  EXPECT_EQ(json["n"], 1500);
  EXPECT_EQ(json["name"], "a");
  EXPECT_EQ(json["unit"], "W");
  EXPECT_EQ(json["source"], "here");
}

// However long, the points stay within bounds and the statistics are those of all samples.
TEST(Series, LongOnesAreThinnedByMeans) {
  for (const int n : {2000, 2001, 3999, 4000, 12345, 100'000}) {
    Series series("a", "", "");
    double sum = 0;
    for (int i = 0; i < n; ++i) {
      const double value = i == n / 2 ? 1000 : i % 7;
      sum += value;
      series.add(int64_t{10} * i, value);
    }
    const auto json = series.to_json();
    ASSERT_LE(json["values"].size(), Series::kPointsMax + 1) << n;
    ASSERT_GE(json["values"].size(), Series::kPointsMax / 2) << n;
    ASSERT_EQ(json["t_ns"].size(), json["values"].size());
    EXPECT_EQ(json["n"], n);
    EXPECT_EQ(json["max"], 1000);  // the peak survives the thinning
    EXPECT_EQ(json["min"], 0);
    EXPECT_NEAR(json["mean"].get<double>(), sum / n, 1e-9);
    int64_t last = -1;
    for (const auto& t : json["t_ns"]) {
      EXPECT_GT(t.get<int64_t>(), last);
      last = t;
    }
    EXPECT_LE(last, int64_t{10} * (n - 1));
  }
}

TEST(Periodic, RunsAtItsIntervalUntilStopped) {
  std::atomic<int> calls{0};
  Periodic periodic("test", core::kNanosPerMilli, [&] { ++calls; });
  const auto deadline = core::monotonic_ns() + 5 * core::kNanosPerSecond;
  while (calls < 5 && core::monotonic_ns() < deadline) {
  }
  periodic.stop();
  const int seen = calls;
  EXPECT_GE(seen, 5);
  core::MonotonicClock().sleep_until(core::monotonic_ns() + 10 * core::kNanosPerMilli);
  EXPECT_EQ(calls, seen);
}

TEST(Periodic, StopsAtOnceInALongInterval) {
  const auto begin = core::monotonic_ns();
  {
    const Periodic periodic("test", 3600 * core::kNanosPerSecond, [] { FAIL(); });
  }
  EXPECT_LT(core::monotonic_ns() - begin, 5 * core::kNanosPerSecond);
}

}  // namespace
}  // namespace prony::telemetry
