#include "prony/report/compare_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/core/file.hpp"
#include "prony/report/assets.hpp"
#include "prony/report/format.hpp"
#include "prony/report/html.hpp"
#include "prony/report/table.hpp"

namespace prony::report {
namespace {

using core::Json;
using record::CompareVerdict;

constexpr size_t kTextMax = 200;

// As on the page of a run: nothing may be loaded, sent or framed.
void write_head(Html& html) {
  html.raw(
          "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
          "data: blob:; style-src-attr 'unsafe-inline'; style-src-elem '")
      .asset(assets().style_hash)
      .raw("'; ");
  if (assets().script.empty()) {
    html.raw("script-src 'none'");
  } else {
    html.raw("script-src '").asset(assets().script_hash).raw("'");
  }
  html.raw("; base-uri 'none'; form-action 'none'\">\n")
      .raw(
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<meta name=\"referrer\" content=\"no-referrer\">\n<title>Comparison \xC2\xB7 Prony "
          "report</title>\n<style>")
      .asset(assets().style)
      .raw("</style>\n</head>\n");
}

void write_header(Html& html, const record::Comparison& comparison) {
  html.raw("<header class=\"top\"><p class=\"brand\">Prony <span>comparison</span></p><h1>");
  for (size_t i = 1; i < comparison.sides.size(); ++i) {
    html.text(i == 1 ? "" : ", ").text(shorten(comparison.sides[i].name, 80));
  }
  html.raw("</h1>\n<p class=\"lead\">against ").text(shorten(comparison.sides[0].name, 80));
  html.raw("</p></header>\n");
  const bool bad = comparison.broken() || comparison.refused();
  html.raw("<section class=\"verdict").raw(bad ? Markup(" invalid") : Markup("")).raw("\"><h2>");
  html.text(comparison.refused()  ? "These runs may not be compared"
            : comparison.broken() ? "A rule is broken"
                                  : "Compared");
  html.raw("</h2><ul>");
  for (const auto& one : comparison.comparisons) {
    for (const auto& reason : one.reasons) {
      html.raw("<li>").text(shorten(reason, 300)).raw("</li>");
    }
  }
  for (const auto verdict : {CompareVerdict::kRegressed, CompareVerdict::kImproved,
                             CompareVerdict::kNoDifference, CompareVerdict::kCannotTell}) {
    html.raw("<li>").text(format_count(comparison.count(verdict))).raw(" figures: ");
    html.text(record::compare_verdict_name(verdict)).raw("</li>");
  }
  html.raw("</ul></section>\n");
}

void write_differences(Html& html, const record::SideComparison& one) {
  if (one.differences.empty()) {
    html.raw("<p class=\"note\">No field of system, workload or environment differs, as far as ")
        .raw("records tell.</p>\n");
    return;
  }
  html.raw(
      "<h3>What differs</h3><div class=\"scroll\" tabindex=\"0\"><table class=\"wide\"><thead><tr>"
      "<th>field</th><th>baseline</th><th>candidate</th></tr></thead><tbody>\n");
  for (const auto& difference : one.differences) {
    html.raw(difference.incomparable ? Markup("<tr class=\"bad\"><th scope=\"row\">")
                                     : Markup("<tr><th scope=\"row\">"));
    html.text(difference.section + "." + shorten(difference.field, 80)).raw("</th><td>");
    html.text(shorten(difference.baseline, kTextMax)).raw("</td><td>");
    html.text(shorten(difference.candidate, kTextMax)).raw("</td></tr>\n");
  }
  html.raw("</tbody></table></div>\n");
}

const record::Change& shown_change(const record::ComparedMetric& metric) {
  return metric.unit.empty() ? metric.difference : metric.relative;
}

// From -bound to +bound, in per cent or points. What reaches further is cut at the edge, so that
// one wide interval does not flatten all others.
double plot_bound(const record::SideComparison& one, bool fractions) {
  std::vector<double> ends;
  for (const auto& metric : one.metrics) {
    const auto& change = shown_change(metric);
    if (metric.unit.empty() != fractions || !change.interval) continue;
    ends.push_back(std::max(std::abs(change.interval->lower), std::abs(change.interval->upper)));
  }
  if (ends.empty()) return 0;
  std::sort(ends.begin(), ends.end());
  const double typical = ends[(ends.size() - 1) * 3 / 4];
  return 100 * std::max(1e-4, std::min(ends.back(), 3 * typical));
}

Markup tone(CompareVerdict verdict) {
  switch (verdict) {
    case CompareVerdict::kImproved:
      return "var(--good)";
    case CompareVerdict::kRegressed:
      return "var(--bad)";
    default:
      return "var(--muted)";
  }
}

void write_bar(Html& html, const record::ComparedMetric& metric, double bound) {
  const auto& change = shown_change(metric);
  html.raw("<td><div style=\"position:relative;height:20px;min-width:200px\">");
  html.raw("<span style=\"position:absolute;left:50%;top:0;bottom:0;border-left:1px solid ");
  html.raw("var(--rule)\"></span>");
  if (change.value && change.interval && bound > 0) {
    const auto place = [bound](double value) {
      return 50 + 50 * std::clamp(100 * value / bound, -1.0, 1.0);
    };
    const double low = place(change.interval->lower), high = place(change.interval->upper);
    html.raw("<span style=\"position:absolute;top:9px;height:3px;left:");
    html.text(fmt::format("{:.2f}%;width:max(2px,{:.2f}%);background:", low, high - low));
    html.raw(tone(metric.verdict)).raw("\"></span>");
    html.raw(
        "<span style=\"position:absolute;top:6px;width:9px;height:9px;margin-left:-4px;"
        "border-radius:5px;left:");
    html.text(fmt::format("{:.2f}%;background:", place(*change.value)));
    html.raw(tone(metric.verdict)).raw("\"></span>");
  }
  html.raw("</div></td>");
}

std::string interval_cell(const record::Change& change, double scale) {
  if (!change.interval) return kNone;
  return fmt::format("{:+.2f} to {:+.2f}", change.interval->lower * scale,
                     change.interval->upper * scale);
}

void write_forest(Html& html, const record::Comparison& whole, const record::SideComparison& one) {
  html.raw("<h3>Changes</h3>\n<p class=\"note\">Dots: the change from the baseline, bars: its ");
  html.text(fmt::format("{:g} % interval", whole.confidence * 100));
  html.raw(". Scale: ").text(fmt::format("\xC2\xB1{:.3g} %", plot_bound(one, false)));
  if (plot_bound(one, true) > 0) {
    html.text(fmt::format(", of fractions \xC2\xB1{:.3g} points", plot_bound(one, true)));
  }
  html.raw("; wider ones are cut. p is adjusted for all tests (Holm).</p>\n");
  html.raw(
      "<div class=\"scroll\" tabindex=\"0\"><table class=\"wide\"><thead><tr><th>figure</th>"
      "<th class=\"num\">baseline</th><th class=\"num\">candidate</th><th "
      "class=\"num\">change</th><th></th><th class=\"num\">interval</th><th class=\"num\">p</th>"
      "<th>verdict</th></tr></thead><tbody>\n");
  for (const auto& metric : one.metrics) {
    const bool fraction = metric.unit.empty();
    const auto& change = shown_change(metric);
    html.raw(metric.verdict == CompareVerdict::kRegressed ? Markup("<tr class=\"bad\">")
                                                          : Markup("<tr>"));
    html.raw("<th scope=\"row\">").text(metric.label).raw(" <small>").text(metric.unit);
    html.raw("</small></th>");
    number_cell(html, metric.baseline);
    number_cell(html, metric.candidate);
    html.raw("<td class=\"num\">");
    html.text(change.value ? fmt::format("{:+.2f} {}", *change.value * 100, fraction ? "pp" : "%")
                           : kNone);
    html.raw("</td>");
    write_bar(html, metric, plot_bound(one, fraction));
    html.raw("<td class=\"num\">").text(interval_cell(change, 100)).raw("</td>");
    html.raw("<td class=\"num\">");
    html.text(metric.p_holm ? fmt::format("{:.3f}", *metric.p_holm) : kNone).raw("</td><td>");
    html.text(record::compare_verdict_name(metric.verdict));
    if (!metric.p) html.raw(" <small>").text(metric.method).raw("</small>");
    html.raw("</td></tr>\n");
  }
  html.raw("</tbody></table></div>\n");
}

void write_ranks(Html& html, const record::SideComparison& one) {
  if (one.distributions.empty()) return;
  html.raw(
      "<h3>All requests</h3><div class=\"scroll\" tabindex=\"0\"><table class=\"wide\"><thead><tr>"
      "<th>latency</th><th>test</th><th class=\"num\">n baseline</th><th class=\"num\">n candidate"
      "</th><th class=\"num\">shift, ms</th><th class=\"num\">interval</th><th "
      "class=\"num\">Cliff's delta</th><th class=\"num\">interval</th><th class=\"num\">p</th><th>"
      "verdict</th></tr></thead><tbody>\n");
  for (const auto& row : one.distributions) {
    html.raw("<tr><th scope=\"row\">").text(row.label).raw("</th>");
    text_cell(html, row.test);
    count_cell(html, row.n_baseline);
    count_cell(html, row.n_candidate);
    number_cell(html, row.shift_ms.value);
    html.raw("<td class=\"num\">").text(interval_cell(row.shift_ms, 1)).raw("</td>");
    number_cell(html, row.cliffs_delta.value);
    html.raw("<td class=\"num\">").text(interval_cell(row.cliffs_delta, 1)).raw("</td>");
    html.raw("<td class=\"num\">");
    html.text(row.p_holm ? fmt::format("{:.3f}", *row.p_holm) : kNone).raw("</td>");
    text_cell(html, record::compare_verdict_name(row.verdict));
    html.raw("</tr>\n");
  }
  html.raw("</tbody></table></div>\n");
}

void write_rules(Html& html, const record::SideComparison& one) {
  if (one.rules.empty()) return;
  html.raw(
      "<h3>Rules</h3><div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>fails "
      "where</th><th "
      "class=\"num\">change</th><th class=\"num\">interval</th><th></th></tr></thead><tbody>\n");
  for (const auto& rule : one.rules) {
    html.raw(rule.state == record::RuleState::kBroken ? Markup("<tr class=\"bad\">")
                                                      : Markup("<tr>"));
    html.raw("<th scope=\"row\">").text(rule.text).raw("</th><td class=\"num\">");
    html.text(rule.change.value ? fmt::format("{:+.2f} {}", *rule.change.value, rule.unit) : kNone);
    html.raw("</td><td class=\"num\">").text(interval_cell(rule.change, 1)).raw("</td>");
    text_cell(html, record::rule_state_name(rule.state));
    html.raw("</tr>\n");
  }
  html.raw("</tbody></table></div>\n");
}

constexpr const char* kCurves[] = {"ttft", "tpot", "itl", "e2e"};

bool has_curve(const record::Comparison& comparison, std::string_view key) {
  return std::ranges::any_of(comparison.curves,
                             [&](const auto& curve) { return curve.key == key; });
}

void write_curves(Html& html, const record::Comparison& comparison) {
  if (assets().script.empty() || comparison.curves.empty()) return;
  html.raw(
      "<section><div class=\"bar\"><h2>Distributions</h2><div class=\"switch\" role=\"group\" "
      "aria-label=\"Scale of the latency axis\"><button type=\"button\" data-scale=\"linear\">"
      "linear</button><button type=\"button\" data-scale=\"log\">log</button></div></div>\n<p "
      "class=\"note\">Share of values at or below each latency, of completed requests; several "
      "runs of a side are pooled.</p><div class=\"panels\">\n");
  for (const char* key : kCurves) {
    if (!has_curve(comparison, key)) continue;
    html.raw("<figure class=\"panel\" data-key=\"").text(key).raw("\"><h3>");
    html.text(std::ranges::find(comparison.curves, key, &record::CompareCurve::key)->label);
    html.raw("</h3><div class=\"plot\" data-figure=\"cdf-").text(key).raw("\"></div><figcaption>");
    for (const auto& curve : comparison.curves) {
      if (curve.key != key) continue;
      html.text(curve.side == 0 ? "coloured: " : curve.side == 1 ? "; dashed: " : "; dotted: ");
      html.text(shorten(comparison.sides[curve.side].name, 60));
      html.text(fmt::format(" (n = {})", format_count(curve.n)));
    }
    html.raw("</figcaption></figure>\n");
  }
  html.raw("</div></section>\n");
}

// The shape is PageData of web/src/data.ts: the baseline's curve, the others over it.
Json curves_json(const record::Comparison& comparison) {
  Json cdf = Json::array();
  for (const char* key : kCurves) {
    Json figure;
    for (const auto& curve : comparison.curves) {
      if (curve.key != key) continue;
      const auto name = shorten(comparison.sides[curve.side].name, 60);
      if (figure.is_null()) {
        figure = {{"key", key},           {"label", name}, {"n", curve.n},
                  {"x", curve.x_ms},      {"p", curve.p},  {"marks", Json::array()},
                  {"over", Json::array()}};
      } else {
        figure["over"].push_back(
            {{"label", name}, {"n", curve.n}, {"x", curve.x_ms}, {"p", curve.p}});
      }
    }
    if (!figure.is_null()) cdf.push_back(std::move(figure));
  }
  return {{"cdf", std::move(cdf)},
          {"scatter", nullptr},
          {"timeline", nullptr},
          {"requests", nullptr},
          {"telemetry", Json::array()}};
}

void write_runs(Html& html, const record::Comparison& comparison) {
  html.raw(
      "<section><h2>Runs</h2><div class=\"scroll\" tabindex=\"0\"><table class=\"wide\"><thead><tr>"
      "<th>side</th><th>run</th><th>source</th><th>system</th><th>started</th><th class=\"num\">"
      "rows</th><th>validity</th></tr></thead><tbody>\n");
  for (const auto& side : comparison.sides) {
    for (const auto& run : side.runs) {
      html.raw(run.valid ? Markup("<tr>") : Markup("<tr class=\"bad\">"));
      html.raw("<th scope=\"row\">").text(shorten(side.name, 80)).raw("</th>");
      text_cell(html, shorten(run.path, kTextMax));
      text_cell(html, run.source.empty() ? "rows alone" : run.source);
      text_cell(html, run.system_kind);
      text_cell(html, shorten(run.started_at, 40));
      count_cell(html, run.rows);
      text_cell(html, !run.valid ? "invalid: " +
                                       shorten(run.reasons.empty() ? "" : run.reasons[0], kTextMax)
                      : run.interrupted ? "interrupted"
                                        : "valid");
      html.raw("</tr>\n");
    }
  }
  html.raw("</tbody></table></div></section>\n");
}

}  // namespace

Result<std::string> render_compare_html(const record::Comparison& comparison) {
  Html html;
  write_head(html);
  html.raw("<body>\n<main>\n");
  write_header(html, comparison);
  for (const auto& one : comparison.comparisons) {
    html.raw("<section><h2>").text(shorten(comparison.sides[one.candidate].name, 80));
    html.raw(" against ").text(shorten(comparison.sides[0].name, 80)).raw("</h2>\n<p>Method: ");
    html.text(one.method).raw(".</p>\n");
    for (const auto& note : one.notes) {
      html.raw("<p class=\"caveat\">").text(shorten(note, 300)).raw(".</p>\n");
    }
    write_differences(html, one);
    write_forest(html, comparison, one);
    write_ranks(html, one);
    write_rules(html, one);
    html.raw("</section>\n");
  }
  write_curves(html, comparison);
  write_runs(html, comparison);
  if (!assets().licenses.empty()) {
    html.raw(
        "<details class=\"fold\"><summary>Licences of the software in this page</summary><pre>");
    html.text(assets().licenses).raw("</pre></details>\n");
  }
  html.raw("</main>\n<footer>Prony ").text(comparison.version);
  html.raw(
      ". Definitions: docs/compare.md and docs/metrics.md. This file loads nothing.</footer>\n");
  if (!assets().script.empty()) {
    html.raw("<script type=\"application/json\" id=\"prony-data\">");
    if (auto done = html.json(curves_json(comparison)); !done) return done.error();
    html.raw("</script>\n<script>").asset(assets().script).raw("</script>\n");
  }
  html.raw("</body>\n</html>\n");
  return std::move(html).str();
}

Result<void> write_compare_html(const std::string& path, const record::Comparison& comparison) {
  const auto text = render_compare_html(comparison);
  if (!text) return text.error();
  return core::write_file_atomic(path, text.value());
}

}  // namespace prony::report
