// Schedules beyond single requests: conversations, prefix blocks, group popularity, lengths by
// kernel density, mixtures and Zipf laws; and what a report says of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "prony/stats/kolmogorov.hpp"
#include "prony/stats/rank_correlation.hpp"
#include "prony/workload/schedule.hpp"
#include "prony/workload/schedule_report.hpp"

namespace prony::workload {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;

ScheduleOptions poisson(int64_t count, uint64_t seed = 1) {
  ScheduleOptions options;
  options.seed = seed;
  options.count = count;
  options.arrivals.rate_per_s = 10;
  options.lengths.input = LengthLaw::uniform(10, 1000).value();
  options.lengths.output = LengthLaw::lognormal(100, 0.7).value();
  return options;
}

Schedule generate(const ScheduleOptions& options) {
  auto schedule = generate_schedule(options);
  PRONY_CHECK(schedule.ok(), schedule.ok() ? "" : schedule.error().message);
  return *std::move(schedule);
}

// Correlated lengths with a long tail, one second apart.
std::shared_ptr<const Trace> correlated_trace(int n) {
  auto trace = std::make_shared<Trace>();
  trace->name = "correlated";
  core::Rng rng(77);
  for (int i = 0; i < n; ++i) {
    const double z = rng.normal(), w = 0.7 * z + 0.714 * rng.normal();
    TraceRow row;
    row.t_ns = i * kSecond;
    row.input_tokens = static_cast<int32_t>(std::max(1.0, 800 * std::exp(z)));
    row.output_tokens = static_cast<int32_t>(std::max(1.0, 150 * std::exp(0.6 * w)));
    trace->rows.push_back(row);
  }
  return trace;
}

TEST(Conversations, TurnsStandTogetherAndCarryTheirHistory) {
  auto options = poisson(0);
  options.sessions.turns = LengthLaw::uniform(1, 4).value();
  options.sessions.think = TimeLaw::parse("exponential:3", "--think-time").value();
  options.sessions.count = 300;
  const auto schedule = generate(options);
  std::map<int64_t, int> turns;
  double think_s = 0;
  int later = 0;
  for (size_t i = 0; i < schedule.entries.size(); ++i) {
    const auto& entry = schedule.entries[i];
    ASSERT_EQ(entry.index, static_cast<int64_t>(i));
    ASSERT_EQ(entry.turn, turns[entry.session]++);
    ASSERT_LT(entry.history_tokens, entry.input_tokens);
    if (entry.turn == 0) {
      ASSERT_EQ(entry.history_tokens, 0);
      ASSERT_EQ(entry.think_ns, 0);
      continue;
    }
    const auto& before = schedule.entries[i - 1];
    ASSERT_TRUE(schedule.has_next_turn(i - 1));
    ASSERT_EQ(entry.t_intended_ns, before.t_intended_ns);
    ASSERT_EQ(entry.history_tokens, before.input_tokens + before.output_tokens);
    think_s += static_cast<double>(entry.think_ns) / 1e9;
    ++later;
  }
  EXPECT_EQ(turns.size(), 300u);
  std::map<int, int> counts;
  for (const auto& [session, count] : turns) ++counts[count];
  EXPECT_EQ(counts.size(), 4u);
  EXPECT_NEAR(think_s / later, 3, 4 * 3 / std::sqrt(later));
  EXPECT_THAT(schedule.description,
              HasSubstr("300 conversations of uniform:1,4 turns, think time exponential:3 s"));
  // The starts are those of single requests: turns do not move them.
  options.sessions = {};
  options.count = 300;
  const auto single = generate(options);
  size_t at = 0;
  for (const auto& entry : schedule.entries) {
    if (entry.turn == 0) {
      ASSERT_EQ(entry.t_intended_ns, single.entries[at++].t_intended_ns);
    }
  }
  // And a schedule file keeps them.
  EXPECT_EQ(parse_schedule(write_schedule_text(schedule), "s").value(), schedule);
}

TEST(Conversations, TheLimitEndsAConversation) {
  auto options = poisson(0);
  options.lengths.input = LengthLaw::constant(100).value();
  options.lengths.output = LengthLaw::constant(50).value();
  options.sessions.turns = LengthLaw::constant(10).value();
  options.sessions.count = 3;
  options.scale.total_max = 450;  // three turns of 150
  const auto schedule = generate(options);
  EXPECT_EQ(schedule.entries.size(), 9u);
  EXPECT_THAT(schedule.description, HasSubstr("(21 turns beyond the limit left out)"));
  options.sessions.count = 0;
  options.count = 7;  // in the middle of a conversation
  EXPECT_EQ(generate(options).entries.size(), 7u);
}

TEST(Conversations, OfATraceAreTakenWhole) {
  auto trace = std::make_shared<Trace>();
  trace->name = "chat";
  trace->has_times = false;
  const auto add = [&](int64_t session, int32_t turn, int32_t input, int32_t output) {
    TraceRow row;
    row.session = session;
    row.turn = turn;
    row.input_tokens = input;
    row.output_tokens = output;
    trace->rows.push_back(row);
  };
  add(0, 0, 10, 5);
  add(0, 1, 20, 6);
  add(1, 0, 30, 7);
  ScheduleOptions options;
  options.count = 5;
  options.arrivals.kind = ArrivalKind::kAtOnce;
  options.lengths.kind = LengthOptions::Kind::kTraceInOrder;
  options.lengths.trace = trace;
  const auto schedule = generate(options);
  std::vector<std::vector<int64_t>> seen;
  for (const auto& e : schedule.entries) {
    seen.push_back({e.session, e.turn, e.input_tokens, e.history_tokens, e.output_tokens});
  }
  EXPECT_THAT(seen, ElementsAre(ElementsAre(0, 0, 10, 0, 5), ElementsAre(0, 1, 35, 15, 6),
                                ElementsAre(1, 0, 30, 0, 7), ElementsAre(2, 0, 10, 0, 5),
                                ElementsAre(2, 1, 35, 15, 6)));
  options.arrivals.kind = ArrivalKind::kTrace;
  options.arrivals.trace = trace;
  EXPECT_THAT(generate_schedule(options).error().message, HasSubstr("it has no times"));
}

TEST(ScheduleFileOfConversations, BrokenOrderIsRefused) {
  const std::string head =
      "{\"schema\":\"prony.schedule/1\",\"seed\":7,\"description\":\"d\",\"count\":2}\n";
  const auto error = [&](const std::string& first, const std::string& second) {
    const std::string t = ",\"t_intended_ns\":5,\"input_tokens\":10,\"output_tokens\":5";
    const auto schedule = parse_schedule(
        head + "{\"index\":0" + t + first + "}\n{\"index\":1" + t + second + "}", "s");
    return schedule ? "none" : schedule.error().message;
  };
  EXPECT_EQ(error(",\"session\":1", ",\"session\":1,\"turn\":1,\"think_ns\":9"), "none");
  EXPECT_THAT(error(",\"session\":1", ",\"session\":1,\"turn\":2"),
              HasSubstr("s:3: turn: found 2, expected 1"));
  EXPECT_THAT(error(",\"session\":1,\"turn\":1", ""), HasSubstr("s:2: turn: found 1, expected 0"));
  EXPECT_THAT(error(",\"session\":1", ""), HasSubstr("s:3: session: found none, expected one"));
  EXPECT_THAT(error(",\"history_tokens\":10", ""),
              HasSubstr("s:2: history_tokens: found 10, expected less than input_tokens 10"));
  EXPECT_THAT(error(",\"blocks\":[1]", ""), HasSubstr("no block_tokens in line 1"));
}

// Rows 0 and 1 share two leading blocks, row 2 none.
std::shared_ptr<const Trace> block_trace() {
  auto trace = std::make_shared<Trace>();
  trace->name = "blocks";
  trace->block_tokens = 512;
  const std::vector<std::vector<int64_t>> ids = {{0, 1, 2}, {0, 1, 3, 4}, {5}};
  const int32_t lengths[] = {1400, 1600, 300};
  for (size_t i = 0; i < ids.size(); ++i) {
    TraceRow row;
    row.t_ns = static_cast<int64_t>(i) * kSecond;
    row.input_tokens = lengths[i];
    row.output_tokens = 10;
    row.first_block = static_cast<int64_t>(trace->blocks.size());
    row.block_count = static_cast<int32_t>(ids[i].size());
    trace->blocks.insert(trace->blocks.end(), ids[i].begin(), ids[i].end());
    trace->rows.push_back(row);
  }
  return trace;
}

TEST(PrefixBlocks, GoFromTheTraceToTheScheduleAndItsFile) {
  ScheduleOptions options;
  options.arrivals.kind = ArrivalKind::kTrace;
  options.arrivals.trace = options.lengths.trace = block_trace();
  options.lengths.kind = LengthOptions::Kind::kTraceInOrder;
  const auto schedule = generate(options);
  EXPECT_EQ(schedule.block_tokens, 512);
  EXPECT_THAT(schedule.blocks_of(schedule.entries[1]), ElementsAre(0, 1, 3, 4));
  const auto text = write_schedule_text(schedule);
  EXPECT_THAT(text, HasSubstr("\"block_tokens\":512}"));
  EXPECT_THAT(text, HasSubstr("\"blocks\":[0,1,3,4]}"));
  const auto back = parse_schedule(text, "s").value();
  EXPECT_EQ(back, schedule);
  EXPECT_EQ(back.digest(), schedule.digest());
  auto other = schedule;
  other.blocks[2] = 9;
  EXPECT_NE(other.digest(), schedule.digest());
  // 1024 tokens of row 1 were seen in row 0.
  const auto report = report_schedule(schedule, &options);
  EXPECT_EQ(report.prefix->blocks, 6);
  EXPECT_NEAR(report.prefix->shared_fraction, 1024.0 / 3300, 1e-12);

  // A tenth of the lengths: blocks of 51 tokens, as many as begin within the prompt.
  options.scale.input_factor = 0.1;
  const auto small = generate(options);
  EXPECT_EQ(small.block_tokens, 51);
  EXPECT_EQ(small.entries[0].block_count, 3);
  options.scale.input_max = 60;
  EXPECT_EQ(generate(options).entries[0].block_count, 2);
}

TEST(PrefixGroups, ZipfPopularityIsItsLaw) {
  auto options = poisson(20'000);
  options.prefix = {.groups = 5, .tokens = 8, .zipf = 1.2};
  const auto schedule = generate(options);
  std::vector<double> counts(5);
  for (const auto& entry : schedule.entries) counts[static_cast<size_t>(entry.prefix_group)] += 1;
  double norm = 0;
  for (int k = 1; k <= 5; ++k) norm += std::pow(k, -1.2);
  for (int k = 1; k <= 5; ++k) {
    const double p = std::pow(k, -1.2) / norm, n = 20'000;
    EXPECT_NEAR(counts[static_cast<size_t>(k - 1)], n * p, 4 * std::sqrt(n * p * (1 - p)));
  }
  options.prefix.zipf = -1;
  EXPECT_THAT(generate_schedule(options).error().message, HasSubstr("Zipf exponent of -1"));
}

TEST(LengthLaws, ZipfAndMixturesFollowTheirLaws) {
  const auto zipf = LengthLaw::parse("zipf:1.5,100", "--input-len").value();
  core::Rng rng(3);
  constexpr int kDraws = 50'000;
  std::vector<double> counts(101);
  for (int i = 0; i < kDraws; ++i) counts.at(static_cast<size_t>(zipf.sample(rng))) += 1;
  double norm = 0;
  for (int k = 1; k <= 100; ++k) norm += std::pow(k, -1.5);
  for (const int k : {1, 2, 5, 20}) {
    const double p = std::pow(k, -1.5) / norm;
    EXPECT_NEAR(counts[static_cast<size_t>(k)] / kDraws, p, 4 * std::sqrt(p * (1 - p) / kDraws));
  }
  const auto mix = LengthLaw::parse("3*7+1*uniform:1000,2000", "--input-len").value();
  int sevens = 0;
  for (int i = 0; i < kDraws; ++i) {
    const int32_t x = mix.sample(rng);
    ASSERT_TRUE(x == 7 || (x >= 1000 && x <= 2000));
    sevens += x == 7;
  }
  EXPECT_NEAR(sevens / double{kDraws}, 0.75, 0.01);
  EXPECT_EQ(mix.describe(), "3*7+1*uniform:1000,2000");
  for (const char* bad : {"zipf:1", "zipf:-1,5", "zipf:1,0", "zipf:1,2000000", "zipf:1,x", "*7",
                          "0*7", "1*7+", "1*7+2", "1*2*3", "nan*7", "-1*7"}) {
    const auto law = LengthLaw::parse(bad, "--input-len");
    ASSERT_FALSE(law.ok()) << bad;
    EXPECT_THAT(law.error().message, HasSubstr("--input-len: ")) << bad;
  }
}

ScheduleOptions kde_options(LengthOptions::Kind kind, double bandwidth, bool log) {
  auto options = poisson(4000);
  options.lengths = {};
  options.lengths.kind = kind;
  options.lengths.trace = correlated_trace(4000);
  options.lengths.input_kde = options.lengths.output_kde = {bandwidth, log, 1};
  return options;
}

// Experiment E10: density of a trace's lengths; a test, not only means.
TEST(KernelDensity, LengthsLookLikeTheTraces) {
  const auto options = kde_options(LengthOptions::Kind::kTraceKde, 0, true);
  const auto schedule = generate(options);
  const auto report = report_schedule(schedule, &options);
  ASSERT_TRUE(report.trace.has_value());
  EXPECT_GT(report.trace->input_ks.p_value, 1e-3);
  EXPECT_GT(report.trace->output_ks.p_value, 1e-3);
  EXPECT_NEAR(report.input.mean / report.trace->input.mean, 1, 0.1);
  EXPECT_GE(report.input.min, 1);
  // Drawn apart, the pairs know nothing of each other; the report says so.
  EXPECT_GT(*report.trace->spearman, 0.5);
  EXPECT_LT(std::abs(*report.spearman), 0.06);
  EXPECT_LT(*report.trace->spearman_p, 1e-6);
  EXPECT_GT(report.gaps->ks->p_value, 1e-3);
  EXPECT_EQ(report.gaps->law, "exponential");
}

TEST(KernelDensity, PairsKeepTheirRankCorrelation) {
  const auto options = kde_options(LengthOptions::Kind::kTraceKdePairs, 0, true);
  const auto report = report_schedule(generate(options), &options);
  EXPECT_NEAR(*report.spearman, *report.trace->spearman, 0.05);
  EXPECT_GT(report.trace->input_ks.p_value, 1e-3);
}

// A bandwidth of 512 tokens is as wide as the body of the data: the means agree, the test does not.
TEST(KernelDensity, ATooWideBandwidthIsFoundOutByTheTest) {
  const auto options = kde_options(LengthOptions::Kind::kTraceKde, 512, false);
  const auto report = report_schedule(generate(options), &options);
  EXPECT_LT(report.trace->input_ks.p_value, 1e-6);
  EXPECT_NEAR(report.input.mean / report.trace->input.mean, 1, 0.1);
}

TEST(Report, TextAndJsonSayTheSame) {
  auto options = poisson(500);
  options.prefix = {.groups = 2, .tokens = 4};
  const auto schedule = generate(options);
  const auto report = report_schedule(schedule, &options);
  const auto json = schedule_report_to_json(report);
  EXPECT_EQ(json["schema"], "prony.schedule-report/1");
  EXPECT_EQ(json["requests"], 500);
  EXPECT_EQ(json["digest"], fmt::format("{:016x}", schedule.digest()));
  EXPECT_TRUE(json["trace"].is_null());
  EXPECT_TRUE(core::write_json(json).ok());
  double sum = 0;
  for (const auto& entry : schedule.entries) sum += entry.input_tokens;
  EXPECT_NEAR(json["input_tokens"]["mean"].get<double>(), sum / 500, 1e-9);
  EXPECT_NEAR(json["own_input_tokens"]["mean"].get<double>(), sum / 500 - 4, 1e-9);
  const auto text = schedule_report_text(report);
  for (const char* part : {"nothing was sent", "10/s asked", "against exponential: KS distance",
                           "2 groups", "rank correlation of prompt and answer"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  // From a file: no law to test against.
  const auto from_file = report_schedule(schedule, nullptr);
  EXPECT_FALSE(from_file.gaps->ks.has_value());
  EXPECT_FALSE(from_file.asked_rate_per_s.has_value());
}

TEST(TimeLaw, DrawsAndRefusals) {
  core::Rng rng(1);
  EXPECT_EQ(TimeLaw::parse("2.5", "-").value().sample_ns(rng), 2'500'000'000);
  const auto uniform = TimeLaw::parse("uniform:1,3", "-").value();
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto ns = uniform.sample_ns(rng);
    ASSERT_TRUE(ns >= kSecond && ns <= 3 * kSecond);
    sum += static_cast<double>(ns) / 1e9;
  }
  EXPECT_NEAR(sum / 10'000, 2, 0.03);
  const auto lognormal = TimeLaw::parse("lognormal:2,0.5", "-").value();
  int below = 0;
  for (int i = 0; i < 10'000; ++i) below += lognormal.sample_ns(rng) < 2 * kSecond;
  EXPECT_NEAR(below, 5000, 200);
  for (const char* bad : {"", "-1", "x", "uniform:3,1", "uniform:1", "exponential:1,2",
                          "normal:1,2", "nan", "1e9", "lognormal:1,99"}) {
    const auto law = TimeLaw::parse(bad, "--think-time");
    ASSERT_FALSE(law.ok()) << bad;
    EXPECT_THAT(law.error().message, HasSubstr("--think-time: found '"));
  }
}

}  // namespace
}  // namespace prony::workload
