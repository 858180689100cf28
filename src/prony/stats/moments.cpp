#include "prony/stats/moments.hpp"

#include <algorithm>

#include "prony/core/math.hpp"

namespace prony::stats {

void Moments::add(double x) {
  add(x, 1);
}

void Moments::add(double x, int64_t times) {
  if (times <= 0) return;
  min_ = n_ == 0 ? x : std::min(min_, x);
  max_ = n_ == 0 ? x : std::max(max_, x);
  const auto weight = static_cast<double>(times);
  n_ += times;
  const double delta = x - mean_;
  mean_ += delta * weight / static_cast<double>(n_);
  square_ += delta * (x - mean_) * weight;
}

void Moments::merge(const Moments& other) {
  if (other.n_ == 0) return;
  if (n_ == 0) {
    *this = other;
    return;
  }
  const auto n = static_cast<double>(n_), m = static_cast<double>(other.n_);
  const double delta = other.mean_ - mean_;
  n_ += other.n_;
  mean_ += delta * m / (n + m);
  square_ += other.square_ + delta * delta * n * m / (n + m);
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

std::optional<double> Moments::variance() const {
  if (n_ < 2) return std::nullopt;
  return std::max(0.0, square_ / static_cast<double>(n_ - 1));
}

std::optional<double> Moments::sd() const {
  const auto square = variance();
  if (!square) return std::nullopt;
  return core::math::sqrt(*square);
}

}  // namespace prony::stats
