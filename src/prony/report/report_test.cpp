#include "prony/report/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "prony/core/file.hpp"
#include "prony/report/assets.hpp"
#include "prony/report/figures.hpp"
#include "prony/report/sample_run.hpp"

namespace prony::report {
namespace {

std::string render(const SampleRun& run) {
  auto page = render_html(run.record, record::RowSpan(run.rows), {run.summary});
  EXPECT_TRUE(page.ok());
  return page.ok() ? *page : std::string();
}

size_t count(std::string_view text, std::string_view piece) {
  size_t found = 0;
  for (size_t at = text.find(piece); at != std::string_view::npos; at = text.find(piece, at + 1)) {
    ++found;
  }
  return found;
}

bool has(std::string_view text, std::string_view piece) {
  return count(text, piece) > 0;
}

// The page without its embedded script, style sheet and licence texts.
std::string without_assets(std::string page) {
  for (const std::string_view asset : {assets().script, assets().style}) {
    if (asset.empty()) continue;
    const size_t at = page.find(asset);
    if (at != std::string::npos) page.erase(at, asset.size());
  }
  return page;
}

struct Tag {
  std::string name;
  std::vector<std::string> attributes;
};

// The start tags of a page, read as a browser reads them (quotes respected; JSON blocks skipped).
std::vector<Tag> start_tags(const std::string& page) {
  std::vector<Tag> tags;
  for (size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    ++at;
    if (page[at] == '/' || page[at] == '!') continue;
    Tag tag;
    while (std::isalnum(static_cast<unsigned char>(page[at]))) tag.name.push_back(page[at++]);
    while (at < page.size() && page[at] != '>') {
      std::string name;
      while (at < page.size() && !strchr(" =>/\n", page[at])) name.push_back(page[at++]);
      if (!name.empty()) tag.attributes.push_back(name);
      if (page[at] == '=' && (page[at + 1] == '"' || page[at + 1] == '\'')) {
        at = page.find(page[at + 1], at + 2) + 1;
      } else if (page[at] != '>') {
        ++at;
      }
    }
    tags.push_back(std::move(tag));
  }
  return tags;
}

TEST(Report, HasEverySectionInOrder) {
  const auto page = render(sample_run({}));
  size_t at = 0;
  for (const char* piece : {"<!DOCTYPE html>",
                            "Content-Security-Policy",
                            "<title>llama-3.1-8b",
                            "<style>",
                            "<h1>llama-3.1-8b</h1>",
                            "400 requests, 40 a second, poisson arrivals",
                            "<h2>Valid</h2>",
                            "data-key=\"ttft\"",
                            "data-key=\"tpot\"",
                            "data-key=\"itl\"",
                            "data-key=\"e2e\"",
                            "data-key=\"output_throughput\"",
                            "data-key=\"request_throughput\"",
                            "data-key=\"goodput\"",
                            "data-key=\"failures\"",
                            "<h2>Latency</h2>",
                            "All latencies",
                            "Two clocks for one wait",
                            "<h2>Failures</h2>",
                            "HTTP code",
                            "Tokens asked for",
                            "The client, measured",
                            "<h2>Workload</h2>",
                            "System under test",
                            "Environment of the client",
                            "What the terms mean",
                            "</html>"}) {
    const size_t found = page.find(piece, at);
    ASSERT_NE(found, std::string::npos) << piece << " is missing or out of order";
    at = found;
  }
}

TEST(Report, NumbersStandBesideTheirSampleSizeAndInterval) {
  const auto run = sample_run({.requests = 1200});
  const auto page = render(run);
  const auto& ttft = run.record.metrics.ttft_ms;
  ASSERT_TRUE(ttft.n && ttft.p99 && ttft.ci95.p99);
  EXPECT_TRUE(has(page, "n = " + std::to_string(*ttft.n / 1000) + "," +
                            std::to_string(1000 + *ttft.n % 1000).substr(1) +
                            " completed requests"));
  EXPECT_TRUE(has(page, "95 % interval"));
  EXPECT_TRUE(has(page, "<th scope=\"row\">p99</th>"));
}

TEST(Report, TooFewSamplesGiveNoPercentile) {
  const auto run = sample_run({.requests = 40, .failed_fraction = 0});
  const auto page = render(run);
  EXPECT_TRUE(has(page, "from n = 100"));
  EXPECT_TRUE(has(page, "from n = 1,000"));
}

TEST(Report, FailuresAreAlwaysCounted) {
  EXPECT_TRUE(has(render(sample_run({.requests = 50, .failed_fraction = 0})), "0 failures of 50"));
  EXPECT_TRUE(has(render(sample_run({.requests = 10, .failed_fraction = 2})), "10 failures of 10"));
  auto run = sample_run({.requests = 100, .failed_fraction = 0});
  run.rows[3] = run.rows[4];
  run.rows[3].status = record::Status::kTimeoutStall;
  run.rows[3].error = "no token for 2 s";
  run.record.metrics = record::summarize(run.rows, run.summary);
  const auto page = render(run);
  EXPECT_TRUE(has(page, "1 failure of 100"));
  EXPECT_TRUE(has(page, "timeout_stall"));
  EXPECT_TRUE(has(page, "tokens stopped coming"));
  EXPECT_TRUE(has(page, "no token for 2 s"));
  EXPECT_TRUE(has(page, "none outside 2xx"));
}

TEST(Report, AnInvalidRunIsLoud) {
  auto run = sample_run({});
  EXPECT_FALSE(has(without_assets(render(run)), "invalid run"));
  run.record.validity.refuse("the event loop was 96 % busy");
  const auto page = without_assets(render(run));
  EXPECT_TRUE(has(page, "<title>INVALID: "));
  EXPECT_TRUE(has(page, "<h2>Invalid run</h2>"));
  EXPECT_TRUE(has(page, "<li>the event loop was 96 % busy</li>"));
  EXPECT_FALSE(has(page, "<h2>Valid</h2>"));
  EXPECT_EQ(count(page, "tag invalid\">invalid run"), 8U) << "once a card";
}

TEST(Report, WhatIsNoMeasurementSaysSoOnEveryCard) {
  auto run = sample_run({});
  EXPECT_EQ(count(without_assets(render(run)), "<span class=\"tag kind\">"), 1U);  // the header's
  run.record.system.kind = record::SystemKind::kEmulated;
  EXPECT_EQ(count(render(run), "<span class=\"tag kind\">emulated h100-sxm</span>"), 9U);
  run.record.system.device = "emulated:h100-sxm";  // as servers say it
  EXPECT_EQ(count(render(run), "<span class=\"tag kind\">emulated h100-sxm</span>"), 9U);
  EXPECT_TRUE(has(render(run), "Nothing here was measured on that hardware"));
  run.record.system.kind = record::SystemKind::kMock;
  EXPECT_EQ(count(render(run), "<span class=\"tag kind\">mock endpoint</span>"), 9U);
  run.record.system.kind = record::SystemKind::kDeployment;
  run.record.source = record::Source::kSimulated;
  EXPECT_EQ(count(render(run), "<span class=\"tag kind\">simulated</span>"), 9U);
  run.record.source = record::Source::kPredicted;
  EXPECT_EQ(count(render(run), "<span class=\"tag kind\">predicted</span>"), 9U);
}

TEST(Report, WithoutRowsThereAreTablesAndNoFigures) {
  auto run = sample_run({});
  run.rows.clear();
  const auto page = without_assets(render(run));
  EXPECT_FALSE(has(page, "data-figure"));
  EXPECT_FALSE(has(page, "prony-data"));
  EXPECT_FALSE(has(page, "<script"));
  EXPECT_TRUE(has(page, "All latencies"));
  EXPECT_TRUE(has(page, has_figures() ? "No data of single requests" : "has no figures"));
}

TEST(Report, FiguresShowTheRecordsOwnPopulation) {
  auto run = sample_run({.requests = 500});
  // Warm-up and stragglers outside the window must be in no figure, as they are in no metric.
  run.summary.window_begin_ns = run.rows[100].t_intended_ns;
  run.summary.window_end_ns = run.rows[400].t_intended_ns;
  run.record.metrics = record::summarize(run.rows, run.summary);
  const auto& m = run.record.metrics;
  const auto members = population(record::RowSpan(run.rows), m, run.summary);
  int64_t attempted = 0;
  for (const auto& row : run.rows) attempted += members.holds(row);
  EXPECT_EQ(attempted, *m.attempted);
  const auto figures = make_figures(record::RowSpan(run.rows), members, m);
  ASSERT_EQ(figures.cdf.size(), 4U);
  for (const auto& figure : figures.cdf) {
    EXPECT_EQ(figure.points.n, figure.stats->n) << figure.label;
    EXPECT_NEAR(figure.points.x_ms.front(), *figure.stats->min, 1e-6) << figure.label;
    EXPECT_NEAR(figure.points.x_ms.back(), *figure.stats->max, 1e-6) << figure.label;
  }
  EXPECT_EQ(figures.scatter.n, *m.completed);
  const auto json = figures_to_json(figures, members);
  const double window =
      json["timeline"]["window"][1].get<double>() - json["timeline"]["window"][0].get<double>();
  EXPECT_NEAR(window, *m.window_s, 1e-9);
}

TEST(Report, AWindowReadFromAFileIsDrawnOnlyIfItAgrees) {
  auto run = sample_run({.requests = 200});
  const auto known = population(record::RowSpan(run.rows), run.record.metrics, run.summary);
  const auto inferred = population(record::RowSpan(run.rows), run.record.metrics, std::nullopt);
  ASSERT_TRUE(known.window && inferred.window);
  EXPECT_EQ(known.window->begin_ns, inferred.window->begin_ns);
  EXPECT_EQ(known.window->end_ns, inferred.window->end_ns);
  run.record.metrics.window_s = *run.record.metrics.window_s * 0.9;  // it was a given one
  const auto other = population(record::RowSpan(run.rows), run.record.metrics, std::nullopt);
  EXPECT_FALSE(other.window.has_value());
  for (const auto& row : run.rows) EXPECT_TRUE(other.holds(row));
}

// Every text of a record and of its rows, one after the other and all at once.
std::vector<std::function<std::string&(SampleRun&)>> text_fields() {
  return {
      [](SampleRun& r) -> std::string& { return r.record.system.model; },
      [](SampleRun& r) -> std::string& { return r.record.system.endpoint; },
      [](SampleRun& r) -> std::string& { return r.record.system.endpoint_type; },
      [](SampleRun& r) -> std::string& { return r.record.system.server; },
      [](SampleRun& r) -> std::string& { return r.record.system.device; },
      [](SampleRun& r) -> std::string& { return r.record.workload.description; },
      [](SampleRun& r) -> std::string& { return r.record.workload.dataset; },
      [](SampleRun& r) -> std::string& { return r.record.workload.arrival; },
      [](SampleRun& r) -> std::string& { return r.record.environment.commit; },
      [](SampleRun& r) -> std::string& { return r.record.environment.version; },
      [](SampleRun& r) -> std::string& { return r.record.environment.cpu; },
      [](SampleRun& r) -> std::string& { return r.record.environment.kernel; },
      [](SampleRun& r) -> std::string& { return r.record.environment.compiler; },
      [](SampleRun& r) -> std::string& { return r.record.run.started_at; },
      [](SampleRun& r) -> std::string& { return r.record.run.label; },
      [](SampleRun& r) -> std::string& { return r.record.run.command[0]; },
      [](SampleRun& r) -> std::string& { return r.record.metrics.goodput_slo; },
      [](SampleRun& r) -> std::string& { return r.record.metrics.window_rule; },
      [](SampleRun& r) -> std::string& { return r.record.metrics.itl_basis; },
      [](SampleRun& r) -> std::string& { return r.record.metrics.approximate; },
      [](SampleRun& r) -> std::string& { return r.record.validity.reasons.emplace_back(); },
      [](SampleRun& r) -> std::string& { return r.record.validity.warnings.emplace_back(); },
      [](SampleRun& r) -> std::string& { return r.rows[0].error; },
      [](SampleRun& r) -> std::string& { return r.rows[0].id; },
  };
}

void add_hostile_json(record::Record& record, const std::string& attack) {
  record.system.details[attack] = {attack, {{attack, attack}}};
  record.workload.details[attack] = attack;
  record.run.metadata[attack] = attack;
  record.client[attack] = attack;
  record.telemetry[attack] = {{attack, {attack}}};
  record.prediction[attack] = attack;
  record.simulation[attack] = attack;
  record.environment.gpus.push_back({{attack, attack}});
  record.slo = {{"met", attack},
                {"terms", {{{"text", attack}, {"met", attack}, {"value", attack}}, 7}}};
  record.metrics.errors[attack] = 1;
  record.metrics.http_errors[attack] = 1;
  record.metrics.token_sources[attack] = 1;
}

TEST(Report, HostileTextAddsNoMarkup) {
  const std::set<std::string> allowed_names = {
      "html",     "head",    "meta",   "title",   "link",    "style",  "body",
      "main",     "header",  "footer", "section", "article", "figure", "figcaption",
      "details",  "summary", "div",    "p",       "span",    "h1",     "h2",
      "h3",       "small",   "ul",     "li",      "dl",      "dt",     "dd",
      "table",    "thead",   "tbody",  "tr",      "th",      "td",     "button",
      "noscript", "pre",     "script", "svg",     "circle",  "path"};
  const std::string attacks[] = {"</script><script>alert(1)</script>",
                                 "\"><img src=x onerror=alert(1)>",
                                 "' onmouseover='alert(1)",
                                 "</title></style></pre></td><script>alert(1)</script>",
                                 "<!--<script>",
                                 "\xE2\x80\xA8</script>\xFF\xC0\xBC"
                                 "script>",
                                 "]]><svg onload=alert(1)>"};
  auto clean = sample_run({.requests = 30, .events = false});
  for (const auto& attack : attacks) {
    SampleRun run = clean;
    run.rows[0].status = record::Status::kStreamError;
    for (const auto& field : text_fields()) field(run) = attack;
    add_hostile_json(run.record, attack);
    const auto page = without_assets(render(run));
    size_t scripts = 0;
    for (const auto& tag : start_tags(page)) {
      EXPECT_EQ(allowed_names.count(tag.name), 1U) << "<" << tag.name << "> after " << attack;
      scripts += tag.name == "script" ? 1U : 0U;
      for (const auto& name : tag.attributes) {
        EXPECT_FALSE(name.starts_with("on") || name == "style" || name == "srcdoc")
            << tag.name << " " << name << " after " << attack;
      }
    }
    EXPECT_EQ(scripts, has_figures() ? 2U : 0U) << attack;
    EXPECT_EQ(count(page, "</script>"), scripts) << attack;
    EXPECT_FALSE(has(page, "\xFF")) << attack;
  }
}

// One field at a time: no field may change the tags of the page but by showing one more row.
TEST(Report, EachTextFieldIsEscaped) {
  const std::string attack = "<b onclick=x>&amp;\"'";
  for (size_t i = 0; i < text_fields().size(); ++i) {
    SampleRun run = sample_run({.requests = 5, .events = false});
    run.rows[0].status = record::Status::kStreamError;
    run.record.metrics.errors["stream_error"] = 1;
    text_fields()[i](run) = attack;
    const auto page = without_assets(render(run));
    EXPECT_FALSE(has(page, "<b ")) << "field " << i;
    EXPECT_FALSE(has(page, "onclick=x>")) << "field " << i;
  }
}

TEST(Report, MissingParametersOfANumberAreAnErrorNotAPage) {
  auto run = sample_run({.requests = 30});
  run.record.metrics.ttft_ms.p50 = std::numeric_limits<double>::infinity();
  const auto page = render_html(run.record, record::RowSpan(run.rows), {run.summary});
  if (has_figures()) {
    ASSERT_FALSE(page.ok());
    EXPECT_NE(page.error().message.find("finite"), std::string::npos);
  }
}

TEST(Report, StaysSmallWithManyRows) {
  const auto run = sample_run({.requests = 20'000, .rate_per_s = 400, .output_tokens_mean = 20});
  const auto empty = sample_run({.requests = 1, .failed_fraction = 0});
  EXPECT_LT(render(empty).size(), 700'000U);
  // About 26 bytes a request for the list, and its share of the kept events.
  EXPECT_LT(render(run).size(), render(empty).size() + 850'000U);
}

TEST(Report, EqualRunsGiveEqualPages) {
  EXPECT_EQ(render(sample_run({.requests = 3000})), render(sample_run({.requests = 3000})));
}

TEST(Report, IsWrittenAsAWholeOrNotAtAll) {
  const auto folder = std::filesystem::temp_directory_path() / "prony-report-test";
  std::filesystem::remove_all(folder);
  const auto run = sample_run({.requests = 20});
  const auto path = (folder / "report.html").string();
  const auto missing = write_html(path, run.record, record::RowSpan(run.rows), {run.summary});
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find(path), std::string::npos) << missing.error().message;
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(write_html(path, run.record, record::RowSpan(run.rows), {run.summary}).ok());
  const auto written = core::read_file(path);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(*written, render(run));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "no left-overs";
  std::filesystem::remove_all(folder);
}

TEST(Assets, StyleIsThereAndScriptIsSafeInline) {
  EXPECT_GT(assets().style.size(), 1000U);
  EXPECT_TRUE(assets().style_hash.starts_with("sha256-"));
  EXPECT_EQ(assets().style_hash.size(), 7U + 44U);
  EXPECT_FALSE(has(assets().style, "</"));
  EXPECT_FALSE(has(assets().style, "url("));  // nothing to load
  EXPECT_FALSE(has(assets().script, "</script"));
  EXPECT_FALSE(has(assets().script, "<!--"));
  EXPECT_EQ(assets().licenses.empty(), assets().script.empty());
  if (has_figures()) {
    for (const char* package : {"echarts", "zrender", "tslib"}) {
      EXPECT_TRUE(has(assets().licenses, package)) << package;
    }
    EXPECT_TRUE(has(assets().licenses, "Apache License"));
  }
}

}  // namespace
}  // namespace prony::report
