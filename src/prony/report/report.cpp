#include "prony/report/report.hpp"

#include "prony/core/file.hpp"
#include "prony/report/assets.hpp"
#include "prony/report/html.hpp"
#include "prony/report/sections.hpp"

namespace prony::report {
namespace {

// Nothing may be loaded, sent or framed; one script and one style sheet, named by their hashes.
// Style attributes are the exception: the chart library positions its nodes with them. With no
// origin to load from, a style can fetch nothing.
void write_policy(Html& html) {
  html.raw(
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
          "data:; "
          "style-src-attr 'unsafe-inline'; style-src-elem '")
      .asset(assets().style_hash)
      .raw("'; ");
  if (assets().script.empty()) {
    html.raw("script-src 'none'");
  } else {
    html.raw("script-src '").asset(assets().script_hash).raw("'");
  }
  html.raw("; base-uri 'none'; form-action 'none'\">\n");
}

void write_head(Html& html, const record::Record& record) {
  html.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
  write_policy(html);
  html.raw(
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
  if (!record.validity.valid) html.raw("INVALID: ");
  html.text(shorten(record.system.model, 80)).raw(" \xC2\xB7 Prony report</title>\n");
  html.raw(
      "<link rel=\"icon\" href=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' "
      "viewBox='0 0 24 24'%3E%3Ccircle cx='12' cy='12' r='6.5' fill='none' stroke='%231f6f8b' "
      "stroke-width='2'/%3E%3Cpath d='M3 3.5h18M3 20.5h18' stroke='%231f6f8b' stroke-width='2' "
      "stroke-linecap='round'/%3E%3C/svg%3E\">\n");
  html.raw("<style>").asset(assets().style).raw("</style>\n</head>\n");
}

void write_notices(Html& html) {
  if (assets().licenses.empty()) return;
  html.raw("<details class=\"fold\"><summary>Licences of the software in this page</summary><pre>");
  html.text(assets().licenses).raw("</pre></details>\n");
}

}  // namespace

bool has_figures() {
  return !assets().script.empty();
}

Result<std::string> render_html(const record::Record& record, const record::RowSource& rows,
                                const Options& options) {
  const Population members = population(rows, record.metrics, options.summary);
  const Page page = {record, !rows.empty(), members, make_figures(rows, members, record.metrics)};
  Html html;
  write_head(html, record);
  html.raw("<body>\n<main>\n");
  write_header(html, page);
  write_verdict(html, page);
  write_cards(html, page);
  write_objectives(html, page);
  write_distributions(html, page);
  write_latency_table(html, page);
  write_origins(html, page);
  write_input_scatter(html, page);
  write_over_time(html, page);
  write_telemetry(html, page);
  write_stages(html, page);
  write_turns(html, page);
  write_requests(html, page);
  write_errors(html, page);
  write_tokens(html, page);
  html.raw("<div class=\"columns\">\n");
  write_client(html, page);
  write_workload(html, page);
  write_system(html, page);
  write_environment(html, page);
  write_extra(html, page);
  html.raw("</div>\n");
  write_definitions(html);
  write_notices(html);
  html.raw("</main>\n<footer>Prony ").text(record.environment.version).raw(", commit ");
  html.text(record.environment.commit)
      .raw(
          ". This file is complete in itself and loads nothing."
          "</footer>\n");
  if (has_figures() && page.figures.any()) {
    html.raw("<script type=\"application/json\" id=\"prony-data\">");
    if (auto done = html.json(figures_to_json(page.figures, page.population, record.telemetry));
        !done) {
      return done.error();
    }
    html.raw("</script>\n<script>").asset(assets().script).raw("</script>\n");
  }
  html.raw("</body>\n</html>\n");
  return std::move(html).str();
}

Result<void> write_html(const std::string& path, const record::Record& record,
                        const record::RowSource& rows, const Options& options) {
  const auto text = render_html(record, rows, options);
  if (!text) return text.error();
  return core::write_file_atomic(path, *text);
}

}  // namespace prony::report
