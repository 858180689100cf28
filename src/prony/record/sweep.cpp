#include "prony/record/sweep.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "prony/core/check.hpp"

namespace prony::record {
namespace {

constexpr std::array kStatusNames = {"pending", "done",        "failed",
                                     "error",   "unreachable", "interrupted"};
// Axes along which more load means more throughput, up to the knee.
constexpr std::array<std::string_view, 3> kLoadAxes = {"concurrency", "max-concurrency",
                                                       "request-rate"};
constexpr size_t kKneePointsMin = 3;

SweepValue plain(const std::optional<double>& value) {
  return {value, std::nullopt, std::nullopt};
}

SweepValue with_interval(const std::optional<double>& value,
                         const std::optional<stats::Interval>& interval) {
  SweepValue out = plain(value);
  if (value && interval) {
    out.lower = interval->lower;
    out.upper = interval->upper;
  }
  return out;
}

// The median of the runs, from the least to the greatest.
SweepValue over_runs(std::vector<SweepValue> runs) {
  std::erase_if(runs, [](const SweepValue& run) { return !run.value; });
  if (runs.empty()) return {};
  if (runs.size() == 1) return runs.front();
  std::vector<double> values;
  for (const auto& run : runs) values.push_back(*run.value);
  std::sort(values.begin(), values.end());
  return {stats::quantile_linear(values, 0.5), values.front(), values.back()};
}

}  // namespace

const char* cell_status_name(CellStatus status) {
  return kStatusNames[static_cast<size_t>(status)];
}

int64_t Sweep::count(CellStatus status) const {
  return std::count_if(cells.begin(), cells.end(),
                       [&](const SweepCell& cell) { return cell.status == status; });
}

int64_t Sweep::count_invalid() const {
  return std::count_if(cells.begin(), cells.end(), [](const SweepCell& cell) {
    return cell.has_metrics() && !cell.validity.valid;
  });
}

const std::vector<SweepMetric>& sweep_metrics() {
  static const std::vector<SweepMetric> kMetrics = {
      {"request_throughput", "Completed requests", "requests/s", true},
      {"output_throughput", "Output tokens", "tokens/s", true},
      {"total_throughput", "All tokens", "tokens/s", true},
      {"goodput", "Goodput", "requests/s", true},
      {"ttft_p50_ms", "TTFT p50", "ms", false},
      {"ttft_p99_ms", "TTFT p99", "ms", false},
      {"tpot_p50_ms", "TPOT p50", "ms", false},
      {"tpot_p99_ms", "TPOT p99", "ms", false},
      {"itl_p99_ms", "ITL p99", "ms", false},
      {"e2e_mean_ms", "E2E mean", "ms", false},
      {"e2e_p50_ms", "E2E p50", "ms", false},
      {"e2e_p99_ms", "E2E p99", "ms", false},
  };
  return kMetrics;
}

SweepValue sweep_value(const Metrics& m, std::string_view key) {
  if (key == "request_throughput") return plain(m.request_throughput);
  if (key == "output_throughput") return plain(m.output_throughput);
  if (key == "total_throughput") return plain(m.total_throughput);
  if (key == "goodput") return plain(m.goodput);
  if (key == "ttft_p50_ms") return with_interval(m.ttft_ms.p50, m.ttft_ms.ci95.p50);
  if (key == "ttft_p99_ms") return with_interval(m.ttft_ms.p99, m.ttft_ms.ci95.p99);
  if (key == "tpot_p50_ms") return with_interval(m.tpot_ms.p50, m.tpot_ms.ci95.p50);
  if (key == "tpot_p99_ms") return with_interval(m.tpot_ms.p99, m.tpot_ms.ci95.p99);
  if (key == "itl_p99_ms") return with_interval(m.itl_ms.p99, m.itl_ms.ci95.p99);
  if (key == "e2e_mean_ms") return plain(m.e2e_ms.mean);
  if (key == "e2e_p50_ms") return with_interval(m.e2e_ms.p50, m.e2e_ms.ci95.p50);
  PRONY_CHECK(key == "e2e_p99_ms", "unknown metric of a sweep");
  return with_interval(m.e2e_ms.p99, m.e2e_ms.ci95.p99);
}

SweepValue SweepPoint::metric(std::string_view key) const {
  const auto& known = sweep_metrics();
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i].key == key) return metrics[i];
  }
  return {};
}

std::vector<SweepPoint> sweep_points(const Sweep& sweep) {
  std::vector<SweepPoint> points;
  std::map<std::vector<std::string>, size_t> by_values;
  for (size_t i = 0; i < sweep.cells.size(); ++i) {
    const auto& cell = sweep.cells[i];
    const auto [at, fresh] = by_values.try_emplace(cell.values, points.size());
    if (fresh) points.push_back({.values = cell.values});
    auto& point = points[at->second];
    point.cells.push_back(i);
    point.runs += cell.has_metrics();
    point.overloaded = point.overloaded || (cell.has_metrics() && cell.metrics.overloaded == true);
    point.runs_valid += cell.status == CellStatus::kDone && cell.validity.valid;
  }
  for (auto& point : points) {
    for (const auto& metric : sweep_metrics()) {
      std::vector<SweepValue> runs;
      for (const size_t i : point.cells) {
        const auto& cell = sweep.cells[i];
        if (cell.status != CellStatus::kDone || !cell.validity.valid) continue;
        runs.push_back(sweep_value(cell.metrics, metric.key));
      }
      point.metrics.push_back(over_runs(std::move(runs)));
    }
  }
  return points;
}

std::optional<size_t> load_axis(const Sweep& sweep) {
  for (size_t i = 0; i < sweep.axes.size(); ++i) {
    const auto& axis = sweep.axes[i];
    if (std::find(kLoadAxes.begin(), kLoadAxes.end(), axis.name) != kLoadAxes.end()) return i;
  }
  return std::nullopt;
}

std::vector<SweepKnee> sweep_knees(const Sweep& sweep, const std::vector<SweepPoint>& points) {
  const auto axis = load_axis(sweep);
  if (!axis) return {};
  std::map<std::vector<std::string>, std::vector<size_t>> series;  // by all the other values
  std::vector<std::vector<std::string>> order;
  for (size_t i = 0; i < points.size(); ++i) {
    auto key = points[i].values;
    key[*axis].clear();
    const auto power = points[i].metric("request_throughput").value;
    const auto delay = points[i].metric("e2e_mean_ms").value;
    if (!power || !delay || !(*delay > 0)) continue;
    if (series[key].empty()) order.push_back(key);
    series[key].push_back(i);
  }
  std::vector<SweepKnee> knees;
  for (const auto& key : order) {
    const auto& members = series[key];
    if (members.size() < kKneePointsMin) continue;
    const auto power = [&](size_t i) {
      return *points[i].metric("request_throughput").value / *points[i].metric("e2e_mean_ms").value;
    };
    const size_t best = *std::max_element(members.begin(), members.end(),
                                          [&](size_t a, size_t b) { return power(a) < power(b); });
    knees.push_back({*axis, best, best == members.back()});
  }
  return knees;
}

}  // namespace prony::record
