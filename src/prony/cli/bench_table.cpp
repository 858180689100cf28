#include <fmt/format.h>

#include "prony/cli/bench_output.hpp"

namespace prony::cli {
namespace {

using record::LatencyStats;
using record::Metrics;

std::string number(const std::optional<double>& value, const char* missing = "-") {
  if (!value) return missing;
  const double size = *value < 0 ? -*value : *value;
  if (size >= 1000) return fmt::format("{:.0f}", *value);
  return size >= 100 ? fmt::format("{:.1f}", *value) : fmt::format("{:.2f}", *value);
}

void line(std::string& out, std::string_view name, std::string_view text) {
  out += fmt::format("{:<12} {}\n", name, text);
}

void latency(std::string& out, std::string_view name, const LatencyStats& stats) {
  if (stats.n.value_or(0) == 0) return;
  out += fmt::format("{:<26} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", name, *stats.n,
                     number(stats.mean), number(stats.p50), number(stats.p75), number(stats.p90),
                     number(stats.p99), number(stats.p999), number(stats.max));
}

std::string counts(const std::map<std::string, int64_t>& by_name) {
  std::string text;
  for (const auto& [name, count] : by_name) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  }
  return text;
}

std::string tally(const record::TokenTally& tokens) {
  auto text = fmt::format("asked {}, got {} ({} equal, {} fewer, {} more", tokens.asked, tokens.got,
                          tokens.equal, tokens.fewer, tokens.more);
  if (tokens.unknown > 0) text += fmt::format(", {} unknown", tokens.unknown);
  return text + ")";
}

void requests(std::string& out, const record::Record& record) {
  const Metrics& m = record.metrics;
  auto text = fmt::format("{} attempted, {} completed, {} failed", m.attempted.value_or(0),
                          m.completed.value_or(0), m.failed.value_or(0));
  if (!m.errors.empty()) text += fmt::format(" ({})", counts(m.errors));
  if (!m.http_errors.empty()) text += fmt::format("; http {}", counts(m.http_errors));
  if (m.retries > 0) text += fmt::format("; {} sent again", m.retries);
  if (record.run.interrupted) text += "; interrupted";
  line(out, "requests", text);
}

void rates(std::string& out, const record::Record& record) {
  const Metrics& m = record.metrics;
  const char* rule = m.window_rule == "arrivals" ? "to the last arrival"
                     : m.window_rule == "steady" ? "the steady part"
                                                 : "to the last completion";
  line(out, "window",
       fmt::format("{} s, {}; whole run {} s", number(m.window_s), rule, number(m.duration_s)));
  if (m.requested_rate) {
    line(out, "rate",
         fmt::format("asked {}, drawn {}, sent {} requests/s", number(m.requested_rate),
                     number(m.intended_rate), number(m.sent_rate)));
  }
  line(out, "concurrency",
       fmt::format("mean {}, most {}{}", number(m.concurrency_mean), m.concurrency_max.value_or(0),
                   record.workload.max_concurrency
                       ? fmt::format(", at most {}", *record.workload.max_concurrency)
                       : ""));
  line(out, "throughput",
       fmt::format("{} requests/s, {} output tokens/s, {} tokens/s in and out; whole run {} output "
                   "tokens/s",
                   number(m.request_throughput), number(m.output_throughput),
                   number(m.total_throughput), number(m.output_throughput_run)));
  if (m.goodput) {
    line(out, "goodput",
         fmt::format("{} requests/s, {} of attempted ({})", number(m.goodput),
                     number(m.goodput_fraction), m.goodput_slo));
  }
  line(out, "prompt", fmt::format("tokens {}", tally(m.input_tokens)));
  line(out, "answer",
       fmt::format("tokens {}; counted by {}", tally(m.output_tokens),
                   m.token_sources.empty() ? "-" : counts(m.token_sources)));
}

void latencies(std::string& out, const Metrics& m, bool with_client) {
  out += fmt::format("\n{:<26} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "[ms]", "n",
                     "mean", "p50", "p75", "p90", "p99", "p99.9", "max");
  latency(out, "TTFT from the send", m.ttft_ms);
  latency(out, "TTFT from the intention", m.ttft_intended_ms);
  latency(out, "TPOT", m.tpot_ms);
  latency(out, "TPOT as vLLM (N - 1)", m.tpot_vllm_ms);
  latency(out, m.itl_basis == "tokens" ? "ITL per token" : "ITL (= ICL: counts unknown)", m.itl_ms);
  latency(out, "ICL between events", m.icl_ms);
  latency(out, "E2E from the send", m.e2e_ms);
  latency(out, "E2E from the intention", m.e2e_intended_ms);
  if (with_client) {
    latency(out, "client: send lag", m.send_lag_ms);
    latency(out, "client: read lag", m.read_lag_ms);
  }
  if (m.tpot_undefined > 0) {
    out += fmt::format("TPOT is undefined for {} requests (a single token or event)\n",
                       m.tpot_undefined);
  }
  out += "- : too few samples for that percentile (p90 needs 100, p99 1000, p99.9 10000)\n";
}

}  // namespace

std::string bench_table(const record::Record& record) {
  const auto& system = record.system;
  std::string out;
  const bool simulated = record.source == record::Source::kSimulated;
  if (simulated) {
    line(out, "simulated",
         fmt::format("{} x {} tp {} of {} under {}, router {}", system.details.value("replicas", 1),
                     system.device, system.details.value("tp", 1), system.model, system.server,
                     system.details.value("router", "")));
  } else {
    line(out, "endpoint",
         fmt::format("{}{} ({}), model {}", system.endpoint, system.details.value("path", ""),
                     system.endpoint_type, system.model));
  }
  if (!simulated && system.kind != record::SystemKind::kEndpoint) {
    line(out, "system",
         fmt::format("{}: its timing is not that of a real device{}", system_kind_name(system.kind),
                     system.device.empty() ? "" : " (" + system.device + ")"));
  }
  line(out, "workload", record.workload.description);
  requests(out, record);
  rates(out, record);
  latencies(out, record.metrics, !simulated);
  out += turn_and_stage_lines(record.metrics) + single_stream_lines(record) + "\n" +
         statistics_lines(record.metrics) + slo_lines(record.slo);
  out += telemetry_lines(record.telemetry);
  for (const auto& warning : record.validity.warnings) line(out, "warning", warning);
  for (const auto& reason : record.validity.reasons) line(out, "INVALID", reason);
  if (!simulated && record.validity.valid)
    line(out, "validity", "valid: the client did not distort this run");
  return out;
}

}  // namespace prony::cli
