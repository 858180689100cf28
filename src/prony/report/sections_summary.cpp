#include <fmt/format.h>

#include <algorithm>

#include "prony/core/json.hpp"
#include "prony/core/slo.hpp"
#include "prony/report/format.hpp"
#include "prony/report/sections.hpp"
#include "prony/report/table.hpp"

namespace prony::report {
namespace {

using record::LatencyStats;
using record::Record;
using record::Source;
using record::SystemKind;

constexpr size_t kNameCharactersMax = 120;
constexpr double kSecondsFromMs = 10'000;  // a card whose values pass this shows seconds

// What kind of numbers these are, in one word and with what it takes to read them rightly.
std::string kind_text(const Record& record) {
  if (record.source == Source::kPredicted) return "predicted";
  if (record.source == Source::kSimulated) return "simulated";
  if (record.system.kind == SystemKind::kEmulated) {
    // As the server says it, "emulated:h100-sxm"; old records have the bare name.
    constexpr std::string_view kPrefix = "emulated:";
    const std::string_view device = record.system.device;
    return "emulated " +
           shorten(device.substr(device.starts_with(kPrefix) ? kPrefix.size() : 0), 40);
  }
  if (record.system.kind == SystemKind::kMock) return "mock endpoint";
  return "measured";
}

bool is_real_measurement(const Record& record) {
  return record.source == Source::kMeasured && record.system.kind == SystemKind::kEndpoint;
}

struct LatencyCard {
  const char* key;
  const char* title;
  const char* long_title;
  const LatencyStats& stats_ms;
  std::string population;  // "completed requests"
};

void write_percentile(Html& html, const char* name, std::optional<double> value,
                      const std::optional<stats::Interval>& ci, double scale, const char* needs) {
  html.raw("<tr><th scope=\"row\">").text(name).raw("</th>");
  if (!value) {
    html.raw("<td class=\"num\">").text(kNone).raw("</td><td class=\"ci\">").text(needs);
    html.raw("</td></tr>");
    return;
  }
  const double shown = *value * scale;
  html.raw("<td class=\"num\">").text(format_number(shown)).raw("</td><td class=\"ci\">");
  if (ci) html.text(interval_text({ci->lower * scale, ci->upper * scale}, shown));
  html.raw("</td></tr>");
}

void write_latency_card(Html& html, const Page& page, const LatencyCard& card) {
  const LatencyStats& stats = card.stats_ms;
  html.raw("<article class=\"card latency\" data-key=\"").text(card.key).raw("\">");
  html.raw("<h3>").text(card.title).raw(" <span>").text(card.long_title).raw("</span></h3>");
  if (!stats.p50 && !stats.mean) {
    html.raw("<p class=\"big none\">")
        .text(kNone)
        .raw("</p><p class=\"sub\">no value in this run</p>");
    write_tags(html, page.record);
    html.raw("</article>\n");
    return;
  }
  const double top = std::max(stats.p50.value_or(*stats.mean), stats.p99.value_or(0.0));
  const bool in_seconds = top >= kSecondsFromMs;
  const double scale = in_seconds ? 1e-3 : 1;
  html.raw("<p class=\"big\">")
      .text(format_number(stats.p50.value_or(stats.mean.value_or(0)) * scale));
  html.raw(" <small>").text(in_seconds ? "s" : "ms").raw("</small></p>");
  html.raw("<p class=\"sub\">").text(stats.p50 ? "median" : "mean");
  if (stats.p50 && stats.ci95.p50) {
    const double shown = *stats.p50 * scale;
    html.text(", 95 % interval ").raw("<span class=\"nowrap\">");
    html.text(interval_text({stats.ci95.p50->lower * scale, stats.ci95.p50->upper * scale}, shown));
    html.raw("</span>");
  }
  html.raw("</p>");
  if (stats.n || stats.p90 || stats.p99) {
    html.raw("<table class=\"mini\"><thead><tr><th></th><th>").text(in_seconds ? "s" : "ms");
    html.raw("</th><th>95 % interval</th></tr></thead><tbody>");
    write_percentile(html, "p90", stats.p90, stats.ci95.p90, scale, "from n = 100");
    write_percentile(html, "p99", stats.p99, stats.ci95.p99, scale, "from n = 1,000");
    html.raw("</tbody></table>");
  }
  if (stats.n) {
    html.raw("<p class=\"n\">n = ").text(format_count(*stats.n)).raw(" ").text(card.population);
    html.raw("</p>");
  }
  write_tags(html, page.record);
  html.raw("</article>\n");
}

// A card of one figure with lines of explanation under it.
void write_plain_card(Html& html, const Page& page, const char* key, const char* title,
                      const std::string& value, const char* unit,
                      const std::vector<std::string>& lines, bool bad = false) {
  html.raw("<article class=\"card\" data-key=\"").text(key).raw("\"><h3>").text(title);
  html.raw("</h3><p class=\"big");
  if (bad) html.raw(" bad");
  html.raw("\">").text(value).raw(" <small>").text(unit).raw("</small></p>");
  for (const auto& line : lines) html.raw("<p class=\"sub\">").text(line).raw("</p>");
  write_tags(html, page.record);
  html.raw("</article>\n");
}

void write_throughput_card(Html& html, const Page& page) {
  const auto& m = page.record.metrics;
  std::vector<std::string> lines;
  if (m.window_s) lines.push_back("in the window of " + format_seconds(*m.window_s));
  if (m.output_throughput_run) {
    lines.push_back(fmt::format("whole run with its drain: {} tokens/s",
                                format_number(*m.output_throughput_run)));
  }
  if (m.total_throughput) {
    lines.push_back(
        fmt::format("input and output together: {} tokens/s", format_number(*m.total_throughput)));
  }
  write_plain_card(html, page, "output_throughput", "Output throughput",
                   format_number(m.output_throughput), "tokens/s", lines);
}

void write_requests_card(Html& html, const Page& page) {
  const auto& m = page.record.metrics;
  std::vector<std::string> lines;
  if (m.completed && m.attempted) {
    lines.push_back(fmt::format("{} of {} attempted requests completed", format_count(*m.completed),
                                format_count(*m.attempted)));
  }
  if (m.requested_rate && m.sent_rate) {
    lines.push_back(fmt::format("asked for {} /s, sent {} /s", format_setting(*m.requested_rate),
                                format_number(*m.sent_rate)));
  }
  if (m.concurrency_mean && m.concurrency_max) {
    lines.push_back(fmt::format("in flight: mean {}, peak {}", format_number(*m.concurrency_mean),
                                format_count(*m.concurrency_max)));
  }
  write_plain_card(html, page, "request_throughput", "Completed requests",
                   format_number(m.request_throughput), "requests/s", lines);
}

void write_goodput_card(Html& html, const Page& page) {
  const auto& m = page.record.metrics;
  std::vector<std::string> lines;
  if (m.goodput_slo.empty()) {
    lines.push_back("no bound per request was given (--goodput)");
  } else {
    if (m.goodput_fraction) {
      lines.push_back(fmt::format("{} of everything attempted; failures count against it",
                                  format_percent(*m.goodput_fraction)));
    }
    lines.push_back("good: " + shorten(m.goodput_slo, kNameCharactersMax) + " (ms)");
    if (m.goodput_output_throughput) {
      lines.push_back(fmt::format("{} output tokens/s of good requests",
                                  format_number(*m.goodput_output_throughput)));
    }
  }
  write_plain_card(html, page, "goodput", "Goodput", format_number(m.goodput),
                   m.goodput ? "good requests/s" : "", lines);
}

void write_failures_card(Html& html, const Page& page) {
  const auto& m = page.record.metrics;
  std::vector<std::string> lines;
  if (m.attempted && m.failed && *m.attempted > 0) {
    lines.push_back(
        format_percent(static_cast<double>(*m.failed) / static_cast<double>(*m.attempted)) +
        " of the attempted requests");
  }
  for (const auto& [status, count] : m.errors) {
    if (lines.size() == 3) break;
    lines.push_back(fmt::format("{}: {}", shorten(status, 40), format_count(count)));
  }
  const bool bad = m.failed.value_or(0) > 0;
  write_plain_card(html, page, "failures", "Failures", m.failed ? format_count(*m.failed) : kNone,
                   m.attempted ? ("of " + format_count(*m.attempted)).c_str() : "", lines, bad);
}

// The value of an objective in the unit of its metric; the bare number if the text is not one.
std::string objective_value(const std::string& text, double value) {
  const auto slo = core::parse_slo(text);
  if (!slo || slo->terms.size() != 1) return format_number(value);
  switch (const auto metric = slo->terms.front().metric; metric) {
    case core::SloMetric::kGoodputFraction:
    case core::SloMetric::kErrorRate:
      return format_percent(value);
    case core::SloMetric::kRequestThroughput:
      return format_number(value) + " requests/s";
    case core::SloMetric::kOutputThroughput:
      return format_number(value) + " tokens/s";
    default:
      return format_number(value) + (core::slo_is_latency(metric) ? " ms" : "");
  }
}

std::string load_text(const Record& record) {
  const auto& w = record.workload;
  std::string text =
      format_count(w.num_requests) + (w.num_requests == 1 ? " request" : " requests");
  if (w.request_rate) text += fmt::format(", {} a second", format_setting(*w.request_rate));
  if (!w.arrival.empty()) text += ", " + shorten(w.arrival, 40) + " arrivals";
  if (w.max_concurrency)
    text += fmt::format(", at most {} at once", format_count(*w.max_concurrency));
  return text;
}

}  // namespace

void write_tags(Html& html, const Record& record) {
  const bool real = is_real_measurement(record);
  if (real && record.validity.valid && !record.run.interrupted) return;
  html.raw("<p class=\"tags\">");
  if (!real) html.raw("<span class=\"tag kind\">").text(kind_text(record)).raw("</span> ");
  if (!record.validity.valid) html.raw("<span class=\"tag invalid\">invalid run</span> ");
  if (record.run.interrupted) html.raw("<span class=\"tag\">interrupted</span>");
  html.raw("</p>");
}

void write_header(Html& html, const Page& page) {
  const Record& record = page.record;
  const auto& system = record.system;
  html.raw(
      "<header class=\"top\"><p class=\"brand\"><svg viewBox=\"0 0 24 24\" width=\"20\" "
      "height=\"20\" aria-hidden=\"true\"><circle cx=\"12\" cy=\"12\" r=\"6.5\" fill=\"none\" "
      "stroke=\"currentColor\" stroke-width=\"2\"/><path d=\"M3 3.5h18M3 20.5h18\" "
      "stroke=\"currentColor\" stroke-width=\"2\" stroke-linecap=\"round\"/></svg> Prony "
      "<span>inference report</span></p>");
  html.raw("<p class=\"eyebrow\"><span class=\"tag kind\">").text(kind_text(record)).raw("</span>");
  if (!record.run.label.empty()) {
    html.raw(" <span class=\"tag\">").text(shorten(record.run.label, 60)).raw("</span>");
  }
  html.raw("</p>\n<h1>");
  html.text(system.model.empty() ? "(no model named)" : shorten(system.model, kNameCharactersMax));
  html.raw("</h1>\n<p class=\"lead\">").text(load_text(record)).raw("</p>\n<p class=\"where\">");
  const auto part = [&](std::string_view text) {
    if (!text.empty()) html.raw("<span>").text(shorten(text, kNameCharactersMax)).raw("</span> ");
  };
  part(system.endpoint);
  part(system.endpoint_type);
  part(system.server);
  if (record.system.kind != SystemKind::kEmulated) part(system.device);
  part(record.run.started_at);
  if (record.metrics.duration_s) part("took " + format_seconds(*record.metrics.duration_s));
  html.raw("</p></header>\n");
}

void write_verdict(Html& html, const Page& page) {
  const auto& validity = page.record.validity;
  if (validity.valid) {
    html.raw("<section class=\"verdict valid\" aria-label=\"Validity\"><h2>Valid</h2><p>");
    if (page.record.source == Source::kMeasured) {
      html.raw("No check on the client, the host or the run spoke against these numbers.");
    } else {
      html.raw("Computed, not measured; no check spoke against these numbers.");
    }
    html.raw("</p>");
  } else {
    html.raw(
        "<section class=\"verdict invalid\" role=\"alert\" aria-label=\"Validity\">"
        "<h2>Invalid run</h2><p>Do not quote these numbers: they say more about how they were "
        "taken than about the system.</p><ul>");
    for (const auto& reason : validity.reasons) {
      html.raw("<li>").text(shorten(reason, 300)).raw("</li>");
    }
    html.raw("</ul>");
  }
  if (page.record.system.kind == SystemKind::kEmulated) {
    html.raw(
        "<p class=\"caveat\">The endpoint emulates the timing of its hardware. Nothing here was "
        "measured on that hardware.</p>");
  }
  if (page.record.run.interrupted) {
    html.raw(
        "<p class=\"caveat\">The run was interrupted; what is shown is the part that had "
        "happened.</p>");
  }
  const auto& m = page.record.metrics;
  if (m.completed == 0) {
    html.raw("<p class=\"caveat\">No request completed, so there is no latency to show.</p>");
  }
  if (m.steady == false) {
    html.raw("<p class=\"caveat\">Not steady: latency changed by ");
    html.text(m.steady_change ? format_percent(*m.steady_change) : "more than noise");
    html.raw(
        " from the first half of the run to the second. A longer run would give other "
        "numbers.</p>");
  }
  if (!validity.warnings.empty()) {
    html.raw("<ul class=\"warnings\">");
    for (const auto& warning : validity.warnings) {
      html.raw("<li>").text(shorten(warning, 300)).raw("</li>");
    }
    html.raw("</ul>");
  }
  html.raw("</section>\n");
}

void write_cards(Html& html, const Page& page) {
  const auto& m = page.record.metrics;
  const char* itl = m.itl_basis == "tokens"   ? "gaps between tokens"
                    : m.itl_basis == "events" ? "gaps between events: tokens an event are not known"
                                              : "gaps between tokens, partly between events";
  html.raw(
      "<section aria-label=\"Summary\"><h2 class=\"quiet\">Summary</h2><div class=\"cards\">\n");
  write_latency_card(html, page,
                     {"ttft", "TTFT", "time to first token", m.ttft_ms, "completed requests"});
  write_latency_card(html, page,
                     {"tpot", "TPOT", "time per output token", m.tpot_ms, "completed requests"});
  write_latency_card(html, page, {"itl", "ITL", "inter-token latency", m.itl_ms, itl});
  write_latency_card(html, page, {"e2e", "E2E", "whole answer", m.e2e_ms, "completed requests"});
  write_throughput_card(html, page);
  write_requests_card(html, page);
  write_goodput_card(html, page);
  write_failures_card(html, page);
  html.raw("</div></section>\n");
}

void write_objectives(Html& html, const Page& page) {
  const core::Json& slo = page.record.slo;
  if (!slo.is_object() || !slo.contains("terms") || !slo["terms"].is_array()) return;
  const auto verdict = [](const core::Json& met) {
    return met.is_boolean() ? (met.get<bool>() ? "met" : "missed") : "undetermined";
  };
  const std::string overall = verdict(slo.value("met", core::Json()));
  html.raw("<section><h2>Objectives <span class=\"tag ").text(overall).raw("\">").text(overall);
  html.raw(
      "</span></h2><div class=\"scroll\"><table><thead><tr><th>objective</th>"
      "<th class=\"num\">value</th><th>verdict</th></tr></thead><tbody>\n");
  for (const auto& term : slo["terms"]) {
    if (!term.is_object()) continue;
    const auto found = term.value("text", core::Json());
    const auto value = term.value("value", core::Json());
    const std::string text = found.is_string() ? found.get<std::string>() : std::string();
    html.raw("<tr>");
    text_cell(html, text);
    html.raw("<td class=\"num\">");
    html.text(value.is_number() ? objective_value(text, value.get<double>()) : kNone);
    html.raw("</td>");
    text_cell(html, verdict(term.value("met", core::Json())));
    html.raw("</tr>\n");
  }
  html.raw(
      "</tbody></table></div><p class=\"note\">Undetermined: too few samples for that "
      "percentile.</p></section>\n");
}

}  // namespace prony::report
