// Moments: count, mean, standard deviation, minimum and maximum in one pass.
// The running update does not cancel when the mean is large against the spread.
// Source: Welford, Technometrics 4(3), 1962; merging: Chan, Golub & LeVeque, 1979.
// Thread safety: none; keep one a thread and merge().
#pragma once
#include <cstdint>
#include <optional>

namespace prony::stats {

class Moments {
 public:
  void add(double x);
  /// Adds `times` equal samples.
  void add(double x, int64_t times);
  void merge(const Moments& other);

  int64_t n() const { return n_; }
  // nullopt without samples.
  std::optional<double> mean() const { return n_ > 0 ? std::optional(mean_) : std::nullopt; }
  std::optional<double> min() const { return n_ > 0 ? std::optional(min_) : std::nullopt; }
  std::optional<double> max() const { return n_ > 0 ? std::optional(max_) : std::nullopt; }
  /// Unbiased, divisor n - 1; nullopt for fewer than two samples.
  std::optional<double> variance() const;
  std::optional<double> sd() const;

 private:
  int64_t n_ = 0;
  double mean_ = 0, square_ = 0, min_ = 0, max_ = 0;
};

}  // namespace prony::stats
