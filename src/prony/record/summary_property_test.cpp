// The summary against a second implementation, written from the definitions alone: float64, no
// shared code but the row itself, every quantity by the most literal form (a list of every token
// with its instant, sorts, sums). Thousands of random sets of rows.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "prony/record/random_rows.hpp"
#include "prony/record/summary.hpp"

namespace prony::record {
namespace {

using core::Nanos;
using Values = std::vector<double>;

bool is_inside(Nanos t, Nanos begin, Nanos end) {
  return t >= begin && t <= end;
}
double ms(Nanos ns) {
  return static_cast<double>(ns) / 1e6;
}

// The widest-in pair of ranks with at most 2.5 % beyond each, by log-gamma of libm.
std::optional<std::pair<int64_t, int64_t>> brute_ranks(int64_t n, double q) {
  using Long = long double;
  std::vector<Long> up_to;  // [k]: P(X <= k)
  Long sum = 0;
  for (int64_t k = 0; k <= n; ++k) {
    const Long choose = std::lgamma(static_cast<Long>(n + 1)) -
                        std::lgamma(static_cast<Long>(k + 1)) -
                        std::lgamma(static_cast<Long>(n - k + 1));
    sum += std::exp(choose + static_cast<Long>(k) * std::log(static_cast<Long>(q)) +
                    static_cast<Long>(n - k) * std::log1p(-static_cast<Long>(q)));
    up_to.push_back(sum);
  }
  const auto at = [&](int64_t k) { return k < 0 ? Long{0} : up_to[static_cast<size_t>(k)]; };
  int64_t lower = 0, upper = n + 1;
  while (lower + 1 <= n && at(lower) < 0.025L) ++lower;
  while (upper - 1 >= 1 && 1 - at(upper - 2) <= 0.025L) --upper;
  if (lower < 1 || upper > n) return std::nullopt;
  return std::pair(lower, upper);
}

struct Brute {
  Values values;               // one latency, all requests
  std::vector<Values> groups;  // the same by request, if it has many a request
};

void compare_latency(const char* name, const LatencyStats& found, Brute expected, bool intervals) {
  SCOPED_TRACE(name);
  auto& values = expected.values;
  const auto n = static_cast<int64_t>(values.size());
  ASSERT_EQ(found.n, n);
  if (n == 0) {
    ASSERT_EQ(found, (LatencyStats{.n = 0}));
    return;
  }
  std::sort(values.begin(), values.end());
  long double sum = 0, square = 0;
  for (const double value : values) sum += value;
  const long double mean = sum / static_cast<long double>(n);
  for (const double value : values) square += (value - mean) * (value - mean);
  const double scale = std::max(std::fabs(values.front()), std::fabs(values.back())) + 1e-12;
  ASSERT_NEAR(*found.mean, static_cast<double>(mean), 1e-12 * scale);
  ASSERT_EQ(found.sd.has_value(), n > 1);
  if (n > 1) {
    ASSERT_NEAR(*found.sd, static_cast<double>(std::sqrt(square / static_cast<long double>(n - 1))),
                1e-7 * scale);
  }
  ASSERT_EQ(*found.min, values.front());
  ASSERT_EQ(*found.max, values.back());
  const std::tuple<double, std::optional<double>, int64_t> levels[] = {
      {0.5, found.p50, 1},           {0.75, found.p75, 1},    {0.9, found.p90, 100},
      {0.95, found.p95, 200},        {0.99, found.p99, 1000}, {0.999, found.p999, 10000},
      {0.9999, found.p9999, 100'000}};
  for (const auto& [q, value, needed] : levels) {
    ASSERT_EQ(value.has_value(), n >= needed) << q;
    if (!value) continue;
    const double position = q * static_cast<double>(n - 1);
    const auto i = static_cast<size_t>(std::floor(position));
    const double next = values[std::min(i + 1, values.size() - 1)];
    ASSERT_NEAR(*value, values[i] + (next - values[i]) * (position - std::floor(position)),
                1e-9 * scale);
  }
  if (!intervals) return;
  const std::tuple<double, std::optional<double>, std::optional<stats::Interval>> bounds[] = {
      {0.5, found.p50, found.ci95.p50},
      {0.9, found.p90, found.ci95.p90},
      {0.95, found.p95, found.ci95.p95},
      {0.99, found.p99, found.ci95.p99},
      {0.999, found.p999, found.ci95.p999}};
  for (const auto& [q, value, interval] : bounds) {
    if (!value) {
      ASSERT_FALSE(interval.has_value());
      continue;
    }
    int64_t worth = n;
    if (!expected.groups.empty() || found.n != n) {
      double spread = 0, groups = 0, share = 0;
      for (const double v : values) share += v <= *value ? 1.0 / static_cast<double>(n) : 0;
      for (const auto& group : expected.groups) {
        if (group.empty()) continue;
        double below = 0;
        for (const double v : group) below += v <= *value ? 1 : 0;
        spread += std::pow(below - share * static_cast<double>(group.size()), 2);
        ++groups;
      }
      if (groups < 2) {
        ASSERT_FALSE(interval.has_value());
        continue;
      }
      const double variance = spread * groups / (groups - 1) / static_cast<double>(n * n);
      const double effect = variance / (q * (1 - q) / static_cast<double>(n));
      // A whole number of samples: keep away from where rounding would decide it.
      const double exact = static_cast<double>(n) / std::max(1.0, effect);
      if (effect > 1 && std::fabs(exact - std::round(exact)) < 1e-6) continue;
      worth = std::max<int64_t>(1, static_cast<int64_t>(exact));
    }
    auto ranks = brute_ranks(worth, q);
    ASSERT_EQ(interval.has_value(), ranks.has_value()) << q << " of " << worth;
    if (!ranks) continue;
    if (worth < n) {
      ranks->first = (ranks->first - 1) * n / worth + 1;
      ranks->second = std::min(n, (ranks->second * n + worth - 1) / worth);
    }
    ASSERT_EQ(interval->lower, values[static_cast<size_t>(ranks->first - 1)]) << q;
    ASSERT_EQ(interval->upper, values[static_cast<size_t>(ranks->second - 1)]) << q;
  }
}

// Every token of a request with its instant, as a weight; the weights sum to N.
std::vector<std::pair<Nanos, double>> token_list(const RequestRow& row) {
  std::vector<std::pair<Nanos, double>> out;
  double known = 0, unit = 0;
  for (const auto& event : row.events) {
    known += std::max(1, event.tokens);
    unit += row.tokens_per_event_exact ? event.tokens : 1;
  }
  const double n = row.output_tokens ? *row.output_tokens : known;
  for (const auto& event : row.events) {
    const double weight = row.tokens_per_event_exact && unit > 0 ? event.tokens : 1;
    const double total = unit > 0 ? unit : static_cast<double>(row.events.size());
    out.emplace_back(event.t_kernel_ns, n * weight / total);
  }
  return out;
}

Values brute_itl(const RequestRow& row) {
  Values out;
  if (!row.tokens_per_event_exact) {
    for (size_t i = 1; i < row.events.size(); ++i) {
      out.push_back(ms(row.events[i].t_kernel_ns - row.events[i - 1].t_kernel_ns));
    }
    return out;
  }
  std::optional<Nanos> last;
  for (const auto& event : row.events) {
    if (event.tokens == 0) continue;
    for (int k = 0; last && k < event.tokens; ++k) {
      out.push_back(ms(event.t_kernel_ns - *last) / event.tokens);
    }
    last = event.t_kernel_ns;
  }
  return out;
}

std::optional<double> brute_tpot(const RequestRow& row) {
  if (!row.output_tokens || !row.t_last_token_ns) return std::nullopt;
  const int divisor =
      *row.output_tokens - (row.first_event_tokens > 0 ? row.first_event_tokens : 1);
  if (divisor < 1) return std::nullopt;
  return ms(*row.t_last_token_ns - *row.t_first_token_ns) / divisor;
}

void compare_run(const std::vector<RequestRow>& rows, const SummaryOptions& options,
                 bool intervals) {
  const Metrics found = summarize(rows, options);

  // Window, word for word.
  Nanos first = rows[0].t_intended_ns, last = rows[0].t_intended_ns, end_of_run = INT64_MIN;
  std::optional<Nanos> last_completion;
  for (const auto& row : rows) {
    first = std::min(first, row.t_intended_ns);
    last = std::max(last, row.t_intended_ns);
    Nanos end = row.t_intended_ns;
    for (const auto& t : {row.t_connect_ns, row.t_sent_ns, row.t_headers_ns, row.t_first_event_ns,
                          row.t_last_token_ns, row.t_done_ns, row.t_close_ns, row.t_send_ns}) {
      if (t) end = std::max(end, *t);
    }
    end_of_run = std::max(end_of_run, end);
    if (row.status == Status::kOk) {
      last_completion = std::max(last_completion.value_or(0), *row.t_last_token_ns);
    }
  }
  const Nanos begin = options.window_begin_ns.value_or(first);
  Nanos end = 0;
  if (options.window_end_ns) {
    end = std::max(begin, *options.window_end_ns);
  } else if (options.open_loop && last > begin) {
    end = last;
  } else {
    end = std::max({begin, last, last_completion.value_or(end_of_run)});
  }
  const double window_s = static_cast<double>(end - begin) / 1e9;
  const double duration_s = static_cast<double>(end_of_run - first) / 1e9;
  ASSERT_NEAR(*found.window_s, window_s, 1e-12);
  ASSERT_NEAR(*found.duration_s, duration_s, 1e-12);

  double output = 0, output_run = 0, input = 0, completions = 0, good_tokens = 0, busy = 0;
  int64_t attempted = 0, completed = 0, good = 0, undefined = 0, merged = 0, events = 0;
  std::map<std::string, int64_t> errors, http_errors, sources;
  std::map<std::string, Brute> latency;
  for (const auto& row : rows) {
    for (const auto& [t, weight] : token_list(row)) {
      output_run += weight;
      if (is_inside(t, begin, end)) output += weight;
    }
    const bool ok = row.status == Status::kOk;
    if (row.t_first_token_ns && is_inside(*row.t_first_token_ns, begin, end)) {
      input += row.prompt_tokens ? *row.prompt_tokens : row.input_tokens_asked;
    }
    if (ok && is_inside(*row.t_last_token_ns, begin, end)) ++completions;
    if (row.t_send_ns) {
      Nanos until = row.t_intended_ns;
      for (const auto& t : {row.t_sent_ns, row.t_send_ns, row.t_headers_ns, row.t_last_token_ns,
                            row.t_done_ns, ok ? std::nullopt : row.t_close_ns}) {
        if (t) until = std::max(until, *t);
      }
      for (const auto& t : {row.t_first_event_ns}) {
        if (t) until = std::max(until, *t);
      }
      busy += std::max(0.0, static_cast<double>(std::min(until, end)) -
                                static_cast<double>(std::max(*row.t_send_ns, begin)));
    }
    if (!is_inside(row.t_intended_ns, begin, end)) continue;
    ++attempted;
    merged += row.merged_events;
    events += static_cast<int64_t>(row.events.size());
    if (row.t_send_ns) latency["send_lag"].values.push_back(ms(*row.t_send_ns - row.t_intended_ns));
    if (row.t_connect_ns) {
      latency["connect"].values.push_back(ms(*row.t_connect_ns - *row.t_connect_begin_ns));
    }
    auto& lags = latency["read_lag"].groups.emplace_back();
    for (const auto& event : row.events) {
      lags.push_back(ms(event.t_user_ns - event.t_kernel_ns));
      latency["read_lag"].values.push_back(lags.back());
    }
    if (!ok) {
      ++errors[status_name(row.status)];
      if (row.http_status && *row.http_status / 100 != 2) {
        ++http_errors[std::to_string(*row.http_status)];
      }
      continue;
    }
    ++completed;
    ++sources[token_source_name(row.token_source)];
    const double ttft = ms(*row.t_first_token_ns - *row.t_send_ns);
    const double e2e = ms(*row.t_last_token_ns - *row.t_send_ns);
    latency["ttft"].values.push_back(ttft);
    latency["e2e"].values.push_back(e2e);
    latency["ttft_intended"].values.push_back(ms(*row.t_first_token_ns - row.t_intended_ns));
    latency["e2e_intended"].values.push_back(ms(*row.t_last_token_ns - row.t_intended_ns));
    latency["ttfe"].values.push_back(ms(*row.t_first_event_ns - *row.t_send_ns));
    latency["ttfo"].values.push_back(ms(*row.t_first_output_ns - *row.t_send_ns));
    const auto tpot = brute_tpot(row);
    if (tpot) latency["tpot"].values.push_back(*tpot);
    if (tpot && *tpot > 0) latency["user"].values.push_back(1000 / *tpot);
    undefined += !tpot;
    if (ttft > 0) {
      latency["prefill"].values.push_back(
          (row.prompt_tokens ? *row.prompt_tokens : row.input_tokens_asked) / ttft * 1000);
    }
    if (row.output_tokens) latency["ntpot"].values.push_back(e2e / *row.output_tokens);
    if (row.output_tokens && *row.output_tokens > 1) {
      latency["tpot_vllm"].values.push_back(ms(*row.t_last_token_ns - *row.t_first_token_ns) /
                                            (*row.output_tokens - 1));
    }
    const auto itl = brute_itl(row);
    latency["itl"].groups.push_back(itl);
    latency["itl"].values.insert(latency["itl"].values.end(), itl.begin(), itl.end());
    auto& icl = latency["icl"].groups.emplace_back();
    for (size_t i = 1; i < row.events.size(); ++i) {
      icl.push_back(ms(row.events[i].t_kernel_ns - row.events[i - 1].t_kernel_ns));
      latency["icl"].values.push_back(icl.back());
    }
    const auto& slo = options.goodput;
    if ((!slo.ttft_ms || ttft <= *slo.ttft_ms) && (!slo.e2e_ms || e2e <= *slo.e2e_ms) &&
        (!slo.tpot_ms || !tpot || *tpot <= *slo.tpot_ms)) {
      ++good;
      for (const auto& [t, weight] : token_list(row)) good_tokens += weight;
    }
  }

  ASSERT_EQ(found.attempted, attempted);
  ASSERT_EQ(found.completed, completed);
  ASSERT_EQ(found.failed, attempted - completed);
  ASSERT_EQ(found.errors, errors);
  ASSERT_EQ(found.http_errors, http_errors);
  ASSERT_EQ(found.token_sources, sources);
  ASSERT_EQ(found.token_source_mixed, sources.size() > 1);
  ASSERT_EQ(found.tpot_undefined, undefined);
  ASSERT_EQ(found.merged_events, merged);
  ASSERT_EQ(found.token_events, events);
  const auto compare_rate = [&](const char* name, const std::optional<double>& rate, double amount,
                                double over_s) {
    ASSERT_EQ(rate.has_value(), over_s > 0) << name;
    if (rate) {
      ASSERT_NEAR(*rate, amount / over_s, 1e-9 * (1 + amount / over_s)) << name;
    }
  };
  compare_rate("output", found.output_throughput, output, window_s);
  compare_rate("output_run", found.output_throughput_run, output_run, duration_s);
  compare_rate("total", found.total_throughput, input + output, window_s);
  compare_rate("requests", found.request_throughput, completions, window_s);
  compare_rate("concurrency", found.concurrency_mean, busy / 1e9, window_s);
  if (!options.goodput.empty()) {
    compare_rate("goodput", found.goodput, static_cast<double>(good), window_s);
    compare_rate("good tokens", found.goodput_output_throughput, good_tokens, window_s);
    ASSERT_EQ(found.goodput_fraction.has_value(), attempted > 0);
    if (attempted > 0) {
      ASSERT_NEAR(*found.goodput_fraction,
                  static_cast<double>(good) / static_cast<double>(attempted), 1e-12);
    }
  }
  const std::pair<const char*, const LatencyStats*> all[] = {
      {"ttft", &found.ttft_ms},
      {"tpot", &found.tpot_ms},
      {"itl", &found.itl_ms},
      {"icl", &found.icl_ms},
      {"e2e", &found.e2e_ms},
      {"ttft_intended", &found.ttft_intended_ms},
      {"e2e_intended", &found.e2e_intended_ms},
      {"send_lag", &found.send_lag_ms},
      {"read_lag", &found.read_lag_ms},
      {"ttfe", &found.ttfe_ms},
      {"ttfo", &found.ttfo_ms},
      {"ntpot", &found.ntpot_ms},
      {"tpot_vllm", &found.tpot_vllm_ms},
      {"connect", &found.connect_ms},
      {"user", &found.user_tokens_per_s},
      {"prefill", &found.prefill_tokens_per_s}};
  for (const auto& [name, stats] : all) {
    compare_latency(name, *stats, latency[name], intervals);
    if (::testing::Test::HasFatalFailure()) return;
  }
  ASSERT_FALSE(found.queue_ms.known());
}

SummaryOptions random_options(core::Rng& rng, Nanos span_ns) {
  SummaryOptions options;
  options.open_loop = rng.below(2) == 0;
  const auto instant = [&](uint64_t parts) {
    return static_cast<Nanos>(rng.below(static_cast<uint64_t>(span_ns))) /
           static_cast<Nanos>(parts);
  };
  if (rng.below(3) == 0) options.window_begin_ns = instant(4);
  if (rng.below(3) == 0) options.window_end_ns = instant(1);
  if (rng.below(2) == 0) options.goodput.ttft_ms = 100 * rng.uniform_open();
  if (rng.below(2) == 0) options.goodput.tpot_ms = 30 * rng.uniform_open();
  if (rng.below(3) == 0) options.goodput.e2e_ms = 1000 * rng.uniform_open();
  return options;
}

TEST(SummaryProperty, AgreesWithBruteForceOnThousandsOfSmallRuns) {
  core::Rng rng(2026);
  for (int round = 0; round < 4'000; ++round) {
    SCOPED_TRACE(round);
    const Nanos span = 1 + static_cast<Nanos>(rng.below(3'000'000'000));
    const auto rows = random_rows(rng, static_cast<int64_t>(1 + rng.below(25)), span);
    const auto options = random_options(rng, span);
    compare_run(rows, options, round % 20 == 0);
    if (HasFatalFailure()) return;
  }
}

TEST(SummaryProperty, AgreesWithBruteForceOnLargerRuns) {
  core::Rng rng(2027);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const auto rows = random_rows(rng, 1600, 5'000'000'000);
    compare_run(rows, random_options(rng, 5'000'000'000), round < 4);
    if (HasFatalFailure()) return;
  }
}

// Beyond the limit of kept values a histogram answers: counts and moments stay exact, percentiles
// are late by at most 0.1 %.
TEST(SummaryProperty, HistogramModeIsWithinATenthOfAPercentOfARank) {
  core::Rng rng(2028);
  const auto rows = random_rows(rng, 800, 5'000'000'000);
  const auto exact = summarize(rows, {});
  const auto approximate = summarize(rows, {.exact_values_max = 1000});
  EXPECT_EQ(exact.approximate, "");
  EXPECT_EQ(approximate.approximate, "itl_ms icl_ms read_lag_ms");
  EXPECT_EQ(approximate.ttft_ms, exact.ttft_ms);  // few enough to keep
  Values gaps;
  for (const auto& row : rows) {
    if (row.status != Status::kOk) continue;
    const auto itl = brute_itl(row);
    gaps.insert(gaps.end(), itl.begin(), itl.end());
  }
  std::sort(gaps.begin(), gaps.end());
  const auto& found = approximate.itl_ms;
  EXPECT_EQ(found.n, exact.itl_ms.n);
  EXPECT_EQ(found.mean, exact.itl_ms.mean);
  EXPECT_EQ(found.max, exact.itl_ms.max);
  for (const auto& [q, value] : {std::pair{0.5, found.p50}, {0.9, found.p90}, {0.99, found.p99}}) {
    const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(gaps.size())));
    ASSERT_GE(*value, gaps[rank - 1] - 1e-6);
    ASSERT_LE(*value, gaps[rank - 1] * 1.001 + 1e-6);
  }
  EXPECT_NEAR(found.ci95.p50->lower, exact.itl_ms.ci95.p50->lower, 0.02 * *found.p50);
  EXPECT_NEAR(found.ci95.p90->upper, exact.itl_ms.ci95.p90->upper, 0.02 * *found.p90);
}

}  // namespace
}  // namespace prony::record
