#include "prony/compare/change_law.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"
#include "prony/stats/moments.hpp"
#include "prony/stats/student_t.hpp"

namespace prony::compare {
namespace {

using stats::Interval;

// exp(x) - 1 of both ends.
double relative_of(double log_ratio) {
  return core::math::exp(log_ratio) - 1;
}

std::optional<ChangeLaw> replicate_law(std::vector<double> replicates, double estimate,
                                       int blocks) {
  const auto law = std::make_shared<stats::ReplicateLaw>(std::move(replicates), estimate, blocks);
  if (!law->known()) return std::nullopt;
  return ChangeLaw{estimate, [law](double confidence) { return law->interval(confidence); },
                   law->p_value()};
}

ChangeLaw to_relative(ChangeLaw law) {
  law.value = relative_of(law.value);
  law.interval = [inner = std::move(law.interval)](double confidence) {
    const auto interval = inner(confidence);
    return Interval{relative_of(interval.lower), relative_of(interval.upper)};
  };
  return law;
}

std::optional<ChangeLaw> student_law(double value, double standard_error, double freedom) {
  if (!(standard_error > 0) || !(freedom > 0)) return std::nullopt;
  ChangeLaw law;
  law.value = value;
  law.interval = [=](double confidence) {
    const double half = stats::student_t_two_sided(confidence, freedom) * standard_error;
    return Interval{value - half, value + half};
  };
  law.p = std::min(1.0, 2 * stats::student_t_cdf(-std::abs(value) / standard_error, freedom));
  return law;
}

stats::Moments moments_of(std::span<const double> values) {
  stats::Moments out;
  for (const double x : values) out.add(x);
  return out;
}

std::optional<std::vector<double>> logs(std::span<const double> values) {
  std::vector<double> out;
  for (const double x : values) {
    if (!(x > 0)) return std::nullopt;
    out.push_back(core::math::log(x));
  }
  return out;
}

template <class Difference>
std::optional<ChangeLaw> relative_by(const Difference& difference, std::span<const double> baseline,
                                     std::span<const double> candidate) {
  const auto a = logs(baseline), b = logs(candidate);
  if (!a || !b) return std::nullopt;
  auto law = difference(*a, *b);
  if (!law) return std::nullopt;
  return to_relative(std::move(*law));
}

}  // namespace

std::optional<ChangeLaw> relative_law(std::vector<double> log_ratios, double baseline,
                                      double candidate, int blocks) {
  if (!(baseline > 0) || !(candidate > 0)) return std::nullopt;
  auto law = replicate_law(std::move(log_ratios), core::math::log(candidate / baseline), blocks);
  if (!law) return std::nullopt;
  return to_relative(std::move(*law));
}

std::optional<ChangeLaw> difference_law(std::vector<double> differences, double baseline,
                                        double candidate, int blocks) {
  return replicate_law(std::move(differences), candidate - baseline, blocks);
}

std::optional<double> Share::value() const {
  double count = 0, all = 0;
  for (const auto& batch : batches) {
    count += batch.numerator;
    all += batch.denominator;
  }
  return all > 0 ? std::optional(count / all) : std::nullopt;
}

std::optional<ChangeLaw> share_law(const Share& baseline, const Share& candidate) {
  struct Side {
    double value = 0;
    int64_t count = 0, all = 0;
    std::vector<stats::RatioBatch> batches;
    Interval interval(double confidence) const {
      return stats::clustered_proportion(count, all, batches, confidence);
    }
  };
  const auto side = [](const Share& share) {
    Side out;
    out.value = *share.value();
    for (const auto& batch : share.batches) {
      out.count += static_cast<int64_t>(batch.numerator);
      out.all += static_cast<int64_t>(batch.denominator);
    }
    out.batches = stats::decorrelated(share.batches);
    return out;
  };
  if (!baseline.value() || !candidate.value()) return std::nullopt;
  ChangeLaw law;
  law.value = *candidate.value() - *baseline.value();
  law.interval = [a = side(baseline), b = side(candidate)](double confidence) {
    const auto of_a = a.interval(confidence), of_b = b.interval(confidence);
    const auto length = [](double x, double y) { return core::math::sqrt(x * x + y * y); };
    const double difference = b.value - a.value;
    return Interval{difference - length(b.value - of_b.lower, of_a.upper - a.value),
                    difference + length(of_b.upper - b.value, a.value - of_a.lower)};
  };
  // The confidence at which the interval just reaches no change, found on the scale of normal
  // scores, where 20 halvings give p to about 1e-5 of itself.
  const auto p_of = [](double z) { return 2 * core::normal_cdf(-z); };
  const auto excludes = [&](double z) {
    const auto interval = law.interval(1 - p_of(z));
    return interval.lower > 0 || interval.upper < 0;
  };
  double low = 0.01, high = 6;
  if (law.value == 0 || !excludes(low)) return law;
  if (excludes(high)) low = high;
  for (int i = 0; i < 20 && low < high; ++i) {
    const double middle = (low + high) / 2;
    (excludes(middle) ? low : high) = middle;
  }
  law.p = p_of(low);
  return law;
}

std::optional<ChangeLaw> runs_difference(std::span<const double> baseline,
                                         std::span<const double> candidate) {
  const auto a = moments_of(baseline), b = moments_of(candidate);
  if (a.n() == 0 || b.n() == 0 || a.n() + b.n() < 3) return std::nullopt;
  const double value = *b.mean() - *a.mean();
  const auto of_a = static_cast<double>(a.n()), of_b = static_cast<double>(b.n());
  if (a.n() == 1 || b.n() == 1) {
    const double variance = a.n() == 1 ? *b.variance() : *a.variance();
    return student_law(value, core::math::sqrt(variance * (1 / of_a + 1 / of_b)), of_a + of_b - 2);
  }
  const double va = *a.variance() / of_a, vb = *b.variance() / of_b;
  const double freedom = (va + vb) * (va + vb) / (va * va / (of_a - 1) + vb * vb / (of_b - 1));
  return student_law(value, core::math::sqrt(va + vb), va + vb > 0 ? freedom : 0);
}

std::optional<ChangeLaw> paired_runs_difference(std::span<const double> baseline,
                                                std::span<const double> candidate) {
  PRONY_CHECK(baseline.size() == candidate.size(), "runs without a partner");
  std::vector<double> differences;
  for (size_t i = 0; i < baseline.size(); ++i) differences.push_back(candidate[i] - baseline[i]);
  const auto moments = moments_of(differences);
  if (moments.n() < 2) return std::nullopt;
  const auto n = static_cast<double>(moments.n());
  return student_law(*moments.mean(), core::math::sqrt(*moments.variance() / n), n - 1);
}

std::optional<ChangeLaw> runs_relative(std::span<const double> baseline,
                                       std::span<const double> candidate) {
  return relative_by([](const auto& a, const auto& b) { return runs_difference(a, b); }, baseline,
                     candidate);
}

std::optional<ChangeLaw> paired_runs_relative(std::span<const double> baseline,
                                              std::span<const double> candidate) {
  return relative_by([](const auto& a, const auto& b) { return paired_runs_difference(a, b); },
                     baseline, candidate);
}

}  // namespace prony::compare
