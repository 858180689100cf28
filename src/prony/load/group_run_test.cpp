// Tests of a run by several processes: the shares are a partition for every size, stamps move
// together, meters survive the journey, options that need one process are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "prony/load/group_run.hpp"
#include "prony/record/random_rows.hpp"
#include "prony/record/row_metrics.hpp"

namespace prony::load {
namespace {

using ::testing::HasSubstr;

// A rank that only knows its number.
class Numbered final : public core::Transport {
 public:
  Numbered(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Result<void> send(int, std::string_view, core::Nanos) override { return failed("not here"); }
  Result<std::string> receive(int, core::Nanos) override { return failed("not here"); }

 private:
  int rank_, size_;
};

core::Group numbered(int rank, int size) {
  return core::Group(std::make_unique<Numbered>(rank, size));
}

TEST(GroupRun, SharesAreAPartitionForEverySize) {
  for (int size = 1; size <= 4; ++size) {
    for (int64_t total = 0; total <= 23; ++total) {
      workload::Schedule schedule;
      for (int64_t i = 0; i < total; ++i) {
        schedule.entries.push_back({.index = i, .t_intended_ns = 100 * i, .input_tokens = 7});
      }
      std::vector<int> taken(static_cast<size_t>(total), 0);
      int64_t users = 0;
      for (int rank = 0; rank < size; ++rank) {
        auto group = numbered(rank, size);
        const GroupRun run(&group);
        const auto mine = run.entries_of(schedule);
        for (size_t local = 0; local < mine.size(); ++local) {
          EXPECT_EQ(mine[local].index, static_cast<int64_t>(local));
          const auto global = run.global(mine[local].index);
          EXPECT_EQ(mine[local].t_intended_ns, 100 * global);
          ++taken.at(static_cast<size_t>(global));
        }
        users += run.shape_of({.max_concurrency = total}).max_concurrency.value();
        EXPECT_DOUBLE_EQ(run.shape_of({.rate_per_s = 12}).rate_per_s.value() * size, 12);
      }
      EXPECT_EQ(users, total);
      for (const int times : taken) EXPECT_EQ(times, 1);
    }
  }
}

TEST(GroupRun, AloneIsTheWholeRun) {
  GroupRun run(nullptr);
  EXPECT_TRUE(run.alone());
  EXPECT_TRUE(run.is_first());
  EXPECT_EQ(run.global(5), 5);
  EXPECT_TRUE(run.wait_until_ready());
  EXPECT_TRUE(run.wait_for_start());
  EXPECT_TRUE(run.wait_for_all(0).ok());
  record::Record record;
  run.report(record);
  EXPECT_TRUE(record.client.is_null());
}

TEST(GroupRun, RefusesWhatNeedsOneProcess) {
  auto group = numbered(1, 4);
  const GroupRun run(&group);
  BenchOptions options;
  EXPECT_TRUE(run.check(options, {.max_concurrency = 4}, {}).ok());
  EXPECT_THAT(run.check(options, {.max_concurrency = 3}, {}).error().message,
              HasSubstr("--max-concurrency: found 3, expected at least one for each of 4"));
  EXPECT_TRUE(GroupRun(nullptr).check(options, {.max_concurrency = 1}, {}).ok());
}

TEST(ShiftStamps, MovesAllAndChangesNoDuration) {
  core::Rng rng(3);
  for (const auto& row : record::random_rows(rng, 200, 5'000'000'000)) {
    auto moved = row;
    shift_stamps(moved, 123'456'789);
    EXPECT_EQ(moved.t_intended_ns, row.t_intended_ns + 123'456'789);
    EXPECT_EQ(record::ttft_ms(moved), record::ttft_ms(row));
    EXPECT_EQ(record::ttft_intended_ms(moved), record::ttft_intended_ms(row));
    EXPECT_EQ(record::e2e_ms(moved), record::e2e_ms(row));
    EXPECT_EQ(record::last_stamp_ns(moved), record::last_stamp_ns(row) + 123'456'789);
    std::vector<double> before, after;
    record::append_icl_ms(row, before);
    record::append_icl_ms(moved, after);
    EXPECT_EQ(before, after);
    shift_stamps(moved, -123'456'789);
    EXPECT_EQ(moved, row);
  }
}

TEST(Meters, SurviveTheJourney) {
  ClientMeters meters;
  meters.token_events = 12;
  meters.merged_events = 3;
  meters.held_back = 1;
  meters.clock_step_max_ns = 77;
  meters.loop_busy = {0.25, 0.5};
  for (uint64_t value : {0ULL, 5ULL, 1'000'000ULL, 123'456'789ULL, 999'999'999'999'999ULL}) {
    meters.read_lag_ns.record(value, 2);
  }
  const auto text = core::write_json(meters_to_json(meters)).value();
  ClientMeters sum;
  sum.token_events = 100;
  sum.loop_busy = {0.125};
  const auto json = core::parse_json(text, "m").value();
  ASSERT_TRUE(add_meters(json, sum).ok());
  EXPECT_EQ(sum.token_events, 112);
  EXPECT_EQ(sum.held_back, 1);
  EXPECT_EQ(sum.clock_step_max_ns, 77);
  EXPECT_THAT(sum.loop_busy, ::testing::ElementsAre(0.125, 0.25, 0.5));
  EXPECT_EQ(sum.read_lag_ns.count(), 10U);
  EXPECT_EQ(sum.read_lag_ns.overflow(), 2U);
  for (const double q : {0.1, 0.5, 0.8, 0.9}) {
    EXPECT_EQ(sum.read_lag_ns.quantile(q), meters.read_lag_ns.quantile(q)) << q;
  }
  for (const char* key : {"token_events", "loop_busy", "read_lag_ns"}) {
    auto broken = json;
    broken[key] = "x";
    EXPECT_FALSE(add_meters(broken, sum).ok()) << key;
    broken.erase(key);
    EXPECT_FALSE(add_meters(broken, sum).ok()) << key;
  }
}

}  // namespace
}  // namespace prony::load
