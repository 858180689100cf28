// Heat maps of a sweep as plain tables: a cell's colour is its place between the least and the
// greatest value of the map, on a logarithmic scale where all are positive. Colours are given with
// their ink, so that they read alike on a light and a dark page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "prony/report/format.hpp"
#include "prony/report/sweep_page.hpp"

namespace prony::report {
namespace {

struct Rgb {
  double red, green, blue;
};
constexpr Rgb kPale = {255, 244, 224}, kWarm = {176, 38, 30};  // latencies: red is slow
constexpr Rgb kLight = {233, 243, 247}, kDeep = {15, 76, 99};  // rates: deep is much

std::string colour(const Rgb& from, const Rgb& to, double share) {
  const auto mix = [share](double a, double b) {
    return static_cast<int>(std::lround(a + share * (b - a)));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(from.red, to.red), mix(from.green, to.green),
                     mix(from.blue, to.blue));
}

struct Scale {
  double low = 0, high = 0;
  bool log = false;
  double share(double value) const {
    if (!(high > low)) return 0;
    if (!log) return (value - low) / (high - low);
    return std::log(value / low) / std::log(high / low);
  }
};

using Slice = std::map<std::pair<size_t, size_t>, const record::SweepPoint*>;  // {row, column}

size_t index_of(const record::SweepAxis& axis, const std::string& value) {
  return static_cast<size_t>(std::find(axis.values.begin(), axis.values.end(), value) -
                             axis.values.begin());
}

void write_map_cell(Html& html, const record::SweepPoint* point, const record::SweepMetric& metric,
                    const Scale& scale) {
  if (point == nullptr || point->runs_valid == 0) {
    html.raw(
        "<td class=\"num\" style=\"background:repeating-linear-gradient(45deg,transparent 0 "
        "5px,rgba(128,128,128,.45) 5px 7px)\">");
    html.text(point != nullptr && point->runs > 0 ? "invalid" : "none").raw("</td>");
    return;
  }
  const auto value = point->metric(metric.key);
  if (!value.value) {
    html.raw("<td class=\"num\">").text(kNone).raw("</td>");
    return;
  }
  const double share = std::clamp(scale.share(*value.value), 0.0, 1.0);
  const auto background =
      metric.higher_is_better ? colour(kLight, kDeep, share) : colour(kPale, kWarm, share);
  html.raw("<td class=\"num\" style=\"background:").text(background).raw(";color:");
  html.text(share > 0.5 ? "#ffffff" : "#1d1f21").raw("\" title=\"");
  html.text(sweep_value_text(value)).raw("\">").text(format_number(*value.value));
  html.text(point->overloaded ? " \xE2\x96\xB2" : "").raw("</td>");
}

void write_map(Html& html, const SweepPage& page, const Slice& slice,
               const record::SweepMetric& metric) {
  Scale scale;
  bool any = false, positive = true;
  for (const auto& [at, point] : slice) {
    const auto value = point->metric(metric.key).value;
    if (!value) continue;
    scale.low = any ? std::min(scale.low, *value) : *value;
    scale.high = any ? std::max(scale.high, *value) : *value;
    positive = positive && *value > 0;
    any = true;
  }
  if (!any) return;
  scale.log = positive;
  const auto& columns = page.sweep.axes[*page.column_axis];
  static const std::vector<std::string> kOne = {""};
  const auto& rows = page.row_axis ? page.sweep.axes[*page.row_axis].values : kOne;
  html.raw("<figure class=\"panel\"><h3>").text(metric.label).raw(" <small>").text(metric.unit);
  html.raw("</small></h3><div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>");
  html.text(page.row_axis ? page.sweep.axes[*page.row_axis].name : "").raw("</th>");
  for (const auto& value : columns.values) html.raw("<th class=\"num\">").text(value).raw("</th>");
  html.raw("</tr></thead><tbody>\n");
  for (size_t row = 0; row < rows.size(); ++row) {
    html.raw("<tr><th scope=\"row\">").text(rows[row]).raw("</th>");
    for (size_t column = 0; column < columns.values.size(); ++column) {
      const auto at = slice.find({row, column});
      write_map_cell(html, at == slice.end() ? nullptr : at->second, metric, scale);
    }
    html.raw("</tr>\n");
  }
  html.raw("</tbody></table></div><figcaption>across: ").text(columns.name);
  html.raw("</figcaption></figure>\n");
}

// p99 where any point has enough requests for one, else the median.
std::vector<const record::SweepMetric*> metrics_of_maps(const SweepPage& page) {
  const auto find = [](std::string_view key) -> const record::SweepMetric* {
    for (const auto& metric : record::sweep_metrics()) {
      if (metric.key == key) return &metric;
    }
    return nullptr;
  };
  std::vector<const record::SweepMetric*> out;
  for (const char* latency : {"ttft", "tpot", "e2e"}) {
    const auto p99 = fmt::format("{}_p99_ms", latency);
    const bool known = std::any_of(page.points.begin(), page.points.end(), [&](const auto& point) {
      return point.metric(p99).value.has_value();
    });
    out.push_back(find(known ? p99 : fmt::format("{}_p50_ms", latency)));
  }
  out.push_back(find("output_throughput"));
  return out;
}

}  // namespace

void write_sweep_maps(Html& html, const SweepPage& page) {
  if (!page.column_axis) return;
  std::map<std::string, Slice> slices;
  std::vector<std::string> order;
  for (const auto& point : page.points) {
    const auto name = point_name(page, point, {page.column_axis, page.row_axis});
    const size_t column =
        index_of(page.sweep.axes[*page.column_axis], point.values[*page.column_axis]);
    const size_t row =
        page.row_axis ? index_of(page.sweep.axes[*page.row_axis], point.values[*page.row_axis]) : 0;
    if (slices.find(name) == slices.end()) order.push_back(name);
    slices[name][{row, column}] = &point;
  }
  const auto metrics = metrics_of_maps(page);
  html.raw("<section><h2>Heat maps</h2>\n<p class=\"note\">");
  const bool p99 = std::string_view(metrics.front()->key).find("p99") != std::string_view::npos;
  html.text(p99 ? "" : "A p99 needs 1,000 requests a cell; here are medians instead. ");
  html.text(
      "Colours run from the least to the greatest value of each map. Hatched: no valid run. "
      "\xE2\x96\xB2: overloaded. Intervals are in the table of points.");
  html.raw("</p>\n");
  for (const auto& name : order) {
    if (!name.empty()) html.raw("<h3>").text(name).raw("</h3>\n");
    html.raw("<div class=\"panels\">\n");
    for (const auto* metric : metrics) write_map(html, page, slices[name], *metric);
    html.raw("</div>\n");
  }
  html.raw("</section>\n");
}

}  // namespace prony::report
