// The part of the table of `prony bench` that says how far its figures can be trusted.
#include <fmt/format.h>

#include "prony/cli/bench_output.hpp"

namespace prony::cli {
namespace {

std::string pair(const stats::Interval& interval) {
  return fmt::format("[{:.4g}, {:.4g}]", interval.lower, interval.upper);
}

// "name a [l, u], name b [l, u]" of those that are known.
class Intervals {
 public:
  void add(std::string_view name, const std::optional<stats::Interval>& interval) {
    if (!interval) return;
    text_ += fmt::format("{}{} {}", text_.empty() ? "" : ", ", name, pair(*interval));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string statistics_lines(const record::Metrics& m) {
  std::string out;
  const auto line = [&out](std::string_view name, std::string_view text) {
    if (!text.empty()) out += fmt::format("{:<12} {}\n", name, text);
  };
  Intervals rates;
  rates.add("requests/s", m.ci95.request_throughput);
  rates.add("output tokens/s", m.ci95.output_throughput);
  rates.add("goodput requests/s", m.ci95.goodput);
  rates.add("goodput tokens/s", m.ci95.goodput_output_throughput);
  rates.add("goodput fraction", m.ci95.goodput_fraction);
  if (m.failed.value_or(0) > 0) rates.add("error rate", m.ci95.error_rate);
  line("95 % rates", rates.text());
  for (const auto& [name, stats] :
       {std::pair{"95 % TTFT", &m.ttft_ms}, {"95 % TPOT", &m.tpot_ms}, {"95 % E2E", &m.e2e_ms}}) {
    Intervals latency;
    latency.add("mean", stats->ci95.mean);
    latency.add("p50", stats->ci95.p50);
    latency.add("p90", stats->ci95.p90);
    latency.add("p99", stats->ci95.p99);
    latency.add("p99.9", stats->ci95.p999);
    latency.add("p99.99", stats->ci95.p9999);
    if (!latency.text().empty()) line(name, latency.text() + " ms");
  }
  if (m.little) {
    line("Little",
         fmt::format("{:.4g} in flight, {:.4g}/s x {:.4g} s = {:.4g} ({:+.1f} %)",
                     m.little->in_flight, m.little->rate, m.little->residence_s,
                     m.little->rate * m.little->residence_s, 100 * m.little->discrepancy));
  }
  if (m.steady) {
    auto text =
        fmt::format("{} ({:+.1f} %)", *m.steady ? "yes" : "no", 100 * m.steady_change.value_or(0));
    if (m.overloaded) {
      text += fmt::format(", {}; queue {:+.3g}/s", *m.overloaded ? "overloaded" : "not overloaded",
                          m.queue_growth.value_or(0));
    }
    if (m.warm_up && m.warm_up->trimmed) {
      text += fmt::format("; warm-up of {} requests ({:.3g} s) left out", m.warm_up->requests,
                          m.warm_up->seconds);
    }
    line("steady", text);
  }
  return out;
}

std::string slo_lines(const core::Json& slo) {
  std::string out;
  if (!slo.is_object() || !slo.contains("terms")) return out;
  for (const auto& term : slo.at("terms")) {
    auto text = term.at("text").get<std::string>() + ": ";
    if (term.at("value").is_null()) {
      const auto missing = term.at("samples_missing").get<int64_t>();
      text += missing > 0 ? fmt::format("cannot judge, {} more samples are needed", missing)
                          : std::string("cannot judge, no value");
    } else {
      text += fmt::format("{:.5g}", term.at("value").get<double>());
      if (const auto& ci = term.at("ci95"); !ci.is_null()) {
        text += " " + pair({ci.at(0).get<double>(), ci.at(1).get<double>()});
      }
      text += term.at("met").get<bool>() ? ", met" : ", broken";
      if (!term.at("certain").is_null()) {
        text += term.at("certain").get<bool>() ? ", certain at 95 %" : ", not certain at 95 %";
      }
    }
    out += fmt::format("{:<12} {}\n", "objective", text);
  }
  return out;
}

std::string single_stream_lines(const record::Record& record) {
  const auto& m = record.metrics;
  if (record.workload.details.value("preset", "") != "single-stream") return "";
  const auto statistics = [](const record::LatencyStats& stats) {
    auto text = fmt::format("mean {:.4g}", stats.mean.value_or(0));
    if (stats.ci95.mean) text += " " + pair(*stats.ci95.mean);
    if (stats.p50) text += fmt::format(", p50 {:.4g}", *stats.p50);
    if (stats.p99) text += fmt::format(", p99 {:.4g}", *stats.p99);
    return text + fmt::format(" (n = {})", stats.n.value_or(0));
  };
  std::string out = "\n";
  const auto line = [&](const char* name, const record::LatencyStats& stats, const char* unit) {
    if (stats.n.value_or(0) > 0)
      out += fmt::format("{:<12} {} {}\n", name, statistics(stats), unit);
  };
  line("prompt", m.ttft_ms, "ms to the first token");
  line("", m.prefill_tokens_per_s, "prompt tokens/s");
  line("answer", m.tpot_ms, "ms a token after the first");
  line("", m.user_tokens_per_s, "tokens/s");
  line("", m.itl_ms, m.itl_basis == "tokens" ? "ms between tokens" : "ms between events");
  const auto& answers = m.output_tokens;
  out += fmt::format("{:<12} {} of {} answers had the {} tokens asked\n", "length", answers.equal,
                     answers.requests,
                     answers.requests > 0 ? answers.asked / answers.requests : answers.asked);
  return out;
}

}  // namespace prony::cli
