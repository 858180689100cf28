// Kde: a Gaussian kernel density estimate of positive numbers (lengths of prompts), and numbers
// drawn from it. A kernel that reaches below the lower bound is folded back at it (reflection), so
// no mass lies below and the density does not sink towards the bound as an uncorrected one does.
// With `log` the estimate is of the logarithms: a kernel is then a lognormal, wide where lengths
// are long; the better choice for lengths over several decades.
// Sampling inverts the cumulative distribution, tabulated in steps of a sixteenth of the bandwidth
// and linear between: off by at most 2.4e-4 of probability where all samples are alike, far less
// where they spread. Only core math: equal inputs give equal bytes on every machine.
// Source: Silverman, Density Estimation for Statistics and Data Analysis, 1986, 2.10 (reflection),
// 3.4.2 (rule of thumb, equation 3.31). Thread safety: immutable; any thread.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/core/rng.hpp"

namespace prony::stats {

struct KdeOptions {
  double bandwidth = 0;  // of the samples, or of their logarithms with `log`; 0: Silverman's rule
  bool log = false;
  double lower = 1;  // no mass below; > 0 with `log`
};

/// 0.9 min(sd, IQR / 1.34) n^(-1/5); where more than half of the samples are alike the IQR is 0 and
/// sd alone counts. 0 if all are alike. Requires `sorted` ascending and not empty (checked).
double silverman_bandwidth(std::span<const double> sorted);

class Kde {
 public:
  /// Error: kInvalidArgument without samples, for a sample below `lower` or not finite, for a
  /// bandwidth that is negative or not finite.
  static Result<Kde> create(std::vector<double> samples, const KdeOptions& options);

  /// P(X <= x), by the sum over all kernels.
  double cdf(double x) const;
  /// The inverse of it, from the table; p in [0, 1] (clamped).
  double quantile(double p) const;
  /// One uniform number a draw.
  double sample(core::Rng& rng) const { return quantile(rng.uniform()); }
  /// Used, in the units of KdeOptions; 0: all samples are alike, and so is every draw.
  double bandwidth() const { return bandwidth_; }
  bool log() const { return log_; }

 private:
  Kde() = default;
  double scaled_cdf(double y) const;
  void tabulate();

  bool log_ = false;
  double bandwidth_ = 0, lower_ = 1;   // lower_: as the samples below
  std::vector<double> values_;         // distinct samples, perhaps their logarithms, ascending
  std::vector<double> weight_before_;  // share of the samples below values_[i]; one more at the end
  std::vector<double> knots_, cumulative_;
};

/// Pairs drawn from the two-dimensional estimate with a product kernel: a pair of the sample, each
/// member moved by its own kernel. Keeps how the members hang together, which two estimates drawn
/// apart lose. Thread safety: immutable; any thread.
class PairKde {
 public:
  /// Bandwidths of 0 are Silverman's of each member, times n^(1/5 - 1/6), the rule's rate for two
  /// dimensions. Error: as Kde::create(), or lists of unequal length.
  static Result<PairKde> create(std::vector<double> first, std::vector<double> second,
                                const KdeOptions& first_options, const KdeOptions& second_options);
  /// Three uniform numbers a draw.
  std::pair<double, double> sample(core::Rng& rng) const;
  double first_bandwidth() const { return axes_[0].bandwidth; }
  double second_bandwidth() const { return axes_[1].bandwidth; }

 private:
  struct Axis {
    std::vector<double> values;  // in the order given; logarithms with `log`
    double bandwidth = 0, lower = 1;
    bool log = false;
    double sample(size_t row, double normal) const;
  };
  static Result<Axis> make_axis(std::vector<double> values, const KdeOptions& options);
  Axis axes_[2];
};

}  // namespace prony::stats
