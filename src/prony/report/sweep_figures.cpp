// The figures of a sweep's page: boxes for the script, and what it draws in them.
#include "prony/report/sweep_page.hpp"

namespace prony::report {
namespace {

using core::Json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void write_box(Html& html, Markup kind, Markup title, Markup caption) {
  html.raw("<figure class=\"panel\"><h3>")
      .raw(title)
      .raw("</h3><div class=\"plot\" data-figure=\"");
  html.raw(kind).raw("\" style=\"height:340px\"></div><figcaption>").raw(caption);
  html.raw("</figcaption></figure>\n");
}

}  // namespace

void write_sweep_figures(Html& html, const SweepPage& page) {
  const bool load = record::load_axis(page.sweep).has_value();
  if (!load && !page.column_axis) return;
  html.raw(
      "<section><h2>Response</h2>\n<p class=\"note\"><label>Metric <select "
      "data-menu=\"metric\"></select></label>");
  const bool plane = page.column_axis && page.row_axis;
  if (plane && page.sweep.axes.size() > 2) {
    html.raw(" <label>Plane <select data-menu=\"plane\"></select></label>");
  }
  html.raw("</p>\n<div class=\"panels\">\n");
  write_box(html, "along", "Along the axis",
            "Bars: 95 % interval of one run, or least to greatest of several. Large ring: knee.");
  if (load) {
    write_box(
        html, "knee", "Latency against throughput",
        "A curve for each combination of the other axes. Knee: greatest throughput / latency.");
  }
  if (plane) {
    write_box(html, "surface", "Response surface",
              "Drag to turn, wheel to zoom. Only what was measured and is valid is drawn.");
    write_box(html, "contour", "Contours",
              "Lines of equal value, linear between the measured points (dots).");
  }
  html.raw("</div></section>\n");
}

Json sweep_figures_json(const SweepPage& page) {
  Json out;
  out["axes"] = Json::array();
  for (const auto& axis : page.sweep.axes) {
    out["axes"].push_back({{"name", axis.name}, {"values", axis.values}, {"target", axis.target}});
  }
  out["metrics"] = Json::array();
  for (const auto& metric : record::sweep_metrics()) {
    out["metrics"].push_back({{"key", metric.key}, {"label", metric.label}, {"unit", metric.unit}});
  }
  out["points"] = Json::array();
  for (const auto& point : page.points) {
    Json at = Json::array(), metrics = Json::array();
    for (size_t i = 0; i < point.values.size(); ++i) {
      const auto& values = page.sweep.axes[i].values;
      size_t index = 0;
      while (index + 1 < values.size() && values[index] != point.values[i]) ++index;
      at.push_back(index);
    }
    for (const auto& value : point.metrics) {
      metrics.push_back(
          value.value ? Json::array({*value.value, or_null(value.lower), or_null(value.upper)})
                      : Json(nullptr));
    }
    out["points"].push_back(
        {{"at", std::move(at)}, {"overloaded", point.overloaded}, {"metrics", std::move(metrics)}});
  }
  out["knees"] = Json::array();
  for (const auto& knee : page.knees) out["knees"].push_back(knee.point);
  out["loadAxis"] = or_null(record::load_axis(page.sweep));
  out["columnAxis"] = or_null(page.column_axis);
  out["rowAxis"] = or_null(page.row_axis);
  return out;
}

}  // namespace prony::report
