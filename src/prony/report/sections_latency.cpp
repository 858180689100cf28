#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "prony/report/format.hpp"
#include "prony/report/report.hpp"
#include "prony/report/sections.hpp"
#include "prony/report/table.hpp"

namespace prony::report {
namespace {

using record::LatencyStats;

// The empty box that the script draws into, with what it shows in words.
void write_plot(Html& html, const std::string& id, const std::string& description) {
  html.raw("<div class=\"plot\" data-figure=\"").text(id).raw("\" role=\"img\" aria-label=\"");
  html.text(description).raw("\"></div>");
}

std::string shown_text(const CdfFigure& figure) {
  const CdfPoints& points = figure.points;
  std::string text = fmt::format("n = {}", format_count(points.n));
  if (points.thinned) {
    text =
        fmt::format("{} of n = {} points shown, the upper tail one by one",
                    format_count(static_cast<int64_t>(points.x_ms.size())), format_count(points.n));
  }
  if (!points.exact) text += "; values from a histogram, at most 0.1 % late";
  if (figure.stats->ci95.p50) text += "; bars: 95 % intervals of the percentiles";
  if (figure.stats->n && *figure.stats->n != points.n) {
    text += fmt::format("; the record counts n = {}", format_count(*figure.stats->n));
  }
  return text;
}

void write_cdf(Html& html, const CdfFigure& figure) {
  html.raw("<figure class=\"panel\" data-key=\"")
      .text(figure.key)
      .raw("\"><h3>")
      .text(figure.label);
  html.raw("</h3>");
  if (figure.points.n == 0) {
    html.raw("<p class=\"note\">No values to draw: ");
    html.text(std::string_view(figure.key) == "itl"
                  ? "the rows hold no token events (bench --save-detailed keeps them)."
                  : "no completed request has one.");
    html.raw("</p></figure>\n");
    return;
  }
  write_plot(
      html, std::string("cdf-") + figure.key,
      fmt::format("Distribution of {} of {} values: half at or below {} ms, 99 % at or below "
                  "{} ms",
                  figure.label, format_count(figure.points.n), format_number(figure.stats->p50),
                  format_number(figure.stats->p99)));
  html.raw("<figcaption>").text(shown_text(figure)).raw("</figcaption></figure>\n");
}

// Why a page has no figures; nothing if it has.
bool note_missing_figures(Html& html, const Page& page) {
  if (!has_figures()) {
    html.raw(
        "<p class=\"note\">This build of prony has no figures (its page script could not be "
        "bundled); all numbers are in the tables.</p>\n");
    return true;
  }
  if (!page.has_rows) {
    html.raw(
        "<p class=\"note\">No data of single requests was given, so there is nothing to draw; "
        "the tables come from the record alone.</p>\n");
    return true;
  }
  html.raw(
      "<noscript><p class=\"note\">The figures need JavaScript; all numbers are in the tables."
      "</p></noscript>\n");
  return false;
}

struct TableRow {
  const char* name;
  const char* hint;
  const LatencyStats& stats;
};

void write_latency_row(Html& html, const TableRow& row) {
  const LatencyStats& s = row.stats;
  html.raw("<tr><th scope=\"row\" title=\"").text(row.hint).raw("\">").text(row.name).raw("</th>");
  count_cell(html, s.n);
  for (const auto& value :
       {s.p50, s.p75, s.p90, s.p95, s.p99, s.p999, s.max, s.mean, s.sd, s.min}) {
    number_cell(html, value);
  }
  html.raw("</tr>\n");
}

void origin_cell(Html& html, std::optional<double> value,
                 const std::optional<stats::Interval>& ci) {
  html.raw("<td class=\"num\">").text(format_number(value));
  if (value && ci) html.raw(" <span class=\"ci\">").text(interval_text(*ci, *value)).raw("</span>");
  html.raw("</td>");
}

void write_origin_rows(Html& html, const char* name, const LatencyStats& sent,
                       const LatencyStats& intended) {
  const auto line = [&](const char* percentile, std::optional<double> a,
                        const std::optional<stats::Interval>& a_ci, std::optional<double> b,
                        const std::optional<stats::Interval>& b_ci) {
    html.raw("<tr><th scope=\"row\">").text(name).raw(" ").text(percentile).raw("</th>");
    origin_cell(html, a, a_ci);
    origin_cell(html, b, b_ci);
    html.raw("</tr>\n");
  };
  line("p50", sent.p50, sent.ci95.p50, intended.p50, intended.ci95.p50);
  line("p90", sent.p90, sent.ci95.p90, intended.p90, intended.ci95.p90);
  line("p99", sent.p99, sent.ci95.p99, intended.p99, intended.ci95.p99);
}

std::string window_text(const Page& page) {
  const auto& rule = page.record.metrics.window_rule;
  if (rule == "arrivals")
    return "up to the last scheduled arrival; answers that came later are outside";
  if (rule == "completions") return "up to the last completion";
  return "as given";
}

}  // namespace

void write_distributions(Html& html, const Page& page) {
  html.raw("<section id=\"latency\"><div class=\"bar\"><h2>Latency</h2>");
  const bool any = std::any_of(page.figures.cdf.begin(), page.figures.cdf.end(),
                               [](const auto& figure) { return figure.points.n > 0; });
  if (has_figures() && any) {
    html.raw(
        "<div class=\"switch\" role=\"group\" aria-label=\"Scale of the latency axis\">"
        "<button type=\"button\" data-scale=\"linear\">linear</button>"
        "<button type=\"button\" data-scale=\"log\">log</button></div>");
  }
  html.raw("</div>\n");
  const auto& m = page.record.metrics;
  if (m.completed && m.failed && *m.completed > 0) {
    html.raw("<p class=\"note\">Share of values at or below each latency, of ");
    html.text(format_count(*m.completed)).raw(" completed requests");
    if (*m.failed > 0)
      html.raw("; ").text(format_count(*m.failed)).raw(" failed ones are left out");
    html.raw(".</p>\n");
  }
  if (note_missing_figures(html, page)) {
    html.raw("</section>\n");
    return;
  }
  if (!any) {
    html.raw(
        "<p class=\"note\">No request completed, so there is nothing to draw.</p></section>\n");
    return;
  }
  html.raw("<div class=\"panels\">\n");
  for (const auto& figure : page.figures.cdf) write_cdf(html, figure);
  html.raw("</div></section>\n");
}

void write_latency_table(Html& html, const Page& page) {
  const auto& m = page.record.metrics;
  const TableRow rows[] = {
      {"TTFT", "first token, from sending", m.ttft_ms},
      {"TPOT", "per output token after the first", m.tpot_ms},
      {"ITL", "gap before each token", m.itl_ms},
      {"ICL", "gap between events that carry tokens", m.icl_ms},
      {"E2E", "last token, from sending", m.e2e_ms},
      {"TTFT, intended", "first token, from the scheduled start", m.ttft_intended_ms},
      {"E2E, intended", "last token, from the scheduled start", m.e2e_intended_ms},
      {"TTFE", "first event of any kind, from sending", m.ttfe_ms},
      {"TTFO", "first token that is not reasoning", m.ttfo_ms},
      {"E2E per token", "whole answer over its tokens", m.ntpot_ms},
      {"TPOT, vLLM form", "divided by N - 1", m.tpot_vllm_ms},
      {"Queue", "waiting inside the system", m.queue_ms},
      {"Connect", "opening a connection, where one was opened", m.connect_ms},
  };
  const auto filled = [](const TableRow& row) { return row.stats.known() && row.stats.n != 0; };
  if (std::none_of(std::begin(rows), std::end(rows), filled)) return;
  html.raw(
      "<section><h2>All latencies <span class=\"unit\">ms</span></h2><div class=\"scroll\">"
      "<table class=\"wide\"><thead><tr><th></th><th class=\"num\">n</th>"
      "<th class=\"num\">p50</th><th class=\"num\">p75</th><th class=\"num\">p90</th>"
      "<th class=\"num\">p95</th><th class=\"num\">p99</th><th class=\"num\">p99.9</th>"
      "<th class=\"num\">max</th><th class=\"num\">mean</th><th class=\"num\">sd</th>"
      "<th class=\"num\">min</th></tr></thead><tbody>\n");
  for (const auto& row : rows) {
    if (filled(row)) write_latency_row(html, row);
  }
  html.raw(
      "</tbody></table></div><p class=\"note\">A percentile stands where at least ten values lie "
      "beyond it: p90 from n = 100, p95 from 200, p99 from 1,000, p99.9 from 10,000. Percentiles "
      "interpolate linearly.");
  if (m.tpot_undefined > 0) {
    html.raw(" TPOT is not defined for ").text(format_count(m.tpot_undefined));
    html.raw(" completed requests of a single token or a single burst.");
  }
  if (m.bursty_streams > 0) {
    html.raw(" In ").text(format_count(m.bursty_streams));
    html.raw(" completed requests most tokens arrived in one instant: their TPOT says little.");
  }
  if (m.itl_basis == "events" || m.itl_basis == "mixed") {
    html.raw(
        " The number of tokens per event is not known everywhere, so ITL there is the gap "
        "between events (ICL).");
  }
  if (!m.approximate.empty()) {
    html.raw(" Percentiles of ").text(shorten(m.approximate, 120));
    html.raw(" come from a histogram, at most 0.1 % late.");
  }
  html.raw("</p></section>\n");
}

void write_origins(Html& html, const Page& page) {
  const auto& m = page.record.metrics;
  if (!m.ttft_intended_ms.p50 && !m.e2e_intended_ms.p50) return;
  html.raw(
      "<section><h2>Two clocks for one wait <span class=\"unit\">ms</span></h2>"
      "<p class=\"note\">Left: from the moment the request was sent. Right: from the moment it "
      "was meant to be sent, which is what a user waits. They part when the client, a cap on "
      "concurrency or a full connection pool held requests back.</p>"
      "<div class=\"scroll\"><table><thead><tr><th></th><th class=\"num\">from sending</th>"
      "<th class=\"num\">from the intended start</th></tr></thead><tbody>\n");
  write_origin_rows(html, "TTFT", m.ttft_ms, m.ttft_intended_ms);
  write_origin_rows(html, "E2E", m.e2e_ms, m.e2e_intended_ms);
  html.raw("</tbody></table></div></section>\n");
}

void write_input_scatter(Html& html, const Page& page) {
  if (!has_figures() || page.figures.scatter.n == 0) return;
  const Scatter& scatter = page.figures.scatter;
  const auto shown = static_cast<int64_t>(scatter.ttft_ms.size());
  html.raw("<section><h2>TTFT against input length</h2><figure class=\"panel\">");
  write_plot(html, "scatter",
             fmt::format("Time to first token against input length, {} requests",
                         format_count(scatter.n)));
  html.raw("<figcaption>");
  if (shown == scatter.n) {
    html.text(fmt::format("one dot a completed request, n = {}", format_count(scatter.n)));
  } else {
    html.text(fmt::format("{} of {} points shown: the {} slowest and a random sample of the others",
                          format_count(shown), format_count(scatter.n), kSlowestKept));
  }
  html.raw("</figcaption></figure></section>\n");
}

void write_over_time(Html& html, const Page& page) {
  if (!has_figures() || !page.figures.timeline) return;
  const Timeline& timeline = *page.figures.timeline;
  html.raw("<section><h2>Over time</h2><figure class=\"panel\">");
  write_plot(html, "timeline", "Output throughput and requests in flight over the run");
  html.raw("<figcaption>Steps of ").text(format_seconds(timeline.bucket_s));
  html.raw("; tokens are counted when they arrive, those of failed requests too.");
  if (page.population.window) {
    html.raw(" Shaded: the measurement window, ").text(window_text(page)).raw(".");
  }
  html.raw("</figcaption></figure></section>\n");
}

}  // namespace prony::report
