// The shape of a run over time: against a second implementation over random rows, and on queues
// whose fate is known (a simulated single server below, near and above its capacity).
#include "prony/record/run_shape.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include <cmath>

#include "prony/record/random_rows.hpp"
#include "prony/record/steady_window.hpp"

namespace prony::record {
namespace {

using core::Nanos;

constexpr Nanos kMs = core::kNanosPerMilli;

RequestRow served(int64_t index, Nanos intended, Nanos first_token, Nanos last_token) {
  RequestRow row;
  row.index = index;
  row.status = Status::kOk;
  row.http_status = 200;
  row.t_intended_ns = intended;
  row.t_send_ns = row.t_sent_ns = intended;
  row.t_first_event_ns = row.t_first_token_ns = first_token;
  row.t_last_token_ns = row.t_done_ns = last_token;
  row.output_tokens = row.output_tokens_asked = 2;
  row.token_source = TokenSource::kUsage;
  row.events = {{first_token, first_token, 1}, {last_token, last_token, 1}};
  row.first_event_tokens = 1;
  row.tokens_per_event_exact = true;
  return row;
}

// One server, Poisson arrivals of `load` times its capacity of 10 requests/s.
std::vector<RequestRow> single_server(uint64_t seed, double load, int count) {
  core::Rng rng(seed, 3);
  std::vector<RequestRow> rows;
  double now_s = 0, free_s = 0;
  for (int i = 0; i < count; ++i) {
    now_s += rng.exponential() / (10 * load);
    const double begin_s = std::max(now_s, free_s);
    free_s = begin_s + rng.exponential() / 10;
    const auto ns = [](double s) { return static_cast<Nanos>(s * 1e9); };
    rows.push_back(served(i, ns(now_s), ns(begin_s) + 1, ns(free_s) + 2));
  }
  return rows;
}

int overloads(double load, int rounds) {
  int found = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto rows = single_server(static_cast<uint64_t>(round), load, 2000);
    found += summarize(rows, {}).overloaded.value();
  }
  return found;
}

// The counts stand in docs/metrics.md.
TEST(RunShape, OverloadIsFoundWhereItIsAndNotWhereItIsNot) {
  const int light = overloads(0.7, 200), busy = overloads(0.9, 200), over = overloads(1.2, 200);
  EXPECT_LE(light, 1);
  EXPECT_LE(busy, 6);
  EXPECT_EQ(over, 200);
}

TEST(RunShape, QueueGrowthIsArrivalsMinusService) {
  // 20 requests/s against a server of exactly 10/s: the queue grows by 10/s.
  std::vector<RequestRow> rows;
  for (int i = 0; i < 400; ++i) {
    rows.push_back(served(i, i * 50 * kMs, i * 100 * kMs + 50 * kMs, i * 100 * kMs + 100 * kMs));
  }
  const auto metrics = summarize(rows, {});
  EXPECT_NEAR(*metrics.queue_growth, 10, 0.5);
  EXPECT_EQ(metrics.overloaded, true);
  EXPECT_EQ(metrics.steady, false);
  // The same in a closed loop is no overload: its users wait.
  const auto closed = summarize(rows, {.open_loop = false});
  EXPECT_FALSE(closed.overloaded.has_value());
  EXPECT_FALSE(closed.queue_growth.has_value());
  rows.resize(99);
  EXPECT_FALSE(summarize(rows, {}).overloaded.has_value());
}

TEST(RunShape, TimeOutCascadeIsAnOverloadAndALongRunOfFailures) {
  // Every answer takes 100 ms until 10 s; from there on nothing comes and each waits 30 s.
  std::vector<RequestRow> rows;
  for (int i = 0; i < 400; ++i) {
    const Nanos at = i * 50 * kMs;
    auto row = served(i, at, at + 100 * kMs, at + 110 * kMs);
    if (i >= 200 || i == 17) {
      row.status = Status::kTimeoutTtft;
      row.events.clear();
      row.t_first_event_ns = row.t_first_token_ns = row.t_last_token_ns = row.t_done_ns = {};
      row.output_tokens.reset();
      row.t_close_ns = at + 30'000 * kMs;
    }
    rows.push_back(row);
  }
  const auto metrics = summarize(rows, {});
  EXPECT_EQ(metrics.overloaded, true);
  EXPECT_EQ(metrics.steady, true);  // those that were answered were answered in time
  ASSERT_TRUE(metrics.longest_failure_run.has_value());
  EXPECT_EQ(metrics.longest_failure_run->requests, 200);
  EXPECT_DOUBLE_EQ(metrics.longest_failure_run->begin_s, 10);
  EXPECT_DOUBLE_EQ(metrics.longest_failure_run->end_s, 19.95);
  EXPECT_THAT(metrics.longest_failure_run->errors,
              ::testing::ElementsAre(::testing::Pair("timeout_ttft", 200)));
  ASSERT_EQ(metrics.error_slices.size(), 32u);
  EXPECT_TRUE(metrics.error_slices[5].errors.empty());
  EXPECT_EQ(metrics.error_slices[20].errors.at("timeout_ttft"), metrics.error_slices[20].attempted);
  EXPECT_DOUBLE_EQ(metrics.error_slices.back().end_s, *metrics.window_s);
  // Half of the requests failed, but all together: the interval knows that it is one event.
  EXPECT_LT(metrics.ci95.error_rate->lower, 0.25);
  EXPECT_GT(metrics.ci95.error_rate->upper, 0.75);
}

TEST(RunShape, LittlesLawHoldsInALongRunAndNotInAShortOne) {
  // 20/s, each in flight for exactly 2 s: L = 40.
  const auto run = [](int count) {
    std::vector<RequestRow> rows;
    for (int i = 0; i < count; ++i) {
      rows.push_back(served(i, i * 50 * kMs, i * 50 * kMs + 500 * kMs, (i * 50 + 2000) * kMs));
    }
    return summarize(rows, {}).little.value();
  };
  const auto long_run = run(10'001);  // 500 s
  EXPECT_NEAR(long_run.rate, 20, 0.01);
  EXPECT_NEAR(long_run.residence_s, 2, 1e-9);
  EXPECT_NEAR(long_run.in_flight, 40, 0.1);
  EXPECT_LT(std::fabs(long_run.discrepancy), 0.005);
  // 4 s of window: half of it the system filled. In flight mean 30, lambda W 40.
  const auto short_run = run(81);
  EXPECT_NEAR(short_run.in_flight, 30, 0.5);
  EXPECT_NEAR(short_run.discrepancy, 0.34, 0.03);
  EXPECT_FALSE(summarize(std::span<const RequestRow>(), {}).little.has_value());
}

TEST(SteadyWindow, WarmUpIsReportedAndOnlyCutWhenAsked) {
  // 60 slow answers, then 440 that scatter around 100 ms.
  core::Rng rng(4);
  std::vector<RequestRow> rows;
  for (int i = 0; i < 500; ++i) {
    const Nanos at = i * 50 * kMs;
    const auto noise = static_cast<Nanos>(rng.normal() * 5e6);
    const Nanos wait = (i < 60 ? 300 * kMs : 100 * kMs) + noise;
    rows.push_back(served(i, at, at + wait, at + wait + 50 * kMs));
  }
  const auto kept = summarize(rows, {});
  ASSERT_TRUE(kept.warm_up.has_value());
  EXPECT_EQ(kept.warm_up->judged, "ttft_intended_ms");
  EXPECT_EQ(kept.warm_up->requests, 60);
  EXPECT_DOUBLE_EQ(kept.warm_up->seconds, 3);
  EXPECT_NEAR(kept.warm_up->change, 2, 0.05);
  EXPECT_FALSE(kept.warm_up->trimmed);
  EXPECT_EQ(kept.attempted, 500);
  EXPECT_EQ(kept.window_rule, "arrivals");

  const SummaryOptions trimming{.steady_part_only = true};
  const auto cut = summarize(rows, trimming);
  EXPECT_TRUE(cut.warm_up->trimmed);
  EXPECT_EQ(cut.attempted, 440);
  EXPECT_EQ(cut.window_rule, "steady");
  EXPECT_NEAR(*cut.ttft_ms.max, 100, 30);
  EXPECT_EQ(measurement_window(RowSpan(rows), trimming).begin_ns, 3000 * kMs);
  // A given window is the user's word.
  SummaryOptions given = trimming;
  given.window_begin_ns = 1000 * kMs;
  EXPECT_FALSE(summarize(rows, given).warm_up->trimmed);
}

TEST(SteadyWindow, ClosedLoopLosesItsTail) {
  // Two users, equal answers of 1 s; the second user's last answer hangs for 60 s.
  std::vector<RequestRow> rows;
  for (int i = 0; i < 200; ++i) {
    const Nanos at = (i / 2) * 1000 * kMs;
    rows.push_back(served(i, at, at + 100 * kMs, at + 1000 * kMs));
  }
  rows.back().t_last_token_ns = rows.back().t_done_ns = 160'000 * kMs;
  rows.back().events.back() = {160'000 * kMs, 160'000 * kMs, 1};
  const auto whole = summarize(rows, {.open_loop = false});
  EXPECT_DOUBLE_EQ(*whole.window_s, 160);
  const auto steady = summarize(rows, {.open_loop = false, .steady_part_only = true});
  EXPECT_DOUBLE_EQ(*steady.window_s, 99);
  EXPECT_EQ(steady.window_rule, "steady");
  EXPECT_NEAR(*steady.concurrency_mean, 2, 1e-9);
  EXPECT_EQ(steady.attempted, 200);
  EXPECT_FALSE(steady.warm_up->trimmed);
}

TEST(SteadyWindow, NoiseHasNoWarmUp) {
  int found = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    core::Rng rng(seed, 8);
    std::vector<RequestRow> rows;
    for (int i = 0; i < 300; ++i) {
      const Nanos at = i * 50 * kMs;
      const auto wait = static_cast<Nanos>(rng.exponential() * 1e8);
      rows.push_back(served(i, at, at + wait, at + wait + 1));
    }
    found += summarize(rows, {}).warm_up->requests > 0;
  }
  EXPECT_LE(found, 6);  // 2 %
}

// The sums of RunShape by other means: every token, failure and success put where it belongs.
TEST(RunShapeProperty, AgreesWithBruteForce) {
  core::Rng rng(2029);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const Nanos span = 1'000'000'000 + static_cast<Nanos>(rng.below(9'000'000'000));
    const auto rows = random_rows(rng, static_cast<int64_t>(1 + rng.below(300)), span);
    SummaryOptions options;
    options.open_loop = rng.below(2) == 0;
    if (rng.below(2) == 0) options.goodput.ttft_ms = 60;
    const auto metrics = summarize(rows, options);
    const auto window = measurement_window(RowSpan(rows), options);

    std::map<std::string, int64_t> errors;
    int64_t attempted = 0, run = 0, longest = 0;
    double sent = 0, residence = 0;
    auto sorted = rows;
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return std::pair(a.t_intended_ns, a.index) < std::pair(b.t_intended_ns, b.index);
    });
    for (const auto& row : sorted) {
      const bool ok = row.status == Status::kOk;
      if (row.t_send_ns && *row.t_send_ns >= window.begin_ns && *row.t_send_ns <= window.end_ns) {
        ++sent;
        Nanos end = *row.t_send_ns;
        for (const auto& t : {row.t_sent_ns, row.t_headers_ns, row.t_first_event_ns,
                              row.t_last_token_ns, row.t_done_ns, row.t_close_ns}) {
          if (t && !ok) end = std::max(end, *t);
        }
        if (ok) end = row.t_done_ns.value_or(*row.t_last_token_ns);
        residence += static_cast<double>(end - *row.t_send_ns) / 1e9;
      }
      if (row.t_intended_ns < window.begin_ns || row.t_intended_ns > window.end_ns) continue;
      ++attempted;
      if (!ok) ++errors[status_name(row.status)];
      run = ok ? 0 : run + 1;
      longest = std::max(longest, run);
    }
    std::map<std::string, int64_t> sliced;
    int64_t in_slices = 0;
    for (const auto& slice : metrics.error_slices) {
      in_slices += slice.attempted;
      for (const auto& [status, count] : slice.errors) sliced[status] += count;
    }
    ASSERT_EQ(sliced, errors);
    if (!errors.empty()) {
      ASSERT_EQ(in_slices, attempted);
      ASSERT_EQ(metrics.longest_failure_run->requests, longest);
    } else {
      ASSERT_FALSE(metrics.longest_failure_run.has_value());
    }
    ASSERT_EQ(metrics.little.has_value(), sent > 0 && *metrics.concurrency_mean > 0);
    if (metrics.little) {
      ASSERT_NEAR(metrics.little->residence_s, residence / sent, 1e-9);
      ASSERT_NEAR(metrics.little->rate, sent / *metrics.window_s, 1e-9);
      ASSERT_NEAR(metrics.little->discrepancy,
                  residence / *metrics.window_s / *metrics.concurrency_mean - 1, 1e-9);
    }
    // An interval holds its estimate, and exists where there is enough of it.
    const auto holds = [](const std::optional<stats::Interval>& interval,
                          const std::optional<double>& value) {
      return !interval || (interval->lower <= *value * (1 + 1e-9) + 1e-12 &&
                           *value <= interval->upper * (1 + 1e-9) + 1e-12);
    };
    ASSERT_TRUE(holds(metrics.ci95.error_rate, static_cast<double>(*metrics.failed) /
                                                   static_cast<double>(*metrics.attempted)));
    ASSERT_TRUE(holds(metrics.ci95.goodput_fraction, metrics.goodput_fraction));
    ASSERT_TRUE(holds(metrics.ttft_ms.ci95.mean, metrics.ttft_ms.mean));
    ASSERT_EQ(metrics.ttft_ms.ci95.mean.has_value(), *metrics.ttft_ms.n >= 5);
    ASSERT_EQ(metrics.ci95.request_throughput.has_value(),
              *metrics.request_throughput * *metrics.window_s > 9.5);
  }
}

TEST(RunShape, RateIntervalsCoverTheRate) {
  // Poisson completions at 10/s over 100 s.
  int hit = 0;
  constexpr int kRounds = 400;
  for (uint64_t seed = 0; seed < kRounds; ++seed) {
    core::Rng rng(seed, 5);
    std::vector<RequestRow> rows;
    Nanos at = 0;
    for (int i = 0; i < 1000; ++i) {
      at += static_cast<Nanos>(rng.exponential() * 1e8);
      rows.push_back(served(i, at, at + kMs, at + 2 * kMs));
    }
    const auto interval = summarize(rows, {}).ci95.request_throughput;
    hit += interval->lower <= 10 && 10 <= interval->upper;
  }
  EXPECT_GT(hit, 0.92 * kRounds);
  EXPECT_LT(hit, 0.985 * kRounds);
}

}  // namespace
}  // namespace prony::record
