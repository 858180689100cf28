// The sections of single requests and of what was measured beside the load: tables that need no
// script, and the boxes that the script fills.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "prony/record/row_groups.hpp"
#include "prony/report/format.hpp"
#include "prony/report/report.hpp"
#include "prony/report/sections.hpp"
#include "prony/report/telemetry_series.hpp"

namespace prony::report {
namespace {

constexpr size_t kSlowestShown = 10;

void number_cell(Html& html, const std::string& text) {
  html.raw("<td class=\"num\">").text(text).raw("</td>");
}

std::string ms_text(const std::optional<int64_t>& us) {
  return us ? format_number(static_cast<double>(*us) / 1000) : std::string(kNone);
}

void write_slowest(Html& html, const RequestList& list, core::Nanos origin_ns) {
  html.raw(
      "<p class=\"note\">The slowest to the first token:</p><div class=\"scroll\"><table>"
      "<thead><tr><th>request</th><th class=\"num\">start, s</th><th class=\"num\">queued, ms</th>"
      "<th class=\"num\">TTFT, ms</th><th class=\"num\">E2E, ms</th><th class=\"num\">input</th>"
      "<th class=\"num\">output</th><th>status</th></tr></thead><tbody>\n");
  for (const auto& one : list.slowest(kSlowestShown)) {
    html.raw("<tr><th scope=\"row\">").text(format_count(one.index)).raw("</th>");
    number_cell(html, format_number(static_cast<double>(one.t_intended_ns - origin_ns) / 1e9));
    number_cell(html, ms_text(one.queue_us));
    number_cell(html, ms_text(one.ttft_us));
    number_cell(html, ms_text(one.e2e_us));
    number_cell(html, format_count(one.input_tokens));
    number_cell(html, format_count(one.output_tokens));
    html.raw("<td>").text(record::status_name(one.status)).raw("</td></tr>\n");
  }
  html.raw("</tbody></table></div>");
}

// A line for each group of requests.
template <class Stats>
void write_groups(Html& html, Markup heading, Markup unit, std::vector<Stats> groups) {
  if (groups.empty()) return;
  html.raw(heading)
      .raw("<div class=\"scroll\"><table><thead><tr><th>")
      .raw(unit)
      .raw(
          "</th><th class=\"num\">from, s</th><th class=\"num\">to, s</th>"
          "<th class=\"num\">requests</th><th class=\"num\">requests/s</th>"
          "<th class=\"num\">failed</th><th class=\"num\">input, mean</th>"
          "<th class=\"num\">output, mean</th><th class=\"num\">TTFT p50, ms</th>"
          "<th class=\"num\">TTFT p90, ms</th><th class=\"num\">TTFT p99, ms</th>"
          "<th class=\"num\">TPOT p50, ms</th><th class=\"num\">E2E p50, ms</th>"
          "<th class=\"num\">E2E p99, ms</th></tr></thead><tbody>\n");
  for (auto& group : groups) {
    html.raw("<tr><th scope=\"row\">").text(format_count(group.number() + 1));
    if (group.number() == record::kGroupsMax - 1) html.raw(" and later");
    html.raw("</th>");
    const double length_s = group.end_s - group.begin_s;
    number_cell(html, format_number(group.begin_s));
    number_cell(html, format_number(group.end_s));
    number_cell(html, format_count(group.attempted));
    number_cell(html, length_s > 0 && group.attempted > 1
                          ? format_number(static_cast<double>(group.attempted - 1) / length_s)
                          : std::string("-"));
    number_cell(html, format_count(group.attempted - group.completed));
    for (const auto& value :
         {group.input_tokens_mean, group.output_tokens_mean, group.ttft_ms.p50, group.ttft_ms.p90,
          group.ttft_ms.p99, group.tpot_ms.p50, group.e2e_ms.p50, group.e2e_ms.p99}) {
      number_cell(html, format_number(value));
    }
    html.raw("</tr>\n");
  }
  html.raw(
      "</tbody></table></div><p class=\"note\">Times are intended starts from the begin of the "
      "measurement window; latencies and means are over its completed requests; p90 from n = 100, "
      "p99 from n = 1,000.</p></section>\n");
}

}  // namespace

void write_stages(Html& html, const Page& page) {
  write_groups(html, "<section id=\"stages\"><h2>Stages of the load</h2>", "stage",
               page.record.metrics.stages);
}

void write_turns(Html& html, const Page& page) {
  write_groups(html, "<section id=\"turns\"><h2>Turns of the conversations</h2>", "turn",
               page.record.metrics.turns);
}

void write_requests(Html& html, const Page& page) {
  if (!page.figures.requests) return;
  const auto& list = *page.figures.requests;
  const auto listed = static_cast<int64_t>(list.listed().size());
  html.raw("<section id=\"requests\"><h2>Single requests</h2>");
  write_slowest(html, list, page.figures.timeline ? page.figures.timeline->origin_ns : 0);
  if (has_figures()) {
    html.raw("<div class=\"requests\" data-requests></div>");
    html.raw("<p class=\"note figures-only\">");
    if (listed < list.total()) {
      html.text(
          fmt::format("{} of {} requests listed: the slowest to the first token, the failed "
                      "and an even share of the others. ",
                      format_count(listed), format_count(list.total())));
    }
    html.raw(
        "Arrow keys choose, column heads sort. The strip shows the time in the queue, to the first "
        "token and after it, below it each token event: of the slowest, of those with the longest "
        "gaps, of the failed and of the first; requests.jsonl has the others.</p>");
  }
  html.raw("</section>\n");
}

void write_telemetry(Html& html, const Page& page) {
  const auto all = read_telemetry(page.record.telemetry);
  const auto notes = telemetry_notes(page.record.telemetry);
  if (all.empty() && notes.empty()) return;
  html.raw("<section id=\"telemetry\"><h2>Beside the load</h2>");
  if (has_figures() && page.figures.timeline && !all.empty()) {
    html.raw(
        "<figure class=\"panel\"><div class=\"plot\" data-figure=\"telemetry\" role=\"img\" "
        "aria-label=\"Server, host and device over the run\"></div><figcaption>Samples of the "
        "server, the host and its devices, on the time axis of the run.</figcaption></figure>");
  }
  if (!all.empty()) {
    html.raw(
        "<div class=\"scroll\"><table><thead><tr><th>series</th><th>source</th><th>unit</th>"
        "<th class=\"num\">samples</th><th class=\"num\">least</th><th class=\"num\">mean</th>"
        "<th class=\"num\">most</th></tr></thead><tbody>\n");
  }
  for (const auto& series : all) {
    const auto& values = series.values;
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const double mean =
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    html.raw("<tr><th scope=\"row\">").text(shorten(series.name, 80)).raw("</th><td>");
    html.text(shorten(series.source, 40)).raw("</td><td>").text(shorten(series.unit, 20));
    html.raw("</td>");
    number_cell(html, format_count(static_cast<int64_t>(values.size())));
    for (const double value : {*low, mean, *high}) number_cell(html, format_number(value));
    html.raw("</tr>\n");
  }
  if (!all.empty()) html.raw("</tbody></table></div>");
  for (const auto& note : notes) {
    html.raw("<p class=\"note\">").text(shorten(note, 300)).raw("</p>");
  }
  html.raw("</section>\n");
}

}  // namespace prony::report
