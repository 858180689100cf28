// Tests of schedules: equal numbers everywhere (golden digests), independence of the streams,
// replay of traces, scaling, files. Goal: whatever changes in one option, nothing else moves.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "prony/core/file.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::workload {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;

LengthOptions laws(Result<LengthLaw> input, Result<LengthLaw> output) {
  LengthOptions options;
  options.input = input.value();
  options.output = output.value();
  return options;
}

ScheduleOptions poisson(int64_t count, uint64_t seed = 1) {
  ScheduleOptions options;
  options.seed = seed;
  options.count = count;
  options.arrivals = {.kind = ArrivalKind::kPoisson, .rate_per_s = 10};
  options.lengths = laws(LengthLaw::uniform(10, 1000), LengthLaw::lognormal(100, 0.7));
  return options;
}

// Six rows, one second apart; row i has lengths (100 + i, 10 + i).
std::shared_ptr<const Trace> small_trace() {
  auto trace = std::make_shared<Trace>();
  trace->name = "small";
  for (int32_t i = 0; i < 6; ++i) trace->rows.push_back({i * kSecond, 100 + i, 10 + i});
  return trace;
}

ScheduleOptions replay(std::shared_ptr<const Trace> trace) {
  ScheduleOptions options;
  options.arrivals.kind = ArrivalKind::kTrace;
  options.arrivals.trace = trace;
  options.lengths.kind = LengthOptions::Kind::kTraceInOrder;
  options.lengths.trace = std::move(trace);
  return options;
}

Schedule generate(const ScheduleOptions& options) {
  auto schedule = generate_schedule(options);
  PRONY_CHECK(schedule.ok(), schedule.ok() ? "" : schedule.error().message);
  return *std::move(schedule);
}

std::string error_of(const ScheduleOptions& options) {
  const auto schedule = generate_schedule(options);
  return schedule ? "no error" : schedule.error().message;
}

template <typename T>
std::vector<T> column(const Schedule& schedule, T ScheduleEntry::*field) {
  std::vector<T> values;
  for (const auto& entry : schedule.entries) values.push_back(entry.*field);
  return values;
}

// Numbers of today. They may change only with a new schema version: a run recorded with a seed must
// be repeatable with it on any machine and with any compiler.
TEST(Schedule, GoldenDigests) {
  const auto digest = [](const ScheduleOptions& options) {
    return fmt::format("{:016x}", generate(options).digest());
  };
  ScheduleOptions options = poisson(10'000, 42);
  EXPECT_EQ(digest(options), "9951d60ac5e04b89");
  options.arrivals = {.kind = ArrivalKind::kGamma, .rate_per_s = 3.3, .burstiness = 0.4};
  options.lengths = laws(LengthLaw::normal(700, 200), LengthLaw::random_range(128, 0.3));
  EXPECT_EQ(digest(options), "7c5b22c528429195");
  options.arrivals = {.kind = ArrivalKind::kConstant, .rate_per_s = 7};
  options.prefix = {.groups = 5, .tokens = 64};
  options.scale = {.input_factor = 0.37, .input_max = 300, .total_max = 400};
  EXPECT_EQ(digest(options), "3d41321ebce9857d");
  options = replay(small_trace());
  options.arrivals.time_scale = 0.3;
  EXPECT_EQ(digest(options), "72b219661aafabc6");
  options.lengths.kind = LengthOptions::Kind::kTraceResample;
  options.arrivals = {.kind = ArrivalKind::kGamma, .rate_per_s = 1e-3, .burstiness = 50};
  options.count = 1000;
  options.seed = 0xFFFF'FFFF'FFFF'FFFF;
  EXPECT_EQ(digest(options), "6eb2b7f7f8450c0d");
}

TEST(Schedule, DigestSeesEveryField) {
  Schedule schedule = generate(poisson(3));
  std::set<uint64_t> digests{schedule.digest()};
  const auto changed = [&](auto change) {
    Schedule other = schedule;
    change(other.entries[1]);
    EXPECT_TRUE(digests.insert(other.digest()).second);
  };
  changed([](ScheduleEntry& e) { ++e.index; });
  changed([](ScheduleEntry& e) { ++e.t_intended_ns; });
  changed([](ScheduleEntry& e) { ++e.input_tokens; });
  changed([](ScheduleEntry& e) { ++e.output_tokens; });
  changed([](ScheduleEntry& e) { ++e.session; });
  changed([](ScheduleEntry& e) { ++e.turn; });
  changed([](ScheduleEntry& e) { ++e.prefix_group; });
  changed([](ScheduleEntry& e) { ++e.prefix_tokens; });
}

TEST(Schedule, EqualOptionsGiveEqualSchedulesAndSeedsDiffer) {
  EXPECT_EQ(generate(poisson(1000)), generate(poisson(1000)));
  EXPECT_NE(generate(poisson(1000)).digest(), generate(poisson(1000, 2)).digest());
}

TEST(Schedule, LengthsNeverMoveArrivalsNorArrivalsLengths) {
  const ScheduleOptions base = poisson(2000);
  const Schedule schedule = generate(base);
  ScheduleOptions options = base;
  options.lengths.input = LengthLaw::normal(50, 20).value();
  Schedule other = generate(options);
  EXPECT_EQ(column(other, &ScheduleEntry::t_intended_ns),
            column(schedule, &ScheduleEntry::t_intended_ns));
  EXPECT_EQ(column(other, &ScheduleEntry::output_tokens),
            column(schedule, &ScheduleEntry::output_tokens));
  EXPECT_NE(column(other, &ScheduleEntry::input_tokens),
            column(schedule, &ScheduleEntry::input_tokens));

  options = base;
  options.arrivals = {.kind = ArrivalKind::kGamma, .rate_per_s = 1, .burstiness = 0.1};
  other = generate(options);
  EXPECT_EQ(column(other, &ScheduleEntry::input_tokens),
            column(schedule, &ScheduleEntry::input_tokens));
  EXPECT_EQ(column(other, &ScheduleEntry::output_tokens),
            column(schedule, &ScheduleEntry::output_tokens));

  options = base;
  options.prefix = {.groups = 4, .tokens = 32};
  other = generate(options);
  EXPECT_EQ(column(other, &ScheduleEntry::t_intended_ns),
            column(schedule, &ScheduleEntry::t_intended_ns));
  for (size_t i = 0; i < other.entries.size(); ++i) {
    EXPECT_EQ(other.entries[i].input_tokens, schedule.entries[i].input_tokens + 32);
  }
}

TEST(Schedule, ALongerScheduleBeginsWithTheShorterOne) {
  ScheduleOptions options = poisson(5000);
  options.prefix = {.groups = 3, .tokens = 8};
  const Schedule longer = generate(options);
  for (const int64_t count : {1, 7, 1000}) {
    options.count = count;
    const Schedule shorter = generate(options);
    ASSERT_EQ(static_cast<int64_t>(shorter.entries.size()), count);
    EXPECT_TRUE(std::equal(shorter.entries.begin(), shorter.entries.end(), longer.entries.begin()));
  }
  // A duration cuts the same schedule by time.
  options.count = 0;
  options.duration_ns = 60 * kSecond;
  const Schedule minute = generate(options);
  EXPECT_TRUE(std::equal(minute.entries.begin(), minute.entries.end(), longer.entries.begin()));
  EXPECT_LE(minute.entries.back().t_intended_ns, options.duration_ns);
  EXPECT_GT(longer.entries[minute.entries.size()].t_intended_ns, options.duration_ns);
  EXPECT_NEAR(static_cast<double>(minute.entries.size()), 600, 4 * std::sqrt(600.0));
}

TEST(Schedule, ConstantRateFillsTheDurationExactly) {
  ScheduleOptions options = poisson(0);
  options.arrivals.kind = ArrivalKind::kConstant;
  options.duration_ns = 10 * kSecond;
  const Schedule schedule = generate(options);
  EXPECT_EQ(schedule.entries.size(), 100u);
  EXPECT_EQ(schedule.entries.front().t_intended_ns, kSecond / 10);
  EXPECT_EQ(schedule.entries.back().t_intended_ns, 10 * kSecond);
}

TEST(Schedule, TraceIsReplayedRowByRow) {
  const Schedule schedule = generate(replay(small_trace()));
  ASSERT_EQ(schedule.entries.size(), 6u);
  for (int32_t i = 0; i < 6; ++i) {
    const ScheduleEntry& entry = schedule.entries[static_cast<size_t>(i)];
    EXPECT_EQ(entry.index, i);
    EXPECT_EQ(entry.t_intended_ns, i * kSecond);
    EXPECT_EQ(entry.input_tokens, 100 + i);
    EXPECT_EQ(entry.output_tokens, 10 + i);
    EXPECT_EQ(entry.session, -1);
  }
  EXPECT_EQ(schedule.description,
            "6 requests, seed 0; arrivals of trace small; lengths of trace small in its order");
}

TEST(Schedule, TraceWindowAndTimeScale) {
  ScheduleOptions options = replay(small_trace());
  options.arrivals.window_start_ns = 2 * kSecond;
  options.arrivals.window_length_ns = 3 * kSecond;
  options.arrivals.time_scale = 0.5;
  const Schedule schedule = generate(options);
  EXPECT_THAT(column(schedule, &ScheduleEntry::t_intended_ns),
              ElementsAre(0, kSecond / 2, kSecond));
  EXPECT_THAT(column(schedule, &ScheduleEntry::input_tokens), ElementsAre(102, 103, 104));
  EXPECT_THAT(schedule.description,
              HasSubstr("arrivals of trace small, 3 s from second 2, time x0.5"));
  // A window between two rows keeps the wait before its first row.
  options.arrivals.window_start_ns = 2 * kSecond + kSecond / 2;
  options.arrivals.time_scale = 1;
  EXPECT_THAT(column(generate(options), &ScheduleEntry::t_intended_ns),
              ElementsAre(kSecond / 2, 3 * kSecond / 2, 5 * kSecond / 2));
  options.count = 2;
  EXPECT_EQ(generate(options).entries.size(), 2u);
  options.count = 0;
  options.duration_ns = kSecond;
  EXPECT_EQ(generate(options).entries.size(), 1u);
}

TEST(Schedule, TraceErrorsSayWhatIsThere) {
  ScheduleOptions options = replay(small_trace());
  options.count = 7;
  EXPECT_EQ(error_of(options),
            "schedule: 7 requests asked, but the window of trace small holds 6 rows");
  options.count = 0;
  options.arrivals.window_start_ns = 60 * kSecond;
  options.arrivals.window_length_ns = kSecond;
  EXPECT_EQ(error_of(options),
            "trace window: no row of small between second 60 and second 61; it spans 5 s");
  options = replay(small_trace());
  options.arrivals.time_scale = 0;
  EXPECT_EQ(error_of(options), "trace time scale: found 0, expected > 0");
  options = replay(nullptr);
  EXPECT_THAT(error_of(options), HasSubstr("none with rows was given"));
  options = replay(small_trace());
  options.arrivals.time_scale = 1e7;
  EXPECT_THAT(error_of(options), HasSubstr("days after the first, expected at most 100"));
}

TEST(Schedule, ResampledPairsStayPairs) {
  ScheduleOptions options = poisson(6000);
  options.lengths = {};
  options.lengths.kind = LengthOptions::Kind::kTraceResample;
  options.lengths.trace = small_trace();
  std::vector<int> counts(6);
  for (const auto& entry : generate(options).entries) {
    ASSERT_EQ(entry.input_tokens - 100, entry.output_tokens - 10);
    ++counts[static_cast<size_t>(entry.output_tokens - 10)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 4 * std::sqrt(833.0));
}

TEST(Schedule, OrderedPairsGoRoundWithOtherArrivals) {
  ScheduleOptions options = poisson(14);
  options.lengths = {};
  options.lengths.kind = LengthOptions::Kind::kTraceInOrder;
  options.lengths.trace = small_trace();
  const Schedule schedule = generate(options);
  for (size_t i = 0; i < 14; ++i) {
    EXPECT_EQ(schedule.entries[i].input_tokens, 100 + static_cast<int32_t>(i % 6));
  }
}

TEST(Schedule, ScalingClampsAndSaysSo) {
  ScheduleOptions options = replay(small_trace());  // inputs 100..105, outputs 10..15
  options.scale = {.input_factor = 0.1, .output_factor = 0.5, .output_min = 6};
  Schedule schedule = generate(options);
  EXPECT_THAT(column(schedule, &ScheduleEntry::input_tokens), ElementsAre(10, 10, 10, 10, 10, 11));
  EXPECT_THAT(column(schedule, &ScheduleEntry::output_tokens), ElementsAre(6, 6, 6, 7, 7, 8));
  EXPECT_THAT(schedule.description,
              HasSubstr("; input lengths scaled x0.1; output lengths scaled x0.5 to at least 6 (1 "
                        "limited)"));
  options.scale = {.input_max = 102, .total_max = 114};
  schedule = generate(options);
  EXPECT_THAT(column(schedule, &ScheduleEntry::input_tokens),
              ElementsAre(100, 101, 102, 101, 100, 99));
  EXPECT_THAT(column(schedule, &ScheduleEntry::output_tokens), ElementsAre(10, 11, 12, 13, 14, 15));
  EXPECT_THAT(schedule.description, HasSubstr("; input lengths to at most 102 (3 limited); at most "
                                              "114 tokens in all (3 cut)"));
  options.scale = {.total_max = 3};
  for (const auto& entry : generate(options).entries) {
    EXPECT_EQ(entry.input_tokens, 1);
    EXPECT_EQ(entry.output_tokens, 2);
  }
}

// The example of docs/workloads.md, and what the demo does: the shipped sample on a small model.
TEST(Schedule, TheShippedSampleFitsASmallModel) {
  auto sample = read_azure_trace(std::string(PRONY_SOURCE_DIR) +
                                 "/data/traces/azure-llm-2023-conv-sample.csv");
  ASSERT_TRUE(sample.ok()) << sample.error().message;
  ScheduleOptions options = replay(std::make_shared<const Trace>(*std::move(sample)));
  options.seed = 7;
  options.count = 300;
  options.scale = {.input_factor = 0.1, .input_max = 256};
  const Schedule schedule = generate(options);
  EXPECT_EQ(schedule.description,
            "300 requests, seed 7; arrivals of trace azure-llm-2023-conv-sample; lengths of trace "
            "azure-llm-2023-conv-sample in its order; input lengths scaled x0.1 to at most 256 "
            "(20 limited)");
  const auto docs = core::read_file(std::string(PRONY_SOURCE_DIR) + "/docs/workloads.md");
  ASSERT_TRUE(docs.ok());
  std::string joined;  // the example there is broken over lines
  for (const char c : *docs) {
    if (c != '\n' && !(c == ' ' && joined.ends_with(' '))) joined.push_back(c);
    if (c == '\n' && !joined.ends_with(' ')) joined.push_back(' ');
  }
  EXPECT_THAT(joined, HasSubstr(schedule.description));
}

TEST(Schedule, PrefixGroupsAreAllUsed) {
  ScheduleOptions options = poisson(4000);
  options.prefix = {.groups = 4, .tokens = 16};
  options.scale.total_max = 500;
  std::vector<int> counts(4);
  for (const auto& entry : generate(options).entries) {
    ++counts.at(static_cast<size_t>(entry.prefix_group));
    EXPECT_EQ(entry.prefix_tokens, 16);
    EXPECT_GT(entry.input_tokens, 16);
    EXPECT_LE(entry.input_tokens + entry.output_tokens, 500);
    EXPECT_GE(entry.output_tokens, 1);
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 4 * std::sqrt(750.0));
}

TEST(Schedule, BadOptionsAreNamed) {
  ScheduleOptions options = poisson(0);
  EXPECT_THAT(error_of(options), HasSubstr("neither a number of requests nor a duration"));
  options.arrivals.kind = ArrivalKind::kAtOnce;
  options.duration_ns = kSecond;  // never ends: all of them start at 0
  EXPECT_THAT(error_of(options), HasSubstr("neither a number of requests nor a duration"));
  options = poisson(-1);
  EXPECT_THAT(error_of(options), HasSubstr("found -1 requests"));
  options = poisson(10);
  options.duration_ns = 1;
  EXPECT_EQ(error_of(options), "schedule: no request starts within 1e-09 s");
  options = poisson(10);
  options.arrivals.rate_per_s = 1e-9;
  EXPECT_THAT(error_of(options), HasSubstr("expected at most 100"));
  options = poisson(10);
  options.lengths.output.reset();
  EXPECT_THAT(error_of(options), HasSubstr("no length law"));
  options = poisson(10);
  options.scale.input_factor = 0;
  EXPECT_THAT(error_of(options), HasSubstr("length scale: found 0 and 1"));
  options = poisson(10);
  options.scale.output_min = 9;
  options.scale.output_max = 8;
  EXPECT_THAT(error_of(options), HasSubstr("output tokens: found limits 9 to 8"));
  options = poisson(10);
  options.prefix = {.groups = 1, .tokens = 100};
  options.scale.total_max = 101;
  EXPECT_THAT(error_of(options), HasSubstr("found a limit of 101, expected 102 at least"));
  options = poisson(10);
  options.prefix = {.groups = -1, .tokens = 1};
  EXPECT_THAT(error_of(options), HasSubstr("shared prefix"));
}

TEST(ScheduleFile, ComesBackEqual) {
  ScheduleOptions options = poisson(500, 0xFFFF'FFFF'FFFF'FFFF);
  options.prefix = {.groups = 2, .tokens = 4};
  Schedule schedule = generate(options);
  for (auto& entry : schedule.entries) entry.session = entry.index / 2;
  for (auto& entry : schedule.entries) entry.turn = static_cast<int32_t>(entry.index % 2);
  schedule.entries[7].think_ns = 5;
  schedule.entries[7].history_tokens = 3;
  schedule.entries.back().t_intended_ns = INT64_MAX;
  schedule.description += " \"quotes\", \\ and \u00e9";
  const std::string folder = ::testing::TempDir();
  const std::string path = folder + "prony_schedule_test.jsonl";
  ASSERT_TRUE(write_schedule(schedule, path).ok());
  const auto back = read_schedule(path);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, schedule);
  EXPECT_EQ(back->digest(), schedule.digest());
  EXPECT_EQ(write_schedule_text(*back), *core::read_file(path));
  EXPECT_EQ(*parse_schedule(write_schedule_text(Schedule{}), "x"), Schedule{});
}

TEST(ScheduleFile, TextIsStable) {
  Schedule schedule;
  schedule.seed = 7;
  schedule.description = "two";
  schedule.entries = {{0, 0, 10, 5, -1, 0, -1, 0}, {1, 1500, 20, 6, 2, 1, 3, 8}};
  EXPECT_EQ(write_schedule_text(schedule),
            "{\"schema\":\"prony.schedule/1\",\"seed\":7,\"description\":\"two\",\"count\":2}\n"
            "{\"index\":0,\"t_intended_ns\":0,\"input_tokens\":10,\"output_tokens\":5}\n"
            "{\"index\":1,\"t_intended_ns\":1500,\"input_tokens\":20,\"output_tokens\":6,"
            "\"session\":2,\"turn\":1,\"prefix_group\":3,\"prefix_tokens\":8}\n");
}

TEST(ScheduleFile, BadFilesAreNamed) {
  const std::string head =
      "{\"schema\":\"prony.schedule/1\",\"seed\":7,\"description\":\"d\",\"count\":2}\n";
  const std::string first =
      "{\"index\":0,\"t_intended_ns\":50,\"input_tokens\":10,\"output_tokens\":5}\n";
  const auto error = [](const std::string& content) {
    const auto schedule = parse_schedule(content, "s.jsonl");
    return schedule ? "no error" : schedule.error().message;
  };
  const auto second = [&](const std::string& members) { return error(head + first + members); };
  EXPECT_EQ(error(""), "s.jsonl: found an empty file");
  EXPECT_EQ(error("{}\n"), "s.jsonl:1: found schema none, expected \"prony.schedule/1\"");
  EXPECT_EQ(error("[]\n"), "s.jsonl:1: found schema none, expected \"prony.schedule/1\"");
  EXPECT_EQ(error("{\"schema\":\"prony.schedule/2\"}"),
            "s.jsonl:1: found schema '\"prony.schedule/2\"', expected \"prony.schedule/1\"");
  EXPECT_EQ(error("{\"schema\":\"prony.schedule/1\",\"seed\":-1}"),
            "s.jsonl:1: found no seed, expected an integer >= 0");
  EXPECT_EQ(error(head + first), "s.jsonl: found 1 entries, expected 2 as in line 1");
  EXPECT_THAT(second("{\"index\":1"), HasSubstr("s.jsonl:3: not JSON at byte "));
  EXPECT_THAT(second("{\"index\":1e999}"), HasSubstr("s.jsonl:3: "));
  EXPECT_EQ(second("3"), "s.jsonl:3: found '3', expected an object");
  EXPECT_EQ(second("{\"index\":1}"), "s.jsonl:3: found no t_intended_ns");
  EXPECT_EQ(second("{\"indx\":1}"), "s.jsonl:3: found the unknown name 'indx'");
  EXPECT_EQ(second("{\"input_tokens\":1.5}"),
            "s.jsonl:3: input_tokens: found '1.5', expected an integer 1 to 2147483647");
  EXPECT_EQ(second("{\"t_intended_ns\":18446744073709551615}"),
            "s.jsonl:3: t_intended_ns: found '18446744073709551615', expected an integer 0 to "
            "9223372036854775807");
  const std::string tail = ",\"input_tokens\":10,\"output_tokens\":5";
  EXPECT_EQ(second("{\"index\":5,\"t_intended_ns\":60" + tail + "}"),
            "s.jsonl:3: index: found 5, expected 1");
  EXPECT_EQ(second("{\"index\":1,\"t_intended_ns\":49" + tail + "}"),
            "s.jsonl:3: t_intended_ns: found 49, expected at least 50 as before it");
  EXPECT_EQ(second("{\"index\":1,\"t_intended_ns\":60,\"prefix_group\":0,\"prefix_tokens\":10" +
                   tail + "}"),
            "s.jsonl:3: prefix_tokens: found 10, expected less than input_tokens 10");
  EXPECT_EQ(second("{\"index\":1,\"t_intended_ns\":60,\"prefix_tokens\":1" + tail + "}"),
            "s.jsonl:3: prefix_tokens: found 1 without a prefix_group");
  EXPECT_EQ(second("{\"index\":1,\"t_intended_ns\":60" + tail + "}\n{}"),
            "s.jsonl:4: found no index");
  EXPECT_EQ(read_schedule("/nonexistent/s").error().code, ErrorCode::kEnvironment);
}

}  // namespace
}  // namespace prony::workload
