#include "prony/load/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "prony/core/system.hpp"
#include "prony/load/bench_record.hpp"
#include "prony/load/group_run.hpp"
#include "prony/load/message_writer.hpp"
#include "prony/load/run_telemetry.hpp"
#include "prony/load/self_check.hpp"
#include "prony/telemetry/environment.hpp"
#include "prony/telemetry/host_sampler.hpp"

namespace prony::load {
namespace {

constexpr int64_t kSpareFiles = 256;   // connections opened ahead, result files, standard streams
constexpr int64_t kAheadMax = 10'000;  // connections opened before the load
// How much later than here the load may end on another process, beyond a request's longest time.
constexpr core::Nanos kOthersSlack = 120 * core::kNanosPerSecond;
constexpr int64_t kWarmUpConcurrency = 8;  // where nothing caps it

// Most connections that may be open; 0: as many as the schedule has requests.
Result<int64_t> connection_limit(const LoadShape& shape, int64_t count) {
  const int64_t wanted = std::min(count, shape.max_concurrency.value_or(count));
  auto raised = core::ensure_open_files(static_cast<uint64_t>(wanted + kSpareFiles));
  if (raised.ok()) return 0;
  if (shape.max_concurrency) return raised.error();
  // No cap was asked for, and few of the requests may overlap: go on with what can be had. Reaching
  // it is noticed and refuses the run.
  for (int64_t fewer = wanted / 2; fewer >= 64; fewer /= 2) {
    if (core::ensure_open_files(static_cast<uint64_t>(fewer + kSpareFiles)).ok()) return fewer;
  }
  return raised.error();
}

// Connections to open before instant 0.
int64_t connections_ahead(const BenchOptions& options, const LoadShape& shape,
                          const Endpoint& endpoint, int64_t count) {
  const int64_t most = std::min({count, shape.max_concurrency.value_or(count), kAheadMax});
  if (options.preconnect) return std::min(*options.preconnect, most);
  if (endpoint.dislikes_idle_connections()) return 0;
  if (shape.closed_loop || shape.at_once) return most;
  // One second of arrivals; more are opened as these are taken.
  const double rate = shape.rate_per_s.value_or(16);
  return std::min(most, static_cast<int64_t>(std::ceil(std::min(rate, 1e5))) + 16);
}

WorkerOptions worker_options(const BenchOptions& options, const LoadShape& shape,
                             const Endpoint& endpoint, int64_t connections_max) {
  WorkerOptions worker;
  worker.origin = endpoint.origin;
  worker.address = endpoint.address;
  worker.dialect = endpoint.dialect;
  worker.timeouts = options.timeouts;
  worker.timeline.keep_text = options.save_text;
  worker.connections_max = connections_max;
  const double rate = shape.rate_per_s.value_or(0);
  const bool ahead = !shape.closed_loop && options.preconnect.value_or(1) > 0 &&
                     !endpoint.dislikes_idle_connections();
  if (ahead) {
    // 20 ms of arrivals: longer than a handshake on a local network.
    worker.connections_ahead =
        std::clamp(static_cast<int64_t>(rate / 50), int64_t{2}, int64_t{256});
  }
  // A loop that polls, or that goes before all others, may do so where a core is left for the rest.
  const bool core_to_spare = core::allowed_cores().size() > static_cast<size_t>(options.threads);
  const bool open_loop = !shape.closed_loop && !shape.at_once;
  if (options.spin_us) {
    worker.spin_ns = *options.spin_us * core::kNanosPerMicro;
  } else if (open_loop && core_to_spare) {
    worker.spin_ns = net::EventLoop::kLearnSpin;
  }
  worker.prefer_thread = options.scheduling == "auto" && core_to_spare;
  return worker;
}

SessionJob make_session_job(const BenchOptions& options, const workload::Schedule& schedule,
                            const workload::PromptBuilder& prompts, const MessageWriter& writer) {
  SessionJob job;
  job.keep_text = options.save_text;
  job.write = [&](int64_t index, std::span<const BodyMessage> history, std::string_view prompt) {
    const auto& entry = schedule.entries[static_cast<size_t>(index)];
    return writer.turn(history, prompt, entry.output_tokens, writer.id("", index));
  };
  if (options.workload.history == "synthetic") {
    job.answer = [&](int64_t index) {
      return prompts.build_answer(schedule.entries[static_cast<size_t>(index)]);
    };
  }
  return job;
}

void warm_up(Driver& driver, const BenchOptions& options, const LoadShape& shape,
             const workload::Schedule& schedule, const workload::PromptBuilder& prompts,
             const MessageWriter& writer, const GroupRun& together, const BenchHooks& hooks) {
  std::vector<workload::ScheduleEntry> entries;
  const int64_t count = together.count_of(options.num_warmups);
  if (count == 0) return;
  for (int64_t i = 0; i < count; ++i) {
    const auto like = static_cast<size_t>(together.global(i)) % schedule.entries.size();
    auto entry = schedule.entries[like];
    entry.index = i;
    entry.t_intended_ns = 0;
    entries.push_back(entry);
  }
  Job job;
  job.entries = entries;
  job.closed_loop = true;
  job.max_concurrency = std::min(count, shape.max_concurrency.value_or(kWarmUpConcurrency));
  job.id = [&](int64_t index) { return writer.id("w", together.global(index)); };
  job.message = [&](int64_t index) {
    const auto& entry = entries[static_cast<size_t>(index)];
    const int64_t global = together.global(index);
    return writer.message(prompts.build_warm_up(global, entry.input_tokens), entry.output_tokens,
                          writer.id("w", global));
  };
  const auto result = driver.run(job, nullptr);
  int64_t failures = 0;
  std::string first_failed;
  result.rows.for_each([&](const record::RequestRow& row) {
    if (row.status == record::Status::kOk || failures++ > 0) return;
    first_failed = fmt::format("{}: {}", status_name(row.status), row.error);
  });
  if (failures > 0 && hooks.note) {
    hooks.note(fmt::format("{} of {} warm-up requests failed, the first: {}", failures,
                           result.rows.size(), first_failed));
  }
}

// What --until-ci reached, also where a bound ended the run before it.
void report_precision(PrecisionWatch& watch, record::Record& record) {
  if (!watch.outcome().reached) watch.look();
  record.client["until_ci"] = watch.to_json();
  if (!watch.outcome().reached) record.validity.warnings.push_back(watch.text());
}

}  // namespace

Result<BenchRun> run_bench(const BenchOptions& options, const Endpoint& endpoint,
                           std::shared_ptr<const workload::PromptBuilder> prompts,
                           const BenchHooks& hooks) {
  const auto shape = load_shape(options);
  if (!shape) return shape.error();
  const auto schedule = make_schedule(options, shape.value());
  if (!schedule) return schedule.error();
  const auto body =
      make_body_options(options, *endpoint.dialect, endpoint.model, endpoint.counts_every_chunk());
  if (!body) return body.error();
  GroupRun together(hooks.group);
  if (auto fits = together.check(options, shape.value(), schedule.value()); !fits)
    return fits.error();
  const auto entries = together.entries_of(schedule.value());
  const auto mine = together.shape_of(shape.value());
  const auto count = static_cast<int64_t>(entries.size());
  const auto connections_max = connection_limit(mine, count);
  if (!connections_max) return connections_max.error();

  RunFacts facts{.options = options,
                 .shape = shape.value(),
                 .schedule = schedule.value(),
                 .body = body.value(),
                 .endpoint = endpoint,
                 .prompts = *prompts};
  facts.started_realtime_ns = core::realtime_ns();
  const MessageWriter writer{
      endpoint, body.value(),
      fmt::format("prony-{:08x}", static_cast<uint32_t>(facts.started_realtime_ns / 1000))};

  const auto session = open_telemetry(options, endpoint);
  if (!session) return session.error();
  Driver::Options driving;
  driving.worker = worker_options(options, mine, endpoint, connections_max.value());
  const bool sessions = schedule.value().has_sessions();
  if (sessions && options.prompt_format == "ids") {
    return invalid_argument("--prompt-format ids: not with conversations, whose history is text");
  }
  if (sessions) driving.worker.timeline.keep_text = true;  // later turns quote the answers
  driving.threads = static_cast<int>(options.threads);
  driving.cores = options.cores;
  driving.rows.folders = options.row_folders;
  Driver driver(driving, hooks.interrupt);
  driver.open_connections(connections_ahead(options, mine, endpoint, count));
  if (options.num_warmups > 0) {
    warm_up(driver, options, mine, schedule.value(), *prompts, writer, together, hooks);
  }

  Job job;
  job.entries = entries;
  job.closed_loop = mine.closed_loop;
  job.max_concurrency = mine.max_concurrency;
  if (options.duration_s) {
    job.duration_ns = static_cast<core::Nanos>(std::llround(*options.duration_s * 1e9));
  }
  job.drain_ns = static_cast<core::Nanos>(std::llround(options.drain_s * 1e9));
  job.id = [&](int64_t index) { return writer.id("", together.global(index)); };
  job.message = [&](int64_t index) {
    const int64_t global = together.global(index);
    const auto& entry = schedule.value().entries[static_cast<size_t>(global)];
    auto prompt =
        prompts->build(entry, schedule.value().blocks_of(entry), schedule.value().block_tokens);
    if (job.sessions) return std::move(prompt.text);
    return writer.message(prompt, entry.output_tokens, writer.id("", global));
  };
  if (sessions) {
    job.sessions = make_session_job(options, schedule.value(), *prompts, writer);
  }
  std::optional<PrecisionWatch> watch;
  if (options.until_ci) {
    watch.emplace(*options.until_ci);
    job.on_row = [&watch](const record::RequestRow& row) { watch->add(row); };
    job.enough = [&watch] { return watch->enough(); };
  }
  facts.environment = telemetry::capture_environment();
  telemetry::HostSampler host;
  host.start();
  bool observed = false;
  job.before_start = [&] {
    bool all_here = together.wait_until_ready();  // their warm-up is over too
    if (all_here) {
      session.value()->begin(options.num_warmups == 0);
      observed = true;
      all_here = together.wait_for_start();
    }
    // Where another process is gone, what is sent until the first tick is thrown away.
    if (!all_here) job.enough = [] { return true; };
  };
  auto load = driver.run(job, hooks.progress);
  const auto shares = host.shares();
  if (shares) facts.environment.steal_fraction = shares->steal;
  if (together.error()) return *together.error();
  if (!observed && !together.alone()) return failed("interrupted before the start");
  const core::Nanos t_others =
      options.timeouts.total_ns + kOthersSlack + load.t_end_ns - load.t_start_ns;
  if (auto ended = together.wait_for_all(t_others); !ended) return ended.error();
  if (observed) session.value()->end();
  auto all = together.collect(std::move(load), driving.rows, facts.environment.steal_fraction);
  if (!all) return all.error();
  load = std::move(all).value();
  if (!together.is_first()) return BenchRun();
  if (const auto kept = load.rows.status(); !kept && hooks.note) hooks.note(kept.error().message);

  BenchRun run;
  run.summary.open_loop = !shape.value().closed_loop && !shape.value().at_once;
  run.summary.steady_part_only = options.steady_state == "auto";
  run.summary.goodput = options.goodput;
  // Of conversations it says how many start, not how many requests there are.
  if (!sessions) run.summary.requested_rate_per_s = shape.value().rate_per_s;
  run.record = make_record(facts, load, run.summary);
  if (watch) report_precision(*watch, run.record);
  together.report(run.record);
  if (observed) {
    SumsOfRows sums;
    load.rows.for_each([&](const record::RequestRow& row) { sums.add(row); });
    const auto sent = sums.sums();
    add_telemetry(*session.value(), sent, implied_hits(options, schedule.value(), sent.attempted),
                  run.record);
  }
  run.rows = std::move(load.rows);
  judge(options, run.record.metrics, run);
  return run;
}

void judge(const BenchOptions& options, const record::Metrics& metrics, BenchRun& run) {
  const auto value_text = [](const record::SloTermVerdict& verdict) {
    return verdict.value ? fmt::format("{:.6g}", *verdict.value) : std::string("unknown");
  };
  const auto reason = [](const record::SloTermVerdict& verdict) {
    return verdict.samples_missing > 0
               ? fmt::format(" ({} more samples are needed)", verdict.samples_missing)
               : std::string(" (no value)");
  };
  if (!options.slo.empty()) {
    const auto verdict = record::evaluate_slo(options.slo, metrics);
    run.record.slo = record::slo_verdict_to_json(verdict);
    for (const auto& term : verdict.terms) {
      const auto text =
          fmt::format("--slo {}: got {}", core::slo_text(term.term), value_text(term));
      if (!term.met) {
        run.undecided_rules.push_back(text + reason(term));
      } else if (!*term.met) {
        run.broken_rules.push_back(text);
      }
    }
  }
  for (const auto& term : record::evaluate_slo(options.fail_if, metrics).terms) {
    const auto text =
        fmt::format("--fail-if {}: got {}", core::slo_text(term.term), value_text(term));
    if (!term.met) {
      run.undecided_rules.push_back(text + reason(term));
    } else if (*term.met) {
      run.broken_rules.push_back(text);
    }
  }
  const auto attempted = metrics.attempted.value_or(0);
  if (options.max_error_rate && attempted > 0) {
    const double rate =
        static_cast<double>(metrics.failed.value_or(0)) / static_cast<double>(attempted);
    if (rate > *options.max_error_rate) {
      run.broken_rules.push_back(
          fmt::format("--max-error-rate {:g}: got {:.4g}", *options.max_error_rate, rate));
    }
  }
}

}  // namespace prony::load
