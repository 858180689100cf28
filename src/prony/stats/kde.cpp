#include "prony/stats/kde.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"
#include "prony/stats/moments.hpp"
#include "prony/stats/quantile.hpp"

namespace prony::stats {
namespace {

constexpr double kReach = 7;           // bandwidths; a kernel holds 1.3e-12 beyond
constexpr double kStep = 1.0 / 16;     // of the table, in bandwidths
constexpr double kKnotsMax = 1 << 20;  // a coarser step where there would be more

// Checks, and takes logarithms where they are asked for; the lower bound likewise.
Result<double> prepare(std::vector<double>& samples, const KdeOptions& options) {
  if (samples.empty()) return invalid_argument("density estimate: found no samples");
  if (!(options.bandwidth >= 0 && std::isfinite(options.bandwidth))) {
    return invalid_argument(
        fmt::format("density estimate: found a bandwidth of {}, expected > 0, or 0 for Silverman's",
                    options.bandwidth));
  }
  if (!std::isfinite(options.lower) || (options.log && !(options.lower > 0))) {
    return invalid_argument(
        fmt::format("density estimate: found a lower bound of {}, expected > 0", options.lower));
  }
  for (double& x : samples) {
    if (!(x >= options.lower && std::isfinite(x))) {
      return invalid_argument(fmt::format(
          "density estimate: found the sample {}, expected at least {}", x, options.lower));
    }
    if (options.log) x = core::math::log(x);
  }
  return options.log ? core::math::log(options.lower) : options.lower;
}

double reflected(double y, double lower) {
  return y < lower ? 2 * lower - y : y;
}

}  // namespace

double silverman_bandwidth(std::span<const double> sorted) {
  Moments moments;
  for (const double x : sorted) moments.add(x);
  const double sd = moments.sd().value_or(0);
  const double spread = (quantile_linear(sorted, 0.75) - quantile_linear(sorted, 0.25)) / 1.34;
  const double scale = spread > 0 ? std::min(sd, spread) : sd;
  const auto n = static_cast<double>(sorted.size());
  return 0.9 * scale * core::math::pow(n, -0.2);
}

Result<Kde> Kde::create(std::vector<double> samples, const KdeOptions& options) {
  const auto lower = prepare(samples, options);
  if (!lower) return lower.error();
  std::sort(samples.begin(), samples.end());
  Kde kde;
  kde.log_ = options.log;
  kde.lower_ = *lower;
  kde.bandwidth_ = options.bandwidth > 0 ? options.bandwidth : silverman_bandwidth(samples);
  const auto n = static_cast<double>(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    if (i > 0 && samples[i] == samples[i - 1]) continue;
    kde.values_.push_back(samples[i]);
    kde.weight_before_.push_back(static_cast<double>(i) / n);
  }
  kde.weight_before_.push_back(1);
  kde.tabulate();
  return kde;
}

// P(Y <= y) of the folded estimate: F(y) - F(2 lower - y), where F is that of the plain kernels.
double Kde::scaled_cdf(double y) const {
  if (y < lower_) return 0;
  if (bandwidth_ == 0) {
    const auto above = std::upper_bound(values_.begin(), values_.end(), y) - values_.begin();
    return weight_before_[static_cast<size_t>(above)];
  }
  const auto plain = [this](double at) {
    const auto index = [this](double x) {
      return static_cast<size_t>(std::lower_bound(values_.begin(), values_.end(), x) -
                                 values_.begin());
    };
    const size_t first = index(at - kReach * bandwidth_), last = index(at + kReach * bandwidth_);
    double sum = weight_before_[first];  // kernels that lie below `at` as a whole
    for (size_t i = first; i < last; ++i) {
      const double weight = weight_before_[i + 1] - weight_before_[i];
      sum += weight * core::normal_cdf((at - values_[i]) / bandwidth_);
    }
    return sum;
  };
  return std::clamp(plain(y) - plain(2 * lower_ - y), 0.0, 1.0);
}

double Kde::cdf(double x) const {
  if (!log_) return scaled_cdf(x);
  return x <= 0 ? 0 : scaled_cdf(core::math::log(x));
}

void Kde::tabulate() {
  if (bandwidth_ == 0) return;
  const double reach = kReach * bandwidth_;
  const double low = std::max(lower_, values_.front() - reach);
  // Kernels near the bound come back at it, at most as far as they reached below.
  const double high = values_.back() + reach;
  const double step = std::max(kStep * bandwidth_, (high - low) / kKnotsMax);
  const auto count = static_cast<size_t>(std::ceil((high - low) / step)) + 1;
  knots_.reserve(count);
  cumulative_.reserve(count);
  double before = 0;
  for (size_t i = 0; i < count; ++i) {
    const double y = std::min(low + static_cast<double>(i) * step, high);
    before = std::max(before, scaled_cdf(y));  // sums of roundings may fall by one ulp
    knots_.push_back(y);
    cumulative_.push_back(before);
  }
}

double Kde::quantile(double p) const {
  double y;
  if (bandwidth_ == 0) {
    const auto at = std::upper_bound(weight_before_.begin(), weight_before_.end() - 1, p);
    y = values_[static_cast<size_t>(std::max<std::ptrdiff_t>(at - weight_before_.begin(), 1)) - 1];
  } else {
    const auto above = std::upper_bound(cumulative_.begin(), cumulative_.end(), p);
    const auto i = static_cast<size_t>(above - cumulative_.begin());
    if (i == 0) {
      y = knots_.front();
    } else if (i == cumulative_.size()) {
      y = knots_.back();
    } else {
      const double rise = cumulative_[i] - cumulative_[i - 1];
      y = knots_[i - 1] + (knots_[i] - knots_[i - 1]) * ((p - cumulative_[i - 1]) / rise);
    }
  }
  return log_ ? core::math::exp(y) : y;
}

Result<PairKde::Axis> PairKde::make_axis(std::vector<double> values, const KdeOptions& options) {
  const auto lower = prepare(values, options);
  if (!lower) return lower.error();
  Axis axis;
  axis.lower = *lower;
  axis.log = options.log;
  axis.bandwidth = options.bandwidth;
  if (axis.bandwidth == 0) {
    auto sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const auto n = static_cast<double>(values.size());
    axis.bandwidth = silverman_bandwidth(sorted) * core::math::pow(n, 1.0 / 5 - 1.0 / 6);
  }
  axis.values = std::move(values);
  return axis;
}

Result<PairKde> PairKde::create(std::vector<double> first, std::vector<double> second,
                                const KdeOptions& first_options, const KdeOptions& second_options) {
  if (first.size() != second.size()) {
    return invalid_argument(fmt::format("density estimate: found {} and {} samples, expected pairs",
                                        first.size(), second.size()));
  }
  auto one = make_axis(std::move(first), first_options);
  if (!one) return one.error();
  auto two = make_axis(std::move(second), second_options);
  if (!two) return two.error();
  PairKde pair;
  pair.axes_[0] = std::move(one).value();
  pair.axes_[1] = std::move(two).value();
  return pair;
}

double PairKde::Axis::sample(size_t row, double normal) const {
  const double y = reflected(values[row] + bandwidth * normal, lower);
  return log ? core::math::exp(y) : y;
}

std::pair<double, double> PairKde::sample(core::Rng& rng) const {
  const auto n = static_cast<double>(axes_[0].values.size());
  const auto row = static_cast<size_t>(rng.uniform() * n);
  const double a = rng.normal(), b = rng.normal();
  return {axes_[0].sample(row, a), axes_[1].sample(row, b)};
}

}  // namespace prony::stats
