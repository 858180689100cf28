#include "prony/load/bench_record.hpp"

#include <fmt/format.h>

#include <cmath>

#include "prony/load/run_warnings.hpp"
#include "prony/load/self_check.hpp"

namespace prony::load {
namespace {

using core::Json;

record::System make_system(const RunFacts& facts, const LoadResult& load) {
  const auto& endpoint = facts.endpoint;
  record::System system;
  system.device = load.prony_device.empty() ? endpoint.prony_device : load.prony_device;
  if (endpoint.is_mock()) {
    system.kind = record::SystemKind::kMock;
  } else if (!system.device.empty()) {
    system.kind = record::SystemKind::kEmulated;
  }
  system.model = endpoint.model;
  system.endpoint = endpoint.base_url;
  system.endpoint_type = endpoint.dialect->info().name;
  system.server = load.server.empty() ? endpoint.server : load.server;
  system.details["path"] = endpoint.target;
  if (!endpoint.owner.empty()) system.details["owned_by"] = endpoint.owner;
  return system;
}

std::string arrival_name(const RunFacts& facts) {
  if (facts.shape.closed_loop) return "closed";
  if (facts.shape.at_once) return "at-once";
  if (facts.shape.trace_times) return "trace";
  if (facts.options.dataset == "schedule") return "schedule";
  if (!facts.shape.curve.empty()) return facts.shape.curve;
  if (std::isinf(facts.options.burstiness)) return "constant";
  return facts.options.burstiness == 1 ? "poisson" : "gamma";
}

record::Workload make_workload(const RunFacts& facts) {
  const auto& options = facts.options;
  record::Workload workload;
  std::string schedule = facts.schedule.description;
  if (facts.shape.closed_loop) {  // which the schedule, having no times, calls "at once"
    constexpr std::string_view kAtOnce = "all requests at once";
    if (const auto at = schedule.find(kAtOnce); at != std::string::npos) {
      schedule.replace(at, kAtOnce.size(),
                       fmt::format("closed loop of {}", *facts.shape.max_concurrency));
    }
  }
  workload.description = fmt::format("{}; {}", schedule, facts.prompts.describe());
  workload.dataset = options.dataset;
  workload.arrival = arrival_name(facts);
  const bool sessions = facts.schedule.has_sessions();
  if (!sessions) workload.request_rate = facts.shape.rate_per_s;
  workload.max_concurrency = facts.shape.max_concurrency;
  workload.num_requests = static_cast<int64_t>(facts.schedule.entries.size());
  workload.seed = options.seed;
  auto& details = workload.details;
  details["schedule_digest"] = fmt::format("{:016x}", facts.schedule.digest());
  if (!facts.shape.closed_loop && facts.shape.rate_per_s) {
    details["burstiness"] = std::isinf(options.burstiness) ? Json("inf") : Json(options.burstiness);
  }
  if (options.dataset == "random") {
    details["input_len"] = options.input_len;
    details["output_len"] = options.output_len;
    if (options.range_ratio > 0) details["range_ratio"] = options.range_ratio;
  } else {
    // The name, not the path: where the file lies is nobody's business but this machine's.
    details["dataset_file"] =
        options.dataset_path.substr(options.dataset_path.find_last_of('/') + 1);
  }
  if (options.preset != "none") details["preset"] = options.preset;
  if (options.duration_s) details["duration_s"] = *options.duration_s;
  if (sessions) {
    details["sessions"] = facts.schedule.entries.back().session + 1;
    details["history"] = options.workload.history;
    if (facts.shape.rate_per_s) details["session_rate"] = *facts.shape.rate_per_s;
  }
  details["prompt_format"] = options.prompt_format;
  if (options.prompt_salt) details["prompt_salt"] = *options.prompt_salt;
  details["usage"] = usage_name(facts.body.usage);
  details["ignore_eos"] = facts.body.ignore_eos;
  if (facts.body.temperature) details["temperature"] = *facts.body.temperature;
  if (!facts.body.extra.empty()) details["extra_body"] = facts.body.extra;
  details["num_warmups"] = options.num_warmups;
  details["threads"] = options.threads;
  details["connect_timeout_s"] = core::to_seconds(options.timeouts.connect_ns);
  details["first_token_timeout_s"] = core::to_seconds(options.timeouts.first_token_ns);
  details["stall_timeout_s"] = core::to_seconds(options.timeouts.stall_ns);
  details["total_timeout_s"] = core::to_seconds(options.timeouts.total_ns);
  if (options.drain_s > 0) details["drain_s"] = options.drain_s;
  return workload;
}

// Asked against got: the first thing to look at when two tools disagree.
void warn_about_lengths(const record::TokenTally& tally, const char* what, const char* advice,
                        record::Validity& validity) {
  const int64_t known = tally.equal + tally.fewer + tally.more;
  if (known == 0 || tally.asked == 0) return;
  const double off = static_cast<double>(tally.got) / static_cast<double>(tally.asked) - 1;
  if (tally.unknown > 0 || std::abs(off) <= 0.05) return;
  validity.warnings.push_back(fmt::format("{} tokens asked {}, got {} ({:+.0f} %){}", what,
                                          tally.asked, tally.got, 100 * off, advice));
}

void warn(const RunFacts& facts, const LoadResult& load, const record::Metrics& metrics,
          record::Validity& validity) {
  for (const auto& text : facts.endpoint.warnings) validity.warnings.push_back(text);
  const bool all_sent = load.rows.size() == static_cast<int64_t>(facts.schedule.entries.size());
  const bool early = facts.options.duration_s &&
                     core::to_seconds(load.t_end_ns - load.t_start_ns) < *facts.options.duration_s;
  if (facts.shape.closed_loop && all_sent && early && !facts.options.num_prompts) {
    validity.warnings.push_back(fmt::format(
        "the server answered all {} requests made ready for --duration before it was over",
        load.rows.size()));
  }
  warn_about_lengths(metrics.output_tokens, "output",
                     facts.body.ignore_eos ? "" : "; answers of a fixed length need --ignore-eos",
                     validity);
  const bool quotes = facts.schedule.has_sessions() && facts.options.workload.history == "received";
  warn_about_lengths(metrics.input_tokens, "input",
                     quotes ? "; later turns quote the answers received, whatever their length"
                            : "; give --tokenizer for prompts of an exact length",
                     validity);
  if (metrics.token_source_mixed) {
    validity.warnings.push_back("token counts come from several sources; see token_sources");
  }
  if (metrics.bursty_streams > 0) {
    validity.warnings.push_back(fmt::format(
        "{} streams brought most of their tokens at one instant: their TPOT and ITL mean little",
        metrics.bursty_streams));
  }
}

}  // namespace

record::Record make_record(const RunFacts& facts, const LoadResult& load,
                           const record::SummaryOptions& summary) {
  record::Record record;
  record.source = record::Source::kMeasured;
  record.system = make_system(facts, load);
  record.workload = make_workload(facts);
  record.environment = facts.environment;
  record.metrics = record::summarize(load.rows, summary);
  auto check = check_client(load.rows, load.client, record.metrics,
                            facts.environment.steal_fraction, facts.shape.at_once);
  record.validity = std::move(check.validity);
  record.client = std::move(check.client);
  if (const auto status = load.rows.status(); !status) {
    record.validity.refuse("the run ended early: " + status.error().message);
  }
  warn(facts, load, record.metrics, record.validity);
  warn_about_run(record.metrics, record.validity);
  if (facts.options.preset == "single-stream") {
    warn_about_early_stops(record.metrics.output_tokens, record.validity);
  }
  record.run.started_at = core::utc_text(facts.started_realtime_ns).text;
  record.run.command = facts.options.command;
  record.run.label = facts.options.label;
  record.run.metadata = facts.options.metadata;
  record.run.interrupted = load.interrupted;
  return record;
}

}  // namespace prony::load
