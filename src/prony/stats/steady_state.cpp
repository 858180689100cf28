#include "prony/stats/steady_state.hpp"

#include <algorithm>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"
#include "prony/stats/moments.hpp"

namespace prony::stats {
namespace {

constexpr size_t kMserBatch = 5;
constexpr size_t kBatches = 20;  // enough for the trend test, long enough to decorrelate
constexpr double kSignificance = 0.01;
constexpr double kChangeMin = 0.05;

double mean_of(std::span<const double> values) {
  Moments moments;
  for (const double value : values) moments.add(value);
  return moments.mean().value_or(0);
}

}  // namespace

double trend_p_value(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  double score = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j) {
      score +=
          static_cast<double>(values[j] > values[i]) - static_cast<double>(values[j] < values[i]);
    }
  }
  double variance = n * (n - 1) * (2 * n + 5);
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  for (auto it = sorted.begin(); it != sorted.end();) {
    const auto end = std::upper_bound(it, sorted.end(), *it);
    const auto ties = static_cast<double>(end - it);
    variance -= ties * (ties - 1) * (2 * ties + 5);
    it = end;
  }
  variance /= 18;
  if (!(variance > 0)) return 1;  // all equal: no trend
  const double size = std::max(0.0, (score < 0 ? -score : score) - 1);
  return 2 * core::normal_cdf(-size / core::math::sqrt(variance));
}

int64_t mser5_truncation(std::span<const double> series) {
  const size_t batches = series.size() / kMserBatch;
  if (batches < 2) return 0;
  // From the back, so that one running pass gives the spread of every tail.
  Moments tail;
  double best = 0;
  size_t best_start = 0;
  bool found = false;
  for (size_t start = batches; start-- > 0;) {
    tail.add(mean_of(series.subspan(start * kMserBatch, kMserBatch)));
    if (start > batches / 2) continue;
    const auto n = static_cast<double>(tail.n());
    const double score = tail.variance().value_or(0) * (n - 1) / (n * n);
    // <=: of equal scores the one that leaves out least.
    if (!found || score <= best) {
      best = score;
      best_start = start;
      found = true;
    }
  }
  return static_cast<int64_t>(best_start * kMserBatch);
}

std::optional<SteadyState> assess_steady_state(std::span<const double> series) {
  if (series.size() < static_cast<size_t>(kSteadyStateMin)) return std::nullopt;
  SteadyState out;
  out.truncation = mser5_truncation(series);
  auto rest = series.subspan(static_cast<size_t>(out.truncation));
  const size_t batch = rest.size() / kBatches;
  rest = rest.last(batch * kBatches);
  std::vector<double> means(kBatches);
  for (size_t i = 0; i < kBatches; ++i) means[i] = mean_of(rest.subspan(i * batch, batch));
  out.p_value = trend_p_value(means);
  const double first = mean_of(std::span(means).first(kBatches / 2));
  const double second = mean_of(std::span(means).last(kBatches / 2));
  const double scale = first < 0 ? -first : first;
  out.change = scale > 0 ? (second - first) / scale : (second == first ? 0 : 1);
  const double size = out.change < 0 ? -out.change : out.change;
  out.steady = !(out.p_value < kSignificance && size > kChangeMin);
  return out;
}

std::optional<WarmUp> assess_warm_up(std::span<const double> series) {
  if (series.size() < static_cast<size_t>(kSteadyStateMin)) return std::nullopt;
  WarmUp out;
  const auto cut = static_cast<size_t>(mser5_truncation(series));
  const size_t limit = series.size() / kMserBatch / 2 * kMserBatch;
  if (cut == 0 || cut >= limit) return out;
  const auto rest = series.subspan(cut);
  Moments batches;
  for (size_t i = 0; i + kMserBatch <= rest.size(); i += kMserBatch) {
    batches.add(mean_of(rest.subspan(i, kMserBatch)));
  }
  const double rest_mean = mean_of(rest), difference = mean_of(series.first(cut)) - rest_mean;
  const double share = static_cast<double>(kMserBatch) *
                       (1 / static_cast<double>(cut) + 1 / static_cast<double>(rest.size()));
  const double error = core::math::sqrt(batches.variance().value_or(0) * share);
  const double size = difference < 0 ? -difference : difference;
  const double scale = rest_mean < 0 ? -rest_mean : rest_mean;
  constexpr double kErrors = 4;
  if (!(size > kErrors * error && size > kChangeMin * scale)) return out;
  out.observations = static_cast<int64_t>(cut);
  out.change = scale > 0 ? difference / scale : 0;
  return out;
}

}  // namespace prony::stats
