#include "prony/report/sweep_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/core/file.hpp"
#include "prony/report/assets.hpp"
#include "prony/report/format.hpp"
#include "prony/report/table.hpp"

namespace prony::report {
namespace {

// As on the page of a run: nothing may be loaded, sent or framed.
void write_head(Html& html, const record::Sweep& sweep) {
  html.raw(
          "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
          "data: blob:; style-src-attr 'unsafe-inline'; style-src-elem '")
      .asset(sweep_assets().style_hash)
      .raw("'; ");
  if (sweep_assets().script.empty()) {
    html.raw("script-src 'none'");
  } else {
    html.raw("script-src '").asset(sweep_assets().script_hash).raw("'");
  }
  html.raw("; base-uri 'none'; form-action 'none'\">\n")
      .raw(
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<meta name=\"referrer\" content=\"no-referrer\">\n<title>Sweep of ")
      .text(shorten(sweep.model, 80))
      .raw(" \xC2\xB7 Prony report</title>\n<style>")
      .asset(sweep_assets().style)
      .raw("</style>\n</head>\n");
}

}  // namespace

SweepPage make_sweep_page(const record::Sweep& sweep) {
  SweepPage page{sweep, record::sweep_points(sweep), {}, {}, {}};
  page.knees = record::sweep_knees(sweep, page.points);
  std::vector<size_t> numeric;
  for (size_t i = 0; i < sweep.axes.size(); ++i) {
    if (!sweep.axes[i].target && sweep.axes[i].values.size() > 1) numeric.push_back(i);
  }
  std::stable_sort(numeric.begin(), numeric.end(), [&](size_t a, size_t b) {
    return sweep.axes[a].values.size() > sweep.axes[b].values.size();
  });
  if (!numeric.empty()) page.column_axis = numeric[0];
  if (numeric.size() > 1) page.row_axis = numeric[1];
  return page;
}

std::string point_name(const SweepPage& page, const record::SweepPoint& point,
                       std::initializer_list<std::optional<size_t>> without) {
  std::string out;
  for (size_t i = 0; i < point.values.size(); ++i) {
    if (std::find(without.begin(), without.end(), std::optional(i)) != without.end()) continue;
    const auto& axis = page.sweep.axes[i];
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", axis.target ? "" : axis.name + " ",
                       point.values[i]);
  }
  return out;
}

std::string sweep_value_text(const record::SweepValue& value) {
  if (!value.value) return kNone;
  auto out = format_number(*value.value);
  if (value.lower && value.upper) {
    const int digits = digits_of(*value.value);
    out += fmt::format(" [{}, {}]", format_fixed(*value.lower, digits),
                       format_fixed(*value.upper, digits));
  }
  return out;
}

void write_sweep_header(Html& html, const SweepPage& page) {
  const auto& sweep = page.sweep;
  html.raw("<header class=\"top\"><p class=\"brand\">Prony <span>sweep</span></p>");
  html.raw("<h1>").text(shorten(sweep.model.empty() ? "no model" : sweep.model, 120));
  html.raw("</h1>\n<p class=\"lead\">");
  for (size_t i = 0; i < sweep.axes.size(); ++i) {
    const auto& axis = sweep.axes[i];
    html.text(i == 0 ? "" : ", ").text(axis.name).text(" ").text(axis.values.front());
    if (axis.values.size() > 1) html.text(axis.target ? ", " : " to ").text(axis.values.back());
  }
  html.raw("</p>\n<p class=\"where\"><span>").text(format_count(std::ssize(sweep.cells)));
  html.raw(" cells</span><span>").text(sweep.started_at).raw("</span>");
  if (!sweep.label.empty()) html.raw("<span>").text(shorten(sweep.label, 120)).raw("</span>");
  html.raw("</p></header>\n");

  const auto done = sweep.count(record::CellStatus::kDone);
  const auto undone = std::ssize(sweep.cells) - done;
  const auto invalid = sweep.count_invalid();
  const auto overloaded = std::count_if(page.points.begin(), page.points.end(),
                                        [](const auto& point) { return point.overloaded; });
  const auto mocks =
      std::count_if(sweep.cells.begin(), sweep.cells.end(), [](const record::SweepCell& cell) {
        return cell.system_kind == "mock" || cell.system_kind == "emulated";
      });
  const bool clean = undone == 0 && invalid == 0;
  html.raw("<section class=\"verdict").raw(clean ? Markup("") : Markup(" invalid")).raw("\"><h2>");
  html.text(clean ? "Every cell was measured and is valid"
                  : "Not every cell has a result that can be believed");
  html.raw("</h2><ul>");
  const auto line = [&html](int64_t count, const char* text) {
    if (count > 0) html.raw("<li>").text(format_count(count)).text(text).raw("</li>");
  };
  line(undone, " cells have no result; the table says why");
  line(invalid, " cells are invalid: the client spoilt them. They give no value and are hatched");
  line(overloaded,
       " points are overloaded: their queue grew through the run, so their latencies depend on how "
       "long it was");
  line(mocks,
       " cells loaded a mock or an emulated server: its timing is not that of a real device");
  html.raw("</ul></section>\n");
}

void write_sweep_points(Html& html, const SweepPage& page) {
  html.raw(
      "<section><h2>Points</h2>\n<p class=\"note\">One run: its value with its own 95 % interval "
      "where there is one. Several: the median of the runs, from the least to the "
      "greatest.</p>\n<div class=\"scroll\" tabindex=\"0\"><table class=\"wide\"><thead><tr>");
  for (const auto& axis : page.sweep.axes) html.raw("<th>").text(axis.name).raw("</th>");
  html.raw("<th class=\"num\">runs</th>");
  for (const auto& metric : record::sweep_metrics()) {
    html.raw("<th class=\"num\">").text(metric.label).raw("<br>").text(metric.unit).raw("</th>");
  }
  html.raw("</tr></thead><tbody>\n");
  for (const auto& point : page.points) {
    html.raw(point.runs_valid > 0 ? Markup("<tr>") : Markup("<tr class=\"bad\">"));
    for (const auto& value : point.values) html.raw("<th scope=\"row\">").text(value).raw("</th>");
    html.raw("<td class=\"num\">").text(format_count(point.runs_valid)).raw("</td>");
    for (const auto& value : point.metrics) {
      html.raw("<td class=\"num\">").text(sweep_value_text(value)).raw("</td>");
    }
    html.raw("</tr>\n");
  }
  html.raw("</tbody></table></div>\n");
  for (const auto& knee : page.knees) {
    const auto& point = page.points[knee.point];
    html.raw("<p>Knee at ").text(point_name(page, point)).raw(": ");
    html.text(sweep_value_text(point.metric("request_throughput"))).raw(" requests/s, E2E mean ");
    html.text(sweep_value_text(point.metric("e2e_mean_ms"))).raw(" ms");
    html.text(knee.at_the_edge ? "; it is the last value, so the knee may lie beyond" : "");
    html.raw(".</p>\n");
  }
  html.raw("</section>\n");
}

void write_sweep_cells(Html& html, const SweepPage& page) {
  html.raw(
      "<section><h2>Cells</h2>\n<div class=\"scroll\" tabindex=\"0\"><table class=\"wide\"><thead>"
      "<tr><th>cell</th><th>status</th><th class=\"num\">requests</th><th "
      "class=\"num\">failed</th><th class=\"num\">seed</th><th>note</th></tr></thead><tbody>\n");
  for (const auto& cell : page.sweep.cells) {
    const bool bad = cell.status != record::CellStatus::kDone || !cell.validity.valid;
    html.raw(bad ? Markup("<tr class=\"bad\"><th>") : Markup("<tr><th>"));
    if (cell.record_path.empty()) {
      html.text(cell.slug);
    } else {
      html.raw("<a href=\"").text(cell.record_path).raw("\">").text(cell.slug).raw("</a>");
    }
    html.raw("</th><td>").text(record::cell_status_name(cell.status)).raw("</td>");
    count_cell(html, cell.has_metrics() ? cell.metrics.attempted : std::nullopt);
    count_cell(html, cell.has_metrics() ? cell.metrics.failed : std::nullopt);
    html.raw("<td class=\"num\">")
        .text(std::to_string(cell.seed))
        .raw("</td><td class=\"meaning\">");
    html.text(shorten(cell.error, 300));
    if (cell.has_metrics() && !cell.validity.valid) {
      html.text("invalid: ").text(shorten(cell.validity.reasons.front(), 300)).text(". ");
    }
    if (cell.has_metrics() && cell.metrics.overloaded == true) html.text("overloaded. ");
    if (cell.slo_met) html.text(*cell.slo_met ? "keeps --slo. " : "breaks --slo. ");
    if (cell.resumed) html.text("from an earlier run");
    html.raw("</td></tr>\n");
  }
  html.raw("</tbody></table></div></section>\n");
}

void write_sweep_facts(Html& html, const SweepPage& page) {
  const auto& sweep = page.sweep;
  html.raw("<div class=\"columns\">\n<section><h2>The sweep</h2>");
  {
    FactTable table(html);
    table.add("command", shorten(fmt::format("{}", fmt::join(sweep.command, " ")), 2000));
    table.add("seed", std::to_string(sweep.seed));
    table.add("runs of each cell", format_count(sweep.num_runs));
    for (const auto& target : sweep.targets) {
      table.add("target " + target.name,
                shorten(target.url.empty() ? target.command : target.url, 500));
    }
  }
  html.raw("</section>\n<section><h2>Environment of the client</h2>");
  {
    FactTable table(html);
    const auto& environment = sweep.environment;
    table.add("cpu", environment.cpu);
    table.add("cores", environment.cores > 0 ? format_count(environment.cores) : "");
    table.add("kernel", environment.kernel);
    table.add("compiler", environment.compiler);
    table.add("Prony", environment.version + " " + environment.commit);
  }
  html.raw("</section></div>\n");
}

Result<std::string> render_sweep_html(const record::Sweep& sweep) {
  const auto page = make_sweep_page(sweep);
  Html html;
  write_head(html, sweep);
  html.raw("<body>\n<main>\n");
  write_sweep_header(html, page);
  if (!sweep_assets().script.empty()) write_sweep_figures(html, page);
  write_sweep_maps(html, page);
  write_sweep_points(html, page);
  write_sweep_cells(html, page);
  write_sweep_facts(html, page);
  if (!sweep_assets().licenses.empty()) {
    html.raw(
        "<details class=\"fold\"><summary>Licences of the software in this page</summary><pre>");
    html.text(sweep_assets().licenses).raw("</pre></details>\n");
  }
  html.raw("</main>\n<footer>Prony ").text(sweep.environment.version);
  html.raw(
      ". Definitions: docs/sweeps.md and docs/metrics.md. This file loads nothing.</footer>\n");
  if (!sweep_assets().script.empty()) {
    html.raw("<script type=\"application/json\" id=\"prony-data\">");
    if (auto done = html.json(sweep_figures_json(page)); !done) return done.error();
    html.raw("</script>\n<script>").asset(sweep_assets().script).raw("</script>\n");
  }
  html.raw("</body>\n</html>\n");
  return std::move(html).str();
}

Result<void> write_sweep_html(const std::string& path, const record::Sweep& sweep) {
  const auto text = render_sweep_html(sweep);
  if (!text) return text.error();
  return core::write_file_atomic(path, text.value());
}

}  // namespace prony::report
