#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "prony/report/format.hpp"
#include "prony/report/sections.hpp"
#include "prony/report/table.hpp"

namespace prony::report {
namespace {

struct StatusMeaning {
  std::string_view status;
  std::string_view meaning;
};
constexpr auto kMeanings = std::to_array<StatusMeaning>({
    {"http_4xx", "the server refused the request"},
    {"http_5xx", "the server failed"},
    {"stream_error", "an error inside the stream, after a 200"},
    {"truncated", "the stream ended without its end marker"},
    {"empty", "a whole answer without a single token"},
    {"not_stream", "a 200 that was not a stream"},
    {"parse", "an event that the protocol does not allow"},
    {"interrupted", "in flight when the run was interrupted"},
    {"connect", "no connection"},
    {"timeout_connect", "no connection in time"},
    {"timeout_ttft", "no first token in time"},
    {"timeout_stall", "tokens stopped coming"},
    {"timeout_total", "not finished in time"},
    {"cancelled", "given up by the client on purpose"},
    {"unfinished", "in flight when the drain limit passed"},
});

std::string_view meaning_of(std::string_view status) {
  const auto found = std::find_if(kMeanings.begin(), kMeanings.end(),
                                  [&](const auto& entry) { return entry.status == status; });
  return found == kMeanings.end() ? std::string_view() : found->meaning;
}

std::string share_text(int64_t count, std::optional<int64_t> of) {
  if (!of || *of == 0) return kNone;
  return format_percent(static_cast<double>(count) / static_cast<double>(*of));
}

void write_tally(Html& html, const char* name, const record::TokenTally& tally) {
  html.raw("<tr><th scope=\"row\">").text(name).raw("</th>");
  count_cell(html, tally.requests);
  count_cell(html, tally.asked);
  count_cell(html, tally.got);
  html.raw("<td class=\"num\">");
  // A ratio of sums over the same requests only.
  html.text(tally.unknown == 0 && tally.asked > 0 ? share_text(tally.got, tally.asked) : kNone);
  html.raw("</td>");
  count_cell(html, tally.equal);
  count_cell(html, tally.fewer);
  count_cell(html, tally.more);
  count_cell(html, tally.unknown);
  html.raw("</tr>\n");
}

}  // namespace

void write_errors(Html& html, const Page& page) {
  const auto& m = page.record.metrics;
  html.raw("<section id=\"failures\"><h2>Failures</h2><p class=\"headline");
  if (m.failed.value_or(0) > 0) html.raw(" bad");
  html.raw("\">");
  if (m.failed && m.attempted) {
    html.text(fmt::format("{} {} of {}", format_count(*m.failed),
                          *m.failed == 1 ? "failure" : "failures", format_count(*m.attempted)));
  } else {
    html.raw("Not known for this kind of run</p></section>\n");
    return;
  }
  html.raw(
      "</p>\n<div class=\"scroll\"><table><thead><tr><th>status</th><th class=\"num\">requests</th>"
      "<th class=\"num\">share</th><th>meaning</th><th>first message</th></tr></thead><tbody>\n");
  html.raw("<tr><th scope=\"row\">ok</th>");
  count_cell(html, m.completed);
  html.raw("<td class=\"num\">").text(share_text(m.completed.value_or(0), m.attempted));
  html.raw("</td><td class=\"meaning\">whole answer with its end marker</td><td></td></tr>\n");
  const auto& messages = page.figures.first_errors;
  for (const auto& [status, count] : m.errors) {
    html.raw("<tr class=\"bad\"><th scope=\"row\">").text(shorten(status, 40)).raw("</th>");
    count_cell(html, count);
    html.raw("<td class=\"num\">").text(share_text(count, m.attempted)).raw("</td>");
    html.raw("<td class=\"meaning\">").text(meaning_of(status)).raw("</td>");
    const auto message = messages.find(status);
    html.raw("<td class=\"message\">");
    if (message != messages.end()) html.text(shorten(message->second, 300));
    html.raw("</td></tr>\n");
  }
  html.raw(
      "</tbody></table></div>\n<div class=\"scroll\"><table><thead><tr><th>HTTP code</th>"
      "<th class=\"num\">requests</th></tr></thead><tbody>\n");
  if (m.http_errors.empty())
    html.raw("<tr><td>none outside 2xx</td><td class=\"num\">0</td></tr>\n");
  for (const auto& [code, count] : m.http_errors) {
    html.raw("<tr class=\"bad\"><th scope=\"row\">").text(shorten(code, 20)).raw("</th>");
    count_cell(html, count);
    html.raw("</tr>\n");
  }
  html.raw("</tbody></table></div>");
  if (m.retries > 0) {
    html.raw("<p class=\"note\">").text(format_count(m.retries));
    html.raw(
        " resends on kept-alive connections that the server had closed, before any byte of an "
        "answer; not counted as failures.</p>");
  }
  html.raw("</section>\n");
}

void write_tokens(Html& html, const Page& page) {
  const auto& m = page.record.metrics;
  if (m.input_tokens.requests == 0 && m.output_tokens.requests == 0) return;
  html.raw(
      "<section><h2>Tokens asked for, tokens got</h2><div class=\"scroll\"><table><thead><tr>"
      "<th></th><th class=\"num\">requests</th><th class=\"num\">asked</th>"
      "<th class=\"num\">got</th><th class=\"num\">got / asked</th><th class=\"num\">equal</th>"
      "<th class=\"num\">fewer</th><th class=\"num\">more</th><th class=\"num\">not known</th>"
      "</tr></thead><tbody>\n");
  write_tally(html, "input", m.input_tokens);
  write_tally(html, "output", m.output_tokens);
  html.raw(
      "</tbody></table></div><p class=\"note\">Completed requests; asked and got in tokens, "
      "the last four columns in requests.");
  if (!m.token_sources.empty()) {
    html.raw(" Output tokens counted from ");
    std::string sources;
    for (const auto& [source, count] : m.token_sources) {
      sources += fmt::format("{}{} ({})", sources.empty() ? "" : ", ", shorten(source, 40),
                             format_count(count));
    }
    html.text(sources).raw(".");
  }
  html.raw("</p>");
  if (m.token_source_mixed) {
    html.raw(
        "<p class=\"note caveat\">Counts come from more than one source, so they may not mean "
        "the same in every request.</p>");
  }
  html.raw("</section>\n");
}

}  // namespace prony::report
