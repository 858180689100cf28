#include "prony/certify/timing_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "prony/certify/parse_speed.hpp"
#include "prony/core/system.hpp"
#include "prony/record/row_metrics.hpp"
#include "prony/stats/quantile.hpp"

namespace prony::certify {
namespace {

using Verdicts = std::vector<Verdict>;
using record::RequestRow;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : stats::quantile_linear(values, q);
}

std::vector<std::string> timed(int ttft_ms, int itl_ms) {
  return {"--ttft-ms", std::to_string(ttft_ms), "--itl-ms", std::to_string(itl_ms)};
}

/// Open loop, Poisson.
load::BenchOptions arrivals(int rate, int64_t requests, int64_t tokens) {
  auto options = quick_run(requests, tokens);
  options.request_rate = std::to_string(rate);
  options.max_concurrency.reset();
  return options;
}

class Figures {
 public:
  explicit Figures(const TimingCase& timing) : timing_(timing) {}

  Verdict& add(std::string_view what, double error, double limit, std::string unit) {
    verdicts_.push_back(figure(fmt::format("{}/{}", timing_.name, what),
                               std::string(timing_.condition), error, limit, std::move(unit)));
    return verdicts_.back();
  }
  Verdicts take() { return std::move(verdicts_); }

 private:
  const TimingCase& timing_;
  Verdicts verdicts_;
};

/// Every request is ok and its events are as many as the writes.
void add_completed(Figures& figures, const Session& session, const Arrivals& joined) {
  const auto& rows = session.rows;
  const auto ok = std::count_if(rows.begin(), rows.end(), [](const RequestRow& row) {
    return row.status == record::Status::kOk;
  });
  const auto lost = static_cast<double>(static_cast<int64_t>(rows.size()) - ok + joined.unmatched +
                                        joined.miscounted);
  auto& verdict = figures.add("requests", lost, 0, "requests");
  verdict.served = fmt::format("{} answers", session.served.size());
  verdict.measured = fmt::format("{} ok of {}", ok, rows.size());
}

void add_first_token(Figures& figures, const Arrivals& joined, double limit_ms) {
  auto& verdict = figures.add("first-token", mean(joined.first), limit_ms, "ms");
  verdict.served = fmt::format("{} first tokens", joined.first.size());
  verdict.measured = fmt::format("mean late {:.3f}, p99 {:.3f} ms", mean(joined.first),
                                 quantile(joined.first, 0.99));
}

void add_gaps(Figures& figures, const Arrivals& joined, double limit_ms) {
  const double served = quantile(joined.served_gaps, 0.99);
  const double read = quantile(joined.read_gaps, 0.99);
  auto& verdict = figures.add("gap-p99", read - served, limit_ms, "ms");
  verdict.served = fmt::format("p99 {:.3f} ms of {}", served, joined.served_gaps.size());
  verdict.measured = fmt::format("p99 {:.3f} ms", read);
}

// A server that falls behind writes the tokens of one stream back to back, and no client can tell
// them apart: then there is nothing to judge.
void add_merged(Figures& figures, const Session& session, const Arrivals& joined, int itl_ms) {
  const auto& metrics = session.run.record.metrics;
  const auto events = static_cast<double>(std::max<int64_t>(1, metrics.token_events));
  auto& verdict =
      figures.add("merged", 100.0 * static_cast<double>(metrics.merged_events) / events, 0.5, "%");
  verdict.served = fmt::format("{} events", metrics.token_events);
  verdict.measured = fmt::format("{} shared a read", metrics.merged_events);
  const double served = quantile(joined.served_gaps, 0.99);
  if (served <= 1.5 * itl_ms) return;
  verdict.outcome = Outcome::kSkipped;
  verdict.why =
      fmt::format("the mock fell behind: its p99 gap was {:.0f} ms instead of {}", served, itl_ms);
}

void add_busy(Figures& figures, const Session& session) {
  double busiest = 0;
  for (const auto& busy : session.run.record.client["loop_busy"]) {
    busiest = std::max(busiest, busy.get<double>());
  }
  auto& verdict = figures.add("loop-busy", 100 * busiest, 90, "%");
  verdict.measured = fmt::format("busiest loop {:.0f} %", 100 * busiest);
}

Result<Verdicts> send_lag(const TimingCase& timing, const Host& host) {
  const auto played = play(host, timed(20, 5), arrivals(1000, 3000, 4));
  if (!played) return played.error();
  const Session& session = played.value().session;
  std::vector<double> lags;
  core::Nanos first_intended = INT64_MAX, last_intended = 0, first_sent = 0, last_sent = 0;
  for (const auto& row : session.rows) {
    if (!row.t_send_ns) continue;
    lags.push_back(core::to_ms(*row.t_send_ns - row.t_intended_ns));
    if (row.t_intended_ns < first_intended) {
      first_intended = row.t_intended_ns;
      first_sent = *row.t_send_ns;
    }
    if (row.t_intended_ns > last_intended) {
      last_intended = row.t_intended_ns;
      last_sent = *row.t_send_ns;
    }
  }
  if (lags.empty()) return failed(fmt::format("{}: nothing was sent", timing.name));
  Figures figures(timing);
  add_completed(figures, session, join(session));
  auto& lag = figures.add("p99", quantile(lags, 0.99), 0.2, "ms");
  lag.served = fmt::format("{} sends", lags.size());
  lag.measured = fmt::format("p50 {:.3f}, p99 {:.3f}, max {:.3f} ms", quantile(lags, 0.5),
                             quantile(lags, 0.99), quantile(lags, 1));
  const auto drawn = static_cast<double>(last_intended - first_intended);
  const double off = (static_cast<double>(last_sent - first_sent) - drawn) / drawn;
  auto& schedule = figures.add("schedule", 100 * off, 0.1, "%");
  schedule.served = fmt::format("drawn {:.4f} s", drawn / 1e9);
  schedule.measured = fmt::format("sent in {:.4f} s", core::to_ms(last_sent - first_sent) / 1e3);
  return figures.take();
}

// Plays a case and joins both sides. All are held to every request, those with a limit to the
// arrival of first tokens too; `judge` adds what else the case is for.
template <class Judge>
Result<Verdicts> judged(const TimingCase& timing, const Host& host,
                        std::vector<std::string> mock_arguments, const load::BenchOptions& options,
                        std::optional<double> first_token_limit_ms, const Judge& judge) {
  const auto played = play(host, std::move(mock_arguments), options);
  if (!played) return played.error();
  const Session& session = played.value().session;
  const auto joined = join(session);
  if (first_token_limit_ms && joined.first.empty()) {
    return failed(fmt::format("{}: no token came", timing.name));
  }
  Figures figures(timing);
  add_completed(figures, session, joined);
  if (first_token_limit_ms) add_first_token(figures, joined, *first_token_limit_ms);
  judge(figures, played.value(), joined);
  return figures.take();
}

Result<Verdicts> streams(const TimingCase& timing, const Host& host,
                         const load::BenchOptions& options, double first_token_limit_ms) {
  return judged(timing, host, timed(50, 10), options, first_token_limit_ms,
                [](Figures& figures, const Played& played, const Arrivals& joined) {
                  add_gaps(figures, joined, 0.5);
                  add_merged(figures, played.session, joined, 10);
                  add_busy(figures, played.session);
                });
}

Result<Verdicts> streams_100(const TimingCase& timing, const Host& host) {
  return streams(timing, host, arrivals(100, 200, 100), 0.3);
}
Result<Verdicts> streams_1000(const TimingCase& timing, const Host& host) {
  return streams(timing, host, arrivals(1000, 1500, 100), 1);
}
Result<Verdicts> burst_1000(const TimingCase& timing, const Host& host) {
  auto options = quick_run(1000, 100);
  options.max_concurrency.reset();  // all at one instant
  return streams(timing, host, options, 1);
}

Result<Verdicts> live_10000(const TimingCase& timing, const Host& host) {
  constexpr int64_t kStreams = 10'000;
  if (const auto files = core::ensure_open_files(kStreams + 1000); !files) {
    Verdict skipped{.name = std::string(timing.name), .group = "timing"};
    skipped.condition = timing.condition;
    skipped.outcome = Outcome::kSkipped;
    skipped.why = files.error().message;
    return Verdicts{skipped};
  }
  auto streams_live = arrivals(4000, kStreams, 40);
  streams_live.preconnect = kStreams;  // handshakes are not what is judged here
  return judged(timing, host, timed(200, 100), streams_live, 1,
                [](Figures& figures, const Played& played, const Arrivals& joined) {
                  const Session& session = played.session;
                  add_gaps(figures, joined, 0.5);
                  add_merged(figures, session, joined, 100);
                  const auto live = session.run.record.metrics.concurrency_max.value_or(0);
                  // At the rate of the arrivals a few are over before the last begin.
                  auto& streams = figures.add("live", static_cast<double>(kStreams - live),
                                              kStreams / 20.0, "streams");
                  streams.served = fmt::format("{} at once", most_in_flight(session.served));
                  streams.measured = fmt::format("{} at once", live);
                  if (!played.resident_before_bytes || !played.resident_most_bytes) return;
                  const double each = static_cast<double>(*played.resident_most_bytes -
                                                          *played.resident_before_bytes) /
                                      kStreams / 1024;
                  auto& memory = figures.add("memory", each, 16, "KiB");
                  memory.measured = "resident, a stream";
                });
}

Result<Verdicts> concurrency(const TimingCase& timing, const Host& host) {
  auto options = quick_run(900, 10);
  options.max_concurrency = 300;
  return judged(timing, host, timed(50, 5), options, std::nullopt,
                [](Figures& figures, const Played& played, const Arrivals&) {
                  const auto most = most_in_flight(played.session.served);
                  auto& verdict =
                      figures.add("in-flight", static_cast<double>(most - 300), 0, "requests");
                  verdict.served = fmt::format("{} at once", most);
                  verdict.measured = "asked for 300";
                });
}

Result<Verdicts> cap(const TimingCase& timing, const Host& host) {
  auto options = arrivals(400, 400, 1);
  options.max_concurrency = 10;  // of 50 ms each: 200 requests/s at most
  return judged(
      timing, host, timed(50, 0), options, std::nullopt,
      [](Figures& figures, const Played& played, const Arrivals&) {
        const auto most = most_in_flight(played.session.served);
        const auto over = static_cast<double>(std::max<int64_t>(0, most - 10));
        auto& places = figures.add("in-flight", over, 0, "requests");
        places.served = fmt::format("{} at once", most);
        places.measured = "asked for 10";
        // The wait for a place is in the latency from the intention, and not in that from the send.
        const auto& metrics = played.session.run.record.metrics;
        const double sent = metrics.ttft_ms.p50.value_or(0);
        const double intended = metrics.ttft_intended_ms.p50.value_or(0);
        auto& origin = figures.add("from-send", sent - 50, 2, "ms");
        origin.served = "50 ms";
        origin.measured = fmt::format("p50 {:.3f}, from intention {:.1f} ms", sent, intended);
        if (intended < sent + 100) {
          origin.fail("the wait for a place is missing in the latency from the intention");
        }
      });
}

Result<Verdicts> duration(const TimingCase& timing, const Host& host) {
  auto options = arrivals(500, 100'000, 1);
  options.num_prompts.reset();
  options.duration_s = 1;
  return judged(timing, host, timed(20, 0), options, std::nullopt,
                [](Figures& figures, const Played& played, const Arrivals&) {
                  const Session& session = played.session;
                  core::Nanos first = INT64_MAX, last = 0;
                  for (const auto& row : session.rows) first = std::min(first, row.t_intended_ns);
                  for (const auto& stamps : session.served)
                    last = std::max(last, stamps.t_received_ns);
                  const double over = core::to_ms(last - first) - 1000;
                  auto& verdict = figures.add("after-end", std::max(0.0, over), 1, "ms");
                  verdict.served = fmt::format("{} requests", session.served.size());
                  verdict.measured =
                      fmt::format("last {:.1f} ms after the first", core::to_ms(last - first));
                });
}

Result<Verdicts> long_prompt(const TimingCase& timing, const Host& host) {
  auto options = quick_run(24, 8);
  options.max_concurrency = 4;
  options.input_len = "50000";
  return judged(timing, host, timed(50, 5), options, 0.5,
                [](Figures&, const Played&, const Arrivals&) {});
}

Result<Verdicts> parsing(const TimingCase& timing, const Host&) {
  constexpr double kTarget = 3e6;
  const double rate = parsed_events_per_s(kTarget);
  Verdict verdict{.name = std::string(timing.name), .group = "timing"};
  verdict.condition = timing.condition;
  verdict.served = "100000 events in memory";
  verdict.measured = fmt::format("{:.2f} million events/s", rate / 1e6);
  if (rate < kTarget) {
    verdict.fail(fmt::format("found {:.2f} million events/s a core, expected 3", rate / 1e6));
  }
  return Verdicts{verdict};
}

constexpr TimingCase kCases[] = {
    {"send-lag", "1000 requests/s, Poisson, 3 s", send_lag},
    {"streams-100", "100 requests/s, 100 live streams of 50 ms, 10 ms, 100 tokens", streams_100},
    {"streams-1000", "1000 requests/s, 1000 live streams of 50 ms, 10 ms, 100 tokens",
     streams_1000},
    {"burst-1000", "1000 streams of 50 ms, 10 ms, 100 tokens at one instant", burst_1000},
    {"live-10000", "10,000 live streams, a token every 100 ms", live_10000},
    {"concurrency", "closed loop of 300", concurrency},
    {"cap", "400 requests/s, 10 places, answers of 50 ms", cap},
    {"duration", "500 requests/s for 1 s", duration},
    {"long-prompt", "prompts of 50,000 tokens, four at a time", long_prompt},
    {"parse", "SSE framing and JSON from memory, one core", parsing},
};

}  // namespace

std::span<const TimingCase> timing_cases() {
  return kCases;
}

}  // namespace prony::certify
