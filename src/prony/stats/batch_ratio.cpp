#include "prony/stats/batch_ratio.hpp"

#include <algorithm>
#include <cmath>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"
#include "prony/stats/binomial.hpp"
#include "prony/stats/student_t.hpp"

namespace prony::stats {
namespace {

constexpr size_t kBatchesMax = 64;
constexpr size_t kBatchesJoined = 8;  // not fewer by joining: seven degrees of freedom, t = 2.36

RatioBatch sum_of(const RatioBatch& a, const RatioBatch& b) {
  return {a.numerator + b.numerator, a.denominator + b.denominator};
}

RatioBatch total_of(std::span<const RatioBatch> batches) {
  RatioBatch total;
  for (const auto& batch : batches) total = sum_of(total, batch);
  return total;
}

std::vector<RatioBatch> joined_pairs(std::span<const RatioBatch> batches) {
  std::vector<RatioBatch> out;
  out.reserve((batches.size() + 1) / 2);
  for (size_t i = 0; i + 1 < batches.size(); i += 2) {
    out.push_back(sum_of(batches[i], batches[i + 1]));
  }
  if (batches.size() % 2 == 1) out.push_back(batches.back());
  return out;
}

// First-order correlation of the batches' deviations from the common ratio.
double neighbour_correlation(std::span<const RatioBatch> batches) {
  const auto total = total_of(batches);
  if (!(total.denominator > 0)) return 0;
  const double ratio = total.numerator / total.denominator;
  double square = 0, product = 0, last = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    const double deviation = batches[i].numerator - ratio * batches[i].denominator;
    square += deviation * deviation;
    if (i > 0) product += deviation * last;
    last = deviation;
  }
  return square > 0 ? product / square : 0;
}

}  // namespace

void BatchRatio::add(double numerator, double denominator) {
  ++n_;
  open_ = sum_of(open_, {numerator, denominator});
  if (++in_open_ < size_) return;
  full_.push_back(open_);
  open_ = {};
  in_open_ = 0;
  if (full_.size() < kBatchesMax) return;
  full_ = joined_pairs(full_);
  size_ *= 2;
}

std::vector<RatioBatch> BatchRatio::batches() const {
  auto out = full_;
  if (in_open_ > 0) out.push_back(open_);
  return out;
}

std::optional<double> BatchRatio::estimate() const {
  const auto total = sum_of(total_of(full_), open_);
  if (!(total.denominator > 0)) return std::nullopt;
  return total.numerator / total.denominator;
}

std::optional<Interval> BatchRatio::interval(double confidence) const {
  return ratio_interval(decorrelated(batches()), confidence);
}

std::vector<RatioBatch> decorrelated(std::vector<RatioBatch> batches) {
  while (batches.size() / 2 >= kBatchesJoined) {
    // Of k independent batches the correlation is about normal with mean -1/k and variance 1/k.
    const auto k = static_cast<double>(batches.size());
    constexpr double kFivePercent = 1.645;
    if (neighbour_correlation(batches) <= -1 / k + kFivePercent / core::math::sqrt(k)) break;
    batches = joined_pairs(batches);
  }
  return batches;
}

std::optional<RatioEstimate> ratio_estimate(std::span<const RatioBatch> batches) {
  const auto total = total_of(batches);
  if (batches.size() < 2 || !(total.denominator > 0)) return std::nullopt;
  RatioEstimate out;
  out.ratio = total.numerator / total.denominator;
  double square = 0;
  for (const auto& batch : batches) {
    const double deviation = batch.numerator - out.ratio * batch.denominator;
    square += deviation * deviation;
  }
  const auto k = static_cast<double>(batches.size());
  out.standard_error = core::math::sqrt(square * k / (k - 1)) / total.denominator;
  return out;
}

std::optional<Interval> ratio_interval(std::span<const RatioBatch> batches, double confidence) {
  PRONY_CHECK(confidence > 0 && confidence < 1, "confidence not in (0, 1)");
  if (batches.size() < kBatchesMin) return std::nullopt;
  const auto estimate = ratio_estimate(batches);
  if (!estimate) return std::nullopt;
  const double t = student_t_two_sided(confidence, static_cast<double>(batches.size() - 1));
  const double half = t * estimate->standard_error;
  return Interval{estimate->ratio - half, estimate->ratio + half};
}

Interval clustered_proportion(int64_t successes, int64_t n, std::span<const RatioBatch> batches,
                              double confidence) {
  PRONY_CHECK(n > 0 && successes >= 0 && successes <= n, "more successes than trials");
  double worth = static_cast<double>(n);
  const double share = static_cast<double>(successes) / worth;
  const auto estimate = ratio_estimate(batches);
  if (estimate && batches.size() >= kBatchesMin && successes > 0 && successes < n) {
    const double independent = share * (1 - share) / worth;
    const double variance = estimate->standard_error * estimate->standard_error;
    if (variance > independent) worth = std::max(1.0, worth * independent / variance);
  }
  if (worth >= static_cast<double>(n)) {
    const auto exact = proportion_interval(successes, n, confidence);
    return {exact.lower, exact.upper};
  }
  // Whole numbers, each end rounded away from the estimate.
  const auto trials = std::max<int64_t>(1, static_cast<int64_t>(worth));
  const double scaled = share * static_cast<double>(trials);
  const auto below = static_cast<int64_t>(std::floor(scaled));
  const auto above = std::min(trials, static_cast<int64_t>(std::ceil(scaled)));
  return {proportion_interval(below, trials, confidence).lower,
          proportion_interval(above, trials, confidence).upper};
}

std::optional<QuantileEstimate> series_quantile(std::span<const double> series, double q,
                                                double confidence) {
  if (series.empty()) return std::nullopt;
  std::vector<double> sorted(series.begin(), series.end());
  std::sort(sorted.begin(), sorted.end());
  QuantileEstimate out;
  out.value = quantile_linear(sorted, q);
  BatchRatio below;
  for (const double value : series) below.add(value <= out.value ? 1 : 0);
  const auto n = static_cast<int64_t>(series.size());
  double worth = static_cast<double>(n);
  const auto spread = ratio_estimate(decorrelated(below.batches()));
  if (spread && spread->standard_error > 0) {
    const double variance = spread->standard_error * spread->standard_error;
    worth = std::min(worth, std::max(1.0, q * (1 - q) / variance));
  }
  const auto ranks = quantile_ranks_effective(n, worth, q, confidence);
  if (!ranks) return std::nullopt;
  out.interval = {sorted[static_cast<size_t>(ranks->lower - 1)],
                  sorted[static_cast<size_t>(ranks->upper - 1)]};
  return out;
}

}  // namespace prony::stats
