// The report of a sweep as a single HTML file that needs no network: heat maps, table of points and
// cells, which need no script; curves and the response surface, which the page's script draws.
// Draws record::Sweep and computes no metric. Nothing in a run can become markup: see html.hpp.
// Thread safety: pure functions.
#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/record/sweep.hpp"
#include "prony/report/html.hpp"

namespace prony::report {

/// Error: kFailed if the sweep holds a number that is not finite.
Result<std::string> render_sweep_html(const record::Sweep& sweep);
/// render_sweep_html into a file that appears as a whole or not at all.
Result<void> write_sweep_html(const std::string& path, const record::Sweep& sweep);

/// What the sections share.
struct SweepPage {
  const record::Sweep& sweep;
  std::vector<record::SweepPoint> points;
  std::vector<record::SweepKnee> knees;
  /// Axes that columns and rows of a map, and x and y of a surface, go along: the axes of numbers
  /// with the most values; nullopt where there are not so many.
  std::optional<size_t> column_axis, row_axis;
};
SweepPage make_sweep_page(const record::Sweep& sweep);

/// "concurrency 4, input-len 32", without the axes in `without`.
std::string point_name(const SweepPage& page, const record::SweepPoint& point,
                       std::initializer_list<std::optional<size_t>> without = {});
/// A value with the digits of the page and, if known, its interval: "12.4 [12.0, 12.9]".
std::string sweep_value_text(const record::SweepValue& value);

void write_sweep_header(Html& html, const SweepPage& page);
void write_sweep_maps(Html& html, const SweepPage& page);
void write_sweep_points(Html& html, const SweepPage& page);
void write_sweep_cells(Html& html, const SweepPage& page);
void write_sweep_facts(Html& html, const SweepPage& page);

/// Boxes and menus of the figures; they appear only where the script is there to fill them.
void write_sweep_figures(Html& html, const SweepPage& page);
/// What the script draws; the shape is web/src/sweep_data.ts.
core::Json sweep_figures_json(const SweepPage& page);

}  // namespace prony::report
