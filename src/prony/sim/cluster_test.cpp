// The simulator against what is known: laws of conservation, limits, closed forms of queues, and
// itself stepped one by one.
#include "prony/sim/cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "prony/core/rng.hpp"
#include "prony/sim/replicate.hpp"

namespace prony::sim {
namespace {

using core::Nanos;
using record::RequestRow;

/// `step_ns` a step, `row_ns` a row, `token_ns` a token of it.
class PlainTime final : public emulate::StepTime {
 public:
  PlainTime(Nanos step_ns, Nanos row_ns, Nanos token_ns)
      : step_ns_(step_ns), row_ns_(row_ns), token_ns_(token_ns) {}
  Nanos step_ns(const emulate::StepLoad& load) override {
    return step_ns_ + row_ns_ * load.rows() + token_ns_ * load.tokens() + load.decode_keys / 64;
  }

 private:
  Nanos step_ns_, row_ns_, token_ns_;
};
StepTimeMaker plain(Nanos step_ns, Nanos row_ns, Nanos token_ns) {
  return [=]() -> Result<std::unique_ptr<emulate::StepTime>> {
    return std::unique_ptr<emulate::StepTime>(
        std::make_unique<PlainTime>(step_ns, row_ns, token_ns));
  };
}

ClusterOptions cluster(int32_t replicas) {
  ClusterOptions options;
  options.replicas = replicas;
  options.scheduler.block_count = 4096;
  options.scheduler.max_tokens_per_step = 2048;
  options.scheduler.max_sequences = 64;
  options.scheduler.max_context = 32'768;
  return options;
}

workload::Schedule poisson(int64_t count, double rate_per_s, uint64_t seed,
                           const std::function<void(core::Rng&, workload::ScheduleEntry&)>& fill) {
  workload::Schedule schedule;
  core::Rng arrivals(seed, 1), lengths(seed, 2);
  double t_s = 0;
  for (int64_t i = 0; i < count; ++i) {
    workload::ScheduleEntry entry;
    entry.index = i;
    t_s += arrivals.exponential() / rate_per_s;
    entry.t_intended_ns = static_cast<Nanos>(t_s * 1e9);
    entry.input_tokens = entry.output_tokens = 1;
    fill(lengths, entry);
    schedule.entries.push_back(entry);
  }
  return schedule;
}

workload::Schedule mixed(int64_t count, double rate_per_s, uint64_t seed) {
  return poisson(count, rate_per_s, seed, [](core::Rng& rng, workload::ScheduleEntry& entry) {
    entry.input_tokens = static_cast<int32_t>(1 + rng.below(3000));
    entry.output_tokens = static_cast<int32_t>(1 + rng.below(200));
    entry.prefix_group = static_cast<int32_t>(rng.below(4));
    entry.prefix_tokens = entry.input_tokens / 2;
  });
}

struct Played {
  std::vector<RequestRow> rows;
  ClusterTotals totals;
};
Played play(const workload::Schedule& schedule, const ClusterOptions& options,
            const StepTimeMaker& time) {
  Played out;
  auto totals = simulate(schedule, options, time,
                         [&](RequestRow&& row) { out.rows.push_back(std::move(row)); });
  EXPECT_TRUE(totals.ok()) << totals.error().message;
  if (totals.ok()) out.totals = *totals;
  std::sort(out.rows.begin(), out.rows.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  return out;
}

TEST(Cluster, ALoneRequestTakesItsSteps) {
  auto options = cluster(1);
  options.request_s = 0.01;
  workload::Schedule schedule;
  workload::ScheduleEntry entry;
  entry.t_intended_ns = 5'000'000;
  entry.input_tokens = 3000;  // two chunks
  entry.output_tokens = 4;
  schedule.entries = {entry};
  const auto [rows, totals] = play(schedule, options, plain(1'000'000, 0, 0));
  ASSERT_EQ(rows.size(), 1u);
  const auto& row = rows[0];
  EXPECT_EQ(row.status, record::Status::kOk);
  EXPECT_EQ(row.t_send_ns, 5'000'000);
  EXPECT_EQ(row.t_first_token_ns, 5'000'000 + 10'000'000 + 2'000'000);
  EXPECT_EQ(row.output_tokens, 4);
  EXPECT_EQ(row.events.size(), 4u);
  // Three more steps, and what reading 3000 to 3002 keys takes.
  EXPECT_EQ(row.t_last_token_ns, *row.t_first_token_ns + 3 * (1'000'000 + 46));
  EXPECT_EQ(totals.steps, 5);
  EXPECT_EQ(totals.scheduled_tokens, 3003);
}

TEST(Cluster, MacroStepsAreSingleSteps) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const auto schedule = mixed(300, seed % 2 == 0 ? 400 : 20, seed);
    auto options = cluster(seed % 3 == 0 ? 3 : 1);
    options.router = static_cast<RouterKind>(seed % 6);
    options.request_s = seed % 4 == 0 ? 0 : 0.003;
    options.scheduler.block_count = seed % 5 == 0 ? 256 : 4096;  // with preemption
    options.noise_cv = seed % 7 == 0 ? 0.2 : 0;
    options.seed = seed;
    if (seed % 4 == 1) options.max_concurrency = 20;
    const auto many = play(schedule, options, plain(2'000'000, 10'000, 5'000));
    options.macro_steps = false;
    const auto single = play(schedule, options, plain(2'000'000, 10'000, 5'000));
    EXPECT_EQ(many.rows, single.rows) << seed;
    EXPECT_EQ(many.totals.steps, single.totals.steps) << seed;
    EXPECT_EQ(many.totals.scheduled_tokens, single.totals.scheduled_tokens) << seed;
    EXPECT_LE(many.totals.events, single.totals.events) << seed;
  }
}

TEST(Cluster, NothingIsLostOrMade) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    auto schedule = mixed(400, 200, seed);
    schedule.entries[7].input_tokens = 40'000;  // longer than any context: refused
    auto options = cluster(2);
    options.router = static_cast<RouterKind>(seed % 6);
    options.scheduler.block_count = seed % 2 == 0 ? 220 : 4096;
    if (seed % 3 == 0) {
      options.closed_loop = true;
      options.max_concurrency = 16;
    }
    const auto [rows, totals] = play(schedule, options, plain(2'000'000, 10'000, 5'000));
    ASSERT_EQ(rows.size(), 400u);
    EXPECT_EQ(totals.finished, seed % 2 == 0 ? totals.finished : 399);
    EXPECT_EQ(totals.finished + totals.refused, 400);
    int64_t tokens = 0;
    for (const auto& row : rows) {
      const auto& entry = schedule.entries[static_cast<size_t>(row.index)];
      if (row.status != record::Status::kOk) {
        EXPECT_FALSE(row.error.empty());
        continue;
      }
      EXPECT_EQ(row.output_tokens, entry.output_tokens);
      EXPECT_EQ(static_cast<int32_t>(row.events.size()), entry.output_tokens);
      EXPECT_TRUE(std::is_sorted(row.events.begin(), row.events.end(),
                                 [](auto& a, auto& b) { return a.t_kernel_ns < b.t_kernel_ns; }));
      EXPECT_LE(*row.t_send_ns, *row.t_first_token_ns);
      tokens += *row.output_tokens;
    }
    EXPECT_EQ(totals.output_tokens, tokens);
    Nanos busy = 0;
    for (const auto& replica : totals.replicas) busy += replica.busy_ns;
    EXPECT_LE(busy, 2 * totals.end_ns);
  }
}

TEST(Cluster, MoreReplicasNeverHurtTheMeanAndZeroLoadIsAlone) {
  const auto mean_e2e = [](const Played& played) {
    double sum = 0;
    for (const auto& row : played.rows) {
      sum += static_cast<double>(*row.t_done_ns - row.t_intended_ns);
    }
    return sum / static_cast<double>(played.rows.size());
  };
  const auto schedule = mixed(600, 60, 3);
  double before = 1e300;
  for (const int32_t replicas : {1, 2, 4, 8}) {
    auto options = cluster(replicas);
    options.router = RouterKind::kLeastOutstanding;
    const double now = mean_e2e(play(schedule, options, plain(2'000'000, 100'000, 5'000)));
    EXPECT_LE(now, before) << replicas;
    before = now;
  }
}

// One replica that serves one request at a time, first come first served: 1 us a prompt token, one
// output.
ClusterOptions single_server(int32_t replicas) {
  auto options = cluster(replicas);
  options.scheduler.max_sequences = 1;
  options.scheduler.max_tokens_per_step = options.scheduler.max_context = 60'000;
  options.token_events = false;
  return options;
}
double mean_wait_s(const workload::Schedule& schedule, const ClusterOptions& options) {
  double sum = 0;
  auto totals = simulate(schedule, options, plain(0, 0, 1000), [&](RequestRow&& row) {
    const auto& entry = schedule.entries[static_cast<size_t>(row.index)];
    sum += static_cast<double>(*row.t_first_token_ns - row.t_intended_ns) / 1e9 -
           static_cast<double>(entry.input_tokens) / 1e6;
  });
  EXPECT_TRUE(totals.ok()) << totals.error().message;
  return sum / static_cast<double>(schedule.entries.size());
}

constexpr int64_t kMany = 1'000'000;

TEST(Queues, MeanWaitOfMD1) {
  const double service_s = 0.001, rho = 0.6;
  const auto schedule =
      poisson(kMany, rho / service_s, 11, [](auto&, auto& entry) { entry.input_tokens = 1000; });
  const double expected = rho * service_s / (2 * (1 - rho));
  EXPECT_NEAR(mean_wait_s(schedule, single_server(1)) / expected, 1, 0.01);
}

// Exponential service in whole microseconds: the mean of the rounded ones is used.
workload::Schedule exponential_work(double rate_per_s, uint64_t seed, double& mean_s, double& m2) {
  const auto schedule = poisson(kMany, rate_per_s, seed, [](core::Rng& rng, auto& entry) {
    entry.input_tokens =
        std::clamp(static_cast<int32_t>(rng.exponential() * 1000 + 0.5), 1, 50'000);
  });
  mean_s = m2 = 0;
  for (const auto& entry : schedule.entries) {
    const double s = entry.input_tokens / 1e6;
    mean_s += s;
    m2 += s * s;
  }
  mean_s /= static_cast<double>(kMany);
  m2 /= static_cast<double>(kMany);
  return schedule;
}

TEST(Queues, MeanWaitOfMM1) {
  double mean_s = 0, m2 = 0;
  const auto schedule = exponential_work(500, 12, mean_s, m2);
  // Pollaczek-Khinchine with the moments and the rate that were drawn.
  const double rate =
      static_cast<double>(kMany) / core::to_seconds(schedule.entries.back().t_intended_ns);
  const double expected = rate * m2 / (2 * (1 - rate * mean_s));
  EXPECT_NEAR(mean_wait_s(schedule, single_server(1)) / expected, 1, 0.01);
  EXPECT_NEAR(expected / (rate * mean_s * mean_s / (1 - rate * mean_s)), 1, 0.01);  // M/M/1's own
}

TEST(Queues, MeanWaitAndShareThatWaitsOfMMcAreErlangs) {
  constexpr int32_t kServers = 4;
  double mean_s = 0, m2 = 0;
  const auto schedule = exponential_work(2800, 13, mean_s, m2);
  auto options = single_server(kServers);
  options.router = RouterKind::kLeastOutstanding;
  options.max_concurrency = kServers;  // one queue for all: a request goes where a server is free
  const double rate =
      static_cast<double>(kMany) / core::to_seconds(schedule.entries.back().t_intended_ns);
  const double a = rate * mean_s, rho = a / kServers;
  double term = 1, sum = 0;
  for (int k = 0; k < kServers; ++k) {
    sum += term;
    term *= a / (k + 1);
  }
  const double erlang_c = term / (1 - rho) / (sum + term / (1 - rho));
  int64_t waited = 0;
  double wait_s = 0;
  auto totals = simulate(schedule, options, plain(0, 0, 1000), [&](RequestRow&& row) {
    waited += *row.t_send_ns > row.t_intended_ns ? 1 : 0;
    wait_s += core::to_seconds(*row.t_send_ns - row.t_intended_ns);
  });
  ASSERT_TRUE(totals.ok()) << totals.error().message;
  EXPECT_NEAR(static_cast<double>(waited) / kMany / erlang_c, 1, 0.01);
  EXPECT_NEAR(wait_s / kMany / (erlang_c * mean_s / (kServers * (1 - rho))), 1, 0.015);
}

TEST(Queues, ProcessorSharingTakesTheMeanOverOneMinusTheLoad) {
  // Every step takes 10 us a row and gives each row a token: the rows share the device evenly.
  auto options = cluster(1);
  options.scheduler.max_sequences = 512;
  options.scheduler.block_count = 40'000;
  options.token_events = false;
  const auto schedule = poisson(200'000, 500, 14, [](core::Rng& rng, auto& entry) {
    entry.output_tokens = rng.below(2) == 0 ? 20 : 220;  // 1.2 ms alone on average
  });
  double sojourn_s = 0, work_s = 0;
  const StepTimeMaker time = [] {
    class Shared final : public emulate::StepTime {
      Nanos step_ns(const emulate::StepLoad& load) override { return 10'000 * load.rows(); }
    };
    return Result<std::unique_ptr<emulate::StepTime>>(
        std::unique_ptr<emulate::StepTime>(std::make_unique<Shared>()));
  };
  auto totals = simulate(schedule, options, time, [&](RequestRow&& row) {
    sojourn_s += core::to_seconds(*row.t_done_ns - row.t_intended_ns);
    work_s += *row.output_tokens * 1e-5;
  });
  ASSERT_TRUE(totals.ok());
  const auto n = static_cast<double>(schedule.entries.size());
  const double rate = n / core::to_seconds(schedule.entries.back().t_intended_ns);
  const double expected = work_s / n / (1 - rate * work_s / n);
  EXPECT_NEAR(sojourn_s / n / expected, 1, 0.02);  // 200,000 arrivals, and steps are no fluid
}

TEST(Replications, AreTheSameForAnyNumberOfThreads) {
  const auto options = cluster(2);
  const auto make = [](uint64_t seed) -> Result<workload::Schedule> {
    return mixed(200, 100, seed);
  };
  std::vector<RequestRow> first;
  for (const int threads : {1, 2, 8}) {
    const auto runs = replicate(5, threads, options, plain(2'000'000, 10'000, 5'000), make);
    ASSERT_TRUE(runs.ok());
    auto rows = pooled(*runs);
    ASSERT_EQ(rows.size(), 1000u);
    if (first.empty()) first = rows;
    EXPECT_EQ(rows, first) << threads;
  }
  EXPECT_NE(first[0].t_done_ns, first[200].t_done_ns);
}

TEST(Router, KeepsWhatItPromises) {
  std::vector<ReplicaView> views(4);
  Router around(RouterKind::kRoundRobin, 1);
  std::map<int32_t, int> seen;
  views[2].up = false;
  for (int i = 0; i < 30; ++i) ++seen[around.choose(views, -1, -1)];
  EXPECT_THAT(seen, ::testing::ElementsAre(::testing::Pair(0, 10), ::testing::Pair(1, 10),
                                           ::testing::Pair(3, 10)));
  views[0].live = 5;
  views[1].live = 3;
  views[3].live = 4;
  EXPECT_EQ(Router(RouterKind::kLeastOutstanding, 1).choose(views, -1, -1), 1);
  Router session(RouterKind::kSession, 1);
  EXPECT_EQ(session.choose(views, 77, -1), 1);
  views[1].live = 100;
  EXPECT_EQ(session.choose(views, 77, -1), 1);
  EXPECT_EQ(session.choose(views, 78, -1), 3);
  views[1].up = false;
  EXPECT_EQ(session.choose(views, 77, -1), 3);
  Router prefix(RouterKind::kPrefix, 1);
  EXPECT_EQ(prefix.choose(views, -1, 5), 3);
  views[3].live = 6;
  EXPECT_EQ(prefix.choose(views, -1, 5), 3);
  views[3].live = 50;
  EXPECT_EQ(prefix.choose(views, -1, 5), 0);
  for (auto& view : views) view.up = false;
  EXPECT_EQ(around.choose(views, -1, -1), -1);
  EXPECT_FALSE(parse_router("best").ok());
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(parse_router(router_name(static_cast<RouterKind>(i))).value(),
              static_cast<RouterKind>(i));
  }
}

}  // namespace
}  // namespace prony::sim
