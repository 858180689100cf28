// --until-ci: its grammar, and how often the interval at the stop holds the truth. The run itself
// is tested in bench_test.cpp and tests/e2e/bench_statistics.test.mjs.
#include "prony/load/until_ci.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/core/math.hpp"
#include "prony/core/rng.hpp"

namespace prony::load {
namespace {

using core::SloMetric;
using core::SloStatistic;
using ::testing::HasSubstr;

TEST(UntilCi, ReadsItsGrammar) {
  EXPECT_EQ(parse_until_ci("2%").value(), (UntilCi{SloMetric::kTtft, SloStatistic::kP50, 0.02}));
  EXPECT_EQ(parse_until_ci("0.05").value().half_width, 0.05);
  EXPECT_EQ(parse_until_ci("ttft_p99=2%").value(),
            (UntilCi{SloMetric::kTtft, SloStatistic::kP99, 0.02}));
  EXPECT_EQ(parse_until_ci("e2e_intended_p9999=10%").value().statistic, SloStatistic::kP9999);
  EXPECT_EQ(parse_until_ci("output_throughput=1%").value(),
            (UntilCi{SloMetric::kOutputThroughput, SloStatistic::kNone, 0.01}));
  EXPECT_EQ(until_ci_metric(parse_until_ci("tpot_mean=1%").value()), "tpot_mean");
  for (const char* bad : {"", "x", "2%%", "-1%", "0", "200%", "ttft=2%", "ttft_p42=2%",
                          "itl_p50=2%", "ttft_p50=", "nan", "ttft_max=2%"}) {
    const auto parsed = parse_until_ci(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_THAT(parsed.error().message, HasSubstr(std::string("--until-ci: found '") + bad + "'"));
  }
}

record::RequestRow ended(core::Nanos at, double ttft_ms, int32_t tokens = 10) {
  record::RequestRow row;
  row.status = record::Status::kOk;
  row.t_intended_ns = row.t_send_ns.emplace(at);
  row.t_first_token_ns = at + static_cast<core::Nanos>(ttft_ms * 1e6);
  row.t_last_token_ns = *row.t_first_token_ns + 1000;
  row.output_tokens = tokens;
  return row;
}

// Feeds one request at a time, looking after each, until enough or `limit`.
template <class Next>
PrecisionWatch::Outcome run(const UntilCi& goal, int64_t limit, Next next) {
  PrecisionWatch watch(goal);
  for (int64_t i = 0; i < limit; ++i) {
    watch.add(next(i));
    if (watch.enough()) break;
  }
  watch.look();
  return watch.outcome();
}

TEST(UntilCi, StopsAtTheWidthAskedAndHoldsTheTruth) {
  const auto goal = parse_until_ci("ttft_p50=5%").value();
  const double truth = 100 * core::math::log(2);
  int hit = 0;
  int64_t looks = 0;
  constexpr int kRounds = 400;
  for (uint64_t round = 0; round < kRounds; ++round) {
    core::Rng rng(round, 21);
    const auto outcome = run(
        goal, 1'000'000, [&](int64_t i) { return ended(i * 1'000'000, 100 * rng.exponential()); });
    ASSERT_TRUE(outcome.reached);
    ASSERT_LE(*outcome.half_width, 0.05);
    ASSERT_EQ(outcome.n % 64, 0);  // 64, 128, 256, ...
    hit += outcome.interval->lower <= truth && truth <= outcome.interval->upper;
    looks += outcome.looks;
  }
  EXPECT_GT(hit, 0.90 * kRounds);
  EXPECT_GT(looks, 5 * kRounds);
}

TEST(UntilCi, WaitsForTheSamplesOfAPercentile) {
  core::Rng rng(3);
  const auto goal = parse_until_ci("ttft_p99=90%").value();
  const auto outcome =
      run(goal, 5000, [&](int64_t i) { return ended(i * 1000, 50 + rng.uniform()); });
  EXPECT_TRUE(outcome.reached);
  EXPECT_EQ(outcome.n, 1000);
  const auto few = run(goal, 999, [&](int64_t i) { return ended(i, 50 + rng.uniform()); });
  EXPECT_FALSE(few.reached);
  EXPECT_FALSE(few.half_width.has_value());
  EXPECT_EQ(few.n, 999);
}

TEST(UntilCi, MeansAndRates) {
  core::Rng rng(4);
  core::Nanos at = 0;
  const auto mean = run(parse_until_ci("ttft_mean=3%").value(), 100'000,
                        [&](int64_t i) { return ended(i * 1000, 100 * rng.exponential()); });
  EXPECT_TRUE(mean.reached);
  EXPECT_NEAR(*mean.value, 100, 10);
  // Ten requests a second of about 20 tokens.
  const auto next = [&](int64_t) {
    at += static_cast<core::Nanos>(rng.exponential() * 1e8);
    return ended(at, 1, static_cast<int32_t>(10 + rng.below(21)));
  };
  const auto requests = run(parse_until_ci("request_throughput=5%").value(), 100'000, next);
  EXPECT_TRUE(requests.reached);
  EXPECT_NEAR(*requests.value, 10, 1);
  const auto tokens = run(parse_until_ci("output_throughput=5%").value(), 100'000, next);
  EXPECT_NEAR(*tokens.value, 200, 20);
}

TEST(UntilCi, FailuresDoNotCountAndTheBoundIsSaid) {
  PrecisionWatch watch(parse_until_ci("1%").value());
  for (int i = 0; i < 100; ++i) {
    auto row = ended(i, 5);
    row.status = record::Status::kTruncated;
    watch.add(row);
  }
  EXPECT_FALSE(watch.enough());
  watch.look();
  EXPECT_EQ(watch.outcome().n, 0);
  EXPECT_THAT(watch.text(), HasSubstr("not reached, 0 completed requests give no interval"));
  EXPECT_EQ(watch.to_json()["reached"], false);
  EXPECT_EQ(watch.to_json()["ci95"], nullptr);
  for (int i = 0; i < 70; ++i) watch.add(ended(i, 5));
  EXPECT_TRUE(watch.enough());
  EXPECT_THAT(watch.text(), HasSubstr("ttft_p50 within 1 %: reached, 0 % after 70 completed"));
}

}  // namespace
}  // namespace prony::load
