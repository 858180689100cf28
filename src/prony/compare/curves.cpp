#include "prony/compare/curves.hpp"

#include <algorithm>
#include <cmath>

#include "prony/compare/run_data.hpp"

namespace prony::compare {
namespace {

constexpr int64_t kPoints = 240, kTailPoints = 60;

// Evenly spaced ranks, and more of them among the last twentieth.
record::CompareCurve thinned(std::vector<double> values) {
  record::CompareCurve out;
  std::sort(values.begin(), values.end());
  const auto n = std::ssize(values);
  out.n = n;
  std::vector<int64_t> ranks;
  const auto add = [&](int64_t low, int64_t steps) {
    steps = std::min(steps, n - low);
    for (int64_t i = 0; i <= steps; ++i) {
      ranks.push_back(steps == 0 ? n : low + (n - low) * i / steps);
    }
  };
  add(1, kPoints);
  add(std::max<int64_t>(1, n - n / 20), kTailPoints);
  std::sort(ranks.begin(), ranks.end());
  for (const int64_t rank : ranks) {
    const double x = values[static_cast<size_t>(rank - 1)];
    const auto p = static_cast<double>(rank) / static_cast<double>(n);
    if (!out.x_ms.empty() && out.x_ms.back() == x) {
      out.p.back() = p;
    } else {
      out.x_ms.push_back(x);
      out.p.push_back(p);
    }
  }
  return out;
}

}  // namespace

std::vector<record::CompareCurve> make_curves(const std::vector<SideInput>& sides) {
  constexpr std::pair<core::SloMetric, const char*> kShown[] = {{core::SloMetric::kTtft, "TTFT"},
                                                                {core::SloMetric::kTpot, "TPOT"},
                                                                {core::SloMetric::kItl, "ITL"},
                                                                {core::SloMetric::kE2e, "E2E"}};
  std::vector<record::CompareCurve> out;
  for (size_t side = 0; side < sides.size(); ++side) {
    std::map<core::SloMetric, std::vector<double>> pooled;
    for (const auto& run : sides[side].runs) {
      if (!run.window) continue;
      const auto data = make_run_data(run, {core::SloMetric::kTtft, core::SloMetric::kTpot,
                                            core::SloMetric::kItl, core::SloMetric::kE2e});
      for (const auto& [metric, column] : data.latencies) {
        auto& values = pooled[metric];
        values.insert(values.end(), column.values.begin(), column.values.end());
      }
    }
    for (const auto& [metric, label] : kShown) {
      if (pooled[metric].empty()) continue;
      auto curve = thinned(std::move(pooled[metric]));
      curve.key = core::slo_metric_name(metric);
      curve.label = label;
      curve.side = side;
      out.push_back(std::move(curve));
    }
  }
  return out;
}

}  // namespace prony::compare
