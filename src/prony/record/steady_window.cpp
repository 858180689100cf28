#include "prony/record/steady_window.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "prony/record/row_metrics.hpp"
#include "prony/stats/steady_state.hpp"

namespace prony::record {
namespace {

using core::Nanos;

struct Judged {
  Nanos t_intended_ns;
  int64_t index;
  double ms;
};

std::vector<Judged> judged_series(const RowSource& rows, const Window& whole, bool open_loop) {
  std::vector<Judged> series;
  rows.for_each([&](const RequestRow& row) {
    if (row.status != Status::kOk || !whole.holds(row.t_intended_ns)) return;
    const auto ms = judged_latency_ms(row, open_loop);
    if (ms) series.push_back({row.t_intended_ns, row.index, *ms});
  });
  std::sort(series.begin(), series.end(), [](const Judged& a, const Judged& b) {
    return std::tie(a.t_intended_ns, a.index) < std::tie(b.t_intended_ns, b.index);
  });
  return series;
}

}  // namespace

std::optional<double> judged_latency_ms(const RequestRow& row, bool open_loop) {
  return open_loop ? ttft_intended_ms(row) : e2e_ms(row);
}

SteadyWindow steady_window(const RowSource& rows, const Window& whole,
                           const SummaryOptions& options) {
  SteadyWindow out{whole, std::nullopt};
  const auto series = judged_series(rows, whole, options.open_loop);
  std::vector<double> values;
  values.reserve(series.size());
  for (const auto& judged : series) values.push_back(judged.ms);
  const auto found = stats::assess_warm_up(values);
  if (!found) return out;
  RunWarmUp warm_up;
  warm_up.judged = options.open_loop ? "ttft_intended_ms" : "e2e_ms";
  warm_up.requests = found->observations;
  warm_up.change = found->change;
  Nanos begin = whole.begin_ns;
  if (found->observations > 0) {
    begin = series[static_cast<size_t>(found->observations)].t_intended_ns;
    warm_up.seconds = static_cast<double>(begin - whole.begin_ns) / 1e9;
  }
  const bool given = options.window_begin_ns || options.window_end_ns;
  if (options.steady_part_only && !given) {
    warm_up.trimmed = found->observations > 0;
    // Users who have no request left do not load the server any more.
    const Nanos end = options.open_loop ? whole.end_ns : series.back().t_intended_ns;
    if (end > begin) out.window = {begin, end, "steady"};
  }
  out.warm_up = warm_up;
  return out;
}

}  // namespace prony::record
