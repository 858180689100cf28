#include "prony/report/series.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "prony/core/rng.hpp"
#include "prony/record/row_metrics.hpp"
#include "prony/record/summary.hpp"
#include "prony/report/sample_run.hpp"

namespace prony::report {
namespace {

using record::RequestRow;

TEST(ShownRanks, AscendFromFirstToLastWithinTheBudget) {
  for (const int64_t n : {1, 2, 15, 16, 17, 100, 479, 480, 481, 5000, 1'000'000, 2'000'000'000}) {
    for (const size_t budget : {16U, 64U, 480U}) {
      const auto ranks = shown_ranks(n, budget);
      ASSERT_FALSE(ranks.empty());
      EXPECT_EQ(ranks.front(), 1);
      EXPECT_EQ(ranks.back(), n);
      EXPECT_LE(ranks.size(), std::max<size_t>(budget, 1));
      EXPECT_TRUE(std::is_sorted(ranks.begin(), ranks.end()));
      EXPECT_EQ(std::set<int64_t>(ranks.begin(), ranks.end()).size(), ranks.size());
      EXPECT_TRUE(n > static_cast<int64_t>(budget) || static_cast<int64_t>(ranks.size()) == n);
      // The tail one by one.
      for (int64_t i = 0; i < std::min<int64_t>(n, static_cast<int64_t>(budget) / 8); ++i) {
        EXPECT_TRUE(std::binary_search(ranks.begin(), ranks.end(), n - i)) << n << " " << budget;
      }
    }
  }
}

// Every shown point against a count over all values, and the drawn steps never above the true
// function: thinning may hide detail, it must not flatter.
TEST(Distribution, PointsAreExactAndNeverFlatter) {
  core::Rng rng(3);
  for (int round = 0; round < 60; ++round) {
    const auto n = 1 + rng.below(3000);
    const bool ties = rng.below(2) == 0;
    std::vector<double> values;
    Distribution distribution;
    for (uint64_t i = 0; i < n; ++i) {
      double value = std::round(rng.exponential() * 5e7) / 1e6;
      if (ties) value = std::round(value / 10) * 10;
      values.push_back(value);
      distribution.add(value);
    }
    std::sort(values.begin(), values.end());
    const auto points = distribution.points(64);
    EXPECT_EQ(points.n, static_cast<int64_t>(n));
    EXPECT_TRUE(points.exact);
    EXPECT_EQ(points.thinned, n > 64);
    ASSERT_FALSE(points.x_ms.empty());
    EXPECT_EQ(points.x_ms.front(), values.front());
    EXPECT_EQ(points.x_ms.back(), values.back());
    EXPECT_EQ(points.p.back(), 1.0);
    const auto share_at = [&](double x) {
      const auto end = std::upper_bound(values.begin(), values.end(), x);
      return static_cast<double>(end - values.begin()) / static_cast<double>(n);
    };
    for (size_t i = 0; i < points.x_ms.size(); ++i) {
      EXPECT_NEAR(points.p[i], share_at(points.x_ms[i]), 1e-7);
      if (i == 0) continue;
      EXPECT_GT(points.x_ms[i], points.x_ms[i - 1]);
      EXPECT_GT(points.p[i], points.p[i - 1]);
      const double between = (points.x_ms[i] + points.x_ms[i - 1]) / 2;
      EXPECT_LE(points.p[i - 1], share_at(between) + 1e-7);  // the step drawn there
    }
  }
}

TEST(Distribution, BeyondItsLimitAHistogramIsLateByAtMostAThousandth) {
  core::Rng rng(4);
  std::vector<double> values;
  Distribution distribution(100);
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(rng.exponential() * 30);
    distribution.add(values.back());
  }
  std::sort(values.begin(), values.end());
  const auto points = distribution.points(200);
  EXPECT_FALSE(points.exact);
  EXPECT_TRUE(points.thinned);
  EXPECT_EQ(points.n, 20'000);
  EXPECT_EQ(points.p.back(), 1.0);
  for (size_t i = 0; i < points.x_ms.size(); ++i) {
    const auto rank = static_cast<size_t>(std::llround(points.p[i] * 20'000));
    const double exact = values[rank - 1];
    EXPECT_GE(points.x_ms[i], exact - 1e-6);
    EXPECT_LE(points.x_ms[i], exact * 1.001 + 1e-6);
  }
}

TEST(Distribution, NothingIsNoPoints) {
  const auto points = Distribution().points(64);
  EXPECT_EQ(points.n, 0);
  EXPECT_TRUE(points.x_ms.empty());
}

// A random run with everything rows can be: events or none, counts known or not, unsent, cut.
std::vector<RequestRow> random_rows(core::Rng& rng) {
  std::vector<RequestRow> rows;
  const auto count = 1 + rng.below(30);
  for (uint64_t i = 0; i < count; ++i) {
    RequestRow row;
    row.t_intended_ns = static_cast<core::Nanos>(5'000'000'000 + rng.below(2'000'000'000));
    row.status = rng.below(4) == 0 ? record::Status::kTruncated : record::Status::kOk;
    if (rng.below(8) == 0) {
      row.status = record::Status::kConnect;
      rows.push_back(row);
      continue;
    }
    core::Nanos at = row.t_intended_ns + static_cast<core::Nanos>(rng.below(10'000'000));
    row.t_send_ns = at;
    const auto events = 1 + rng.below(20);
    int32_t tokens = 0;
    const bool exact = rng.below(2) == 0;
    for (uint64_t k = 0; k < events; ++k) {
      at += static_cast<core::Nanos>(1 + rng.below(90'000'000));
      if (k == 0) row.t_first_token_ns = at;
      const auto held = static_cast<int32_t>(1 + rng.below(4));
      row.events.push_back({at, at + 1000, held});
      tokens += held;
    }
    row.t_last_token_ns = at;
    if (row.status == record::Status::kOk && rng.below(2) == 0) row.t_done_ns = at + 70'000;
    row.t_close_ns = at + 100'000 + static_cast<core::Nanos>(rng.below(5'000'000));
    row.tokens_per_event_exact = exact;
    row.output_tokens = tokens;
    row.first_event_tokens = row.events.front().tokens;
    if (rng.below(3) == 0) row.events.clear();
    rows.push_back(row);
  }
  return rows;
}

core::Nanos end_of(const RequestRow& row) {
  if (row.status != record::Status::kOk) return record::last_stamp_ns(row);
  return row.t_done_ns ? *row.t_done_ns : *row.t_last_token_ns;
}

TEST(Timeline, EachBucketAgainstTheRecordsOwnDefinitions) {
  core::Rng rng(5);
  for (int round = 0; round < 150; ++round) {
    const auto rows = random_rows(rng);
    const auto result = timeline(record::RowSpan(rows), 40);
    core::Nanos first = rows.front().t_intended_ns, last = first;
    double failures = 0;
    for (const auto& row : rows) {
      first = std::min(first, row.t_intended_ns);
      last = std::max(last, record::last_stamp_ns(row));
      failures += row.status == record::Status::kOk ? 0 : 1;
    }
    if (last == first) {
      EXPECT_FALSE(result.has_value());
      continue;
    }
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->origin_ns, first);
    const auto width = static_cast<core::Nanos>(std::llround(result->bucket_s * 1e9));
    const size_t buckets = result->output_tokens_per_s.size();
    EXPECT_LE(buckets, 40U);
    EXPECT_GE(static_cast<core::Nanos>(buckets) * width, last - first);
    double failed = 0;
    for (size_t i = 0; i < buckets; ++i) {
      const core::Nanos left = first + static_cast<core::Nanos>(i) * width;
      const core::Nanos right = left + width;
      double tokens = 0, flight_ns = 0;
      int peak = 0;
      std::vector<core::Nanos> instants = {left};
      for (const auto& row : rows) {
        // Half-open buckets: an event on the edge belongs to the right one, and the very last
        // instant of the run to the last bucket.
        tokens += record::tokens_in_window(row, left, i + 1 == buckets ? right : right - 1);
        if (!row.t_send_ns) continue;
        const core::Nanos end = end_of(row);
        flight_ns += static_cast<double>(
            std::max<core::Nanos>(0, std::min(right, end) - std::max(left, *row.t_send_ns)));
        if (*row.t_send_ns >= left && *row.t_send_ns < right) instants.push_back(*row.t_send_ns);
      }
      for (const core::Nanos at : instants) {
        int level = 0;
        for (const auto& row : rows) {
          if (row.t_send_ns && *row.t_send_ns <= at && at < end_of(row)) ++level;
        }
        peak = std::max(peak, level);
      }
      EXPECT_NEAR(result->output_tokens_per_s[i] * result->bucket_s, tokens, 2e-3);
      EXPECT_NEAR(result->in_flight_mean[i], flight_ns / static_cast<double>(width), 1e-4);
      EXPECT_EQ(result->in_flight_max[i], peak) << "bucket " << i << " of " << buckets;
      failed += result->failed_per_s[i] * result->bucket_s;
    }
    EXPECT_NEAR(failed, failures, 1e-2);
    const auto& peaks = result->in_flight_max;
    EXPECT_EQ(*std::max_element(peaks.begin(), peaks.end()),
              static_cast<double>(*record::summarize(rows, {}).concurrency_max));
  }
}

TEST(Timeline, BucketsAreRound) {
  const auto run = sample_run({.requests = 300});
  for (const size_t most : {1U, 3U, 10U, 160U, 1000U}) {
    const auto result = timeline(record::RowSpan(run.rows), most);
    ASSERT_TRUE(result.has_value());
    EXPECT_LE(result->output_tokens_per_s.size(), most);
    const double mantissa =
        result->bucket_s / std::pow(10, std::floor(std::log10(result->bucket_s) + 1e-9));
    EXPECT_TRUE(std::abs(mantissa - 1) < 1e-9 || std::abs(mantissa - 2) < 1e-9 ||
                std::abs(mantissa - 5) < 1e-9)
        << result->bucket_s;
  }
}

TEST(Timeline, NoRunNoLine) {
  const std::vector<RequestRow> instant(3);
  EXPECT_FALSE(timeline(record::RowSpan({}), 10).has_value());
  EXPECT_FALSE(timeline(record::RowSpan(instant), 10).has_value());
}

std::vector<const RequestRow*> completed_of(const std::vector<RequestRow>& rows) {
  std::vector<const RequestRow*> completed;
  for (const auto& row : rows) {
    if (row.status == record::Status::kOk) completed.push_back(&row);
  }
  return completed;
}

Scatter scatter(const std::vector<const RequestRow*>& completed, size_t points_max) {
  ScatterSample sample(points_max);
  for (const auto* row : completed) sample.add(*row);
  return sample.finish();
}

TEST(Scatter, ShowsAllOrAnHonestPart) {
  const auto run = sample_run({.requests = 3000, .events = false});
  const auto completed = completed_of(run.rows);
  std::multiset<std::pair<double, double>> all;
  std::vector<double> slowest;
  for (const auto* row : completed) {
    const double ttft = std::round(*record::ttft_ms(*row) * 1e6) / 1e6;
    all.insert({static_cast<double>(*row->prompt_tokens), ttft});
    slowest.push_back(ttft);
  }
  std::sort(slowest.rbegin(), slowest.rend());

  const auto whole = scatter(completed, 5000);
  EXPECT_EQ(whole.n, static_cast<int64_t>(completed.size()));
  EXPECT_EQ(whole.ttft_ms.size(), completed.size());
  EXPECT_TRUE(whole.server_count);

  const auto part = scatter(completed, 200);
  EXPECT_EQ(part.n, whole.n);
  ASSERT_EQ(part.ttft_ms.size(), 200U);
  auto left = all;
  for (size_t i = 0; i < 200; ++i) {  // a part of the points, none twice
    const auto found = left.find({part.input_tokens[i], part.ttft_ms[i]});
    ASSERT_NE(found, left.end());
    left.erase(found);
  }
  auto shown = part.ttft_ms;
  std::sort(shown.rbegin(), shown.rend());
  for (size_t i = 0; i < kSlowestKept; ++i) EXPECT_EQ(shown[i], slowest[i]);
  EXPECT_EQ(scatter(completed, 200).ttft_ms, part.ttft_ms);  // the same page for the same run
}

TEST(Scatter, OneAxisHasOneMeaning) {
  auto run = sample_run({.requests = 40, .failed_fraction = 0});
  for (auto& row : run.rows) row.prompt_tokens = row.input_tokens_asked + 7;
  EXPECT_TRUE(scatter(completed_of(run.rows), 100).server_count);
  run.rows[5].prompt_tokens.reset();
  const auto asked = scatter(completed_of(run.rows), 100);
  EXPECT_FALSE(asked.server_count);
  std::multiset<double> lengths;
  for (const auto& row : run.rows) lengths.insert(row.input_tokens_asked);
  EXPECT_EQ(std::multiset<double>(asked.input_tokens.begin(), asked.input_tokens.end()), lengths);
  EXPECT_FALSE(scatter({}, 100).server_count);
}

}  // namespace
}  // namespace prony::report
