#include "prony/record/inferred_window.hpp"

#include <cmath>

namespace prony::record {
namespace {

bool agrees(const Window& window, const Metrics& metrics) {
  const double length_s = core::to_seconds(window.end_ns - window.begin_ns);
  return metrics.window_s && std::abs(length_s - *metrics.window_s) <= 1e-6 * (1 + length_s);
}

}  // namespace

std::optional<Window> inferred_window(const RowSource& rows, const Metrics& metrics) {
  if (rows.empty()) return std::nullopt;
  SummaryOptions guess;
  guess.steady_part_only = metrics.window_rule == "steady";
  for (const bool open_loop : {true, false}) {
    guess.open_loop = open_loop;
    if (metrics.window_rule == "arrivals" && !open_loop) continue;
    if (metrics.window_rule != "arrivals" && !guess.steady_part_only && open_loop) continue;
    const auto window = measurement_window(rows, guess);
    if (agrees(window, metrics)) return window;
  }
  return std::nullopt;
}

}  // namespace prony::record
