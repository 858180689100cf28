#include "prony/report/figures.hpp"

#include <algorithm>

#include "prony/record/inferred_window.hpp"
#include "prony/record/row_metrics.hpp"
#include "prony/report/telemetry_series.hpp"

namespace prony::report {
namespace {

using core::Json;
using record::RequestRow;

// Enough for a curve on any screen; each figure costs some 10 kB of page.
constexpr size_t kCdfPointsMax = 480;
constexpr size_t kScatterPointsMax = 1500;
constexpr size_t kBucketsMax = 160;

double seconds_from(core::Nanos origin_ns, core::Nanos at_ns) {
  return static_cast<double>(at_ns - origin_ns) / 1e9;
}

Json cdf_to_json(const CdfFigure& figure) {
  Json marks = Json::array();
  const auto mark = [&](const char* name, std::optional<double> x, double p,
                        const std::optional<stats::Interval>& interval) {
    if (!x) return;
    Json json = {{"name", name}, {"x", *x}, {"p", p}, {"low", nullptr}, {"high", nullptr}};
    if (interval) {
      json["low"] = interval->lower;
      json["high"] = interval->upper;
    }
    marks.push_back(std::move(json));
  };
  const auto& ci = figure.stats->ci95;
  mark("p50", figure.stats->p50, 0.50, ci.p50);
  mark("p90", figure.stats->p90, 0.90, ci.p90);
  mark("p99", figure.stats->p99, 0.99, ci.p99);
  return {{"key", figure.key},       {"label", figure.label}, {"n", figure.points.n},
          {"x", figure.points.x_ms}, {"p", figure.points.p},  {"marks", std::move(marks)}};
}

}  // namespace

Population population(const record::RowSource& rows, const record::Metrics& metrics,
                      const std::optional<record::SummaryOptions>& summary) {
  Population result;
  if (rows.empty()) return result;
  if (summary) {
    result.window = record::measurement_window(rows, *summary);
    return result;
  }
  result.window = record::inferred_window(rows, metrics);
  return result;
}

bool Figures::any() const {
  return timeline.has_value() || scatter.n > 0 ||
         std::any_of(cdf.begin(), cdf.end(),
                     [](const auto& figure) { return figure.points.n > 0; });
}

Figures make_figures(const record::RowSource& rows, const Population& population,
                     const record::Metrics& metrics) {
  Figures figures;
  Distribution ttft, tpot, itl, e2e;
  ScatterSample scatter(kScatterPointsMax);
  std::vector<double> gaps;
  const auto add = [](Distribution& distribution, std::optional<double> value_ms) {
    if (value_ms) distribution.add(*value_ms);
  };
  if (!rows.empty()) figures.requests.emplace(rows.size());
  rows.for_each([&](const RequestRow& row) {
    figures.requests->add(row);
    if (!population.holds(row)) return;
    if (row.status != record::Status::kOk) {
      if (!row.error.empty()) {
        figures.first_errors.try_emplace(record::status_name(row.status), row.error);
      }
      return;
    }
    add(ttft, record::ttft_ms(row));
    add(tpot, record::tpot_ms(row));
    add(e2e, record::e2e_ms(row));
    gaps.clear();
    record::append_itl_ms(row, gaps);
    for (const double gap : gaps) itl.add(gap);
    scatter.add(row);
  });
  figures.cdf.push_back({"ttft", "TTFT", &metrics.ttft_ms, ttft.points(kCdfPointsMax)});
  figures.cdf.push_back({"tpot", "TPOT", &metrics.tpot_ms, tpot.points(kCdfPointsMax)});
  figures.cdf.push_back({"itl", "ITL", &metrics.itl_ms, itl.points(kCdfPointsMax)});
  figures.cdf.push_back({"e2e", "E2E", &metrics.e2e_ms, e2e.points(kCdfPointsMax)});
  figures.scatter = scatter.finish();
  figures.timeline = timeline(rows, kBucketsMax);
  return figures;
}

Json figures_to_json(const Figures& figures, const Population& population, const Json& telemetry) {
  Json json = {{"cdf", Json::array()},
               {"scatter", nullptr},
               {"timeline", nullptr},
               {"requests", nullptr},
               {"telemetry", Json::array()}};
  for (const auto& figure : figures.cdf) {
    if (figure.points.n > 0) json["cdf"].push_back(cdf_to_json(figure));
  }
  if (figures.scatter.n > 0) {
    json["scatter"] = {
        {"n", figures.scatter.n},
        {"x", figures.scatter.input_tokens},
        {"y", figures.scatter.ttft_ms},
        {"xLabel", figures.scatter.server_count ? "input tokens, as the server counted them"
                                                : "input tokens, as asked for"}};
  }
  if (figures.timeline) {
    const Timeline& timeline = *figures.timeline;
    Json window = nullptr;
    if (population.window) {
      window = {seconds_from(timeline.origin_ns, population.window->begin_ns),
                seconds_from(timeline.origin_ns, population.window->end_ns)};
    }
    json["timeline"] = {{"bucketS", timeline.bucket_s},
                        {"startS", 0},
                        {"window", std::move(window)},
                        {"outputTokensPerS", timeline.output_tokens_per_s},
                        {"inFlightMean", timeline.in_flight_mean},
                        {"inFlightMax", timeline.in_flight_max},
                        {"failedPerS", timeline.failed_per_s}};
    json["telemetry"] = telemetry_series(telemetry, timeline.origin_ns);
  }
  if (figures.requests) {
    json["requests"] =
        figures.requests->to_json(figures.timeline ? figures.timeline->origin_ns : 0);
  }
  return json;
}

}  // namespace prony::report
