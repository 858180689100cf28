// ChangeLaw: what is known of one change, by whichever method: its estimate, an interval at any
// confidence, and the probability of so much by chance. And the laws that need no redraws: of two
// proportions, and of values of several runs a side.
// Source: Zou & Donner, Statistics in Medicine 27(10), 2008 (interval of a difference from those of
// its parts); Welch, Biometrika 34, 1947. Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prony/stats/batch_ratio.hpp"
#include "prony/stats/block_bootstrap.hpp"

namespace prony::compare {

struct ChangeLaw {
  double value = 0;
  std::function<stats::Interval(double confidence)> interval;
  double p = 1;
};

/// Relative change of two values > 0 from replicates of log(candidate / baseline).
std::optional<ChangeLaw> relative_law(std::vector<double> log_ratios, double baseline,
                                      double candidate, int blocks);
/// candidate - baseline.
std::optional<ChangeLaw> difference_law(std::vector<double> differences, double baseline,
                                        double candidate, int blocks);

/// A share of requests; batches in time: numerator those that count, denominator all.
struct Share {
  std::vector<stats::RatioBatch> batches;
  std::optional<double> value() const;
};
/// candidate - baseline, the two taken as independent (where they are paired: too wide, if
/// anything).
std::optional<ChangeLaw> share_law(const Share& baseline, const Share& candidate);

/// Values of runs, one each. Both sides with two or more: Welch's t. One with a single run: pooled,
/// as if it varied like the other. Neither: nullopt, and so where no run differs from another.
std::optional<ChangeLaw> runs_difference(std::span<const double> baseline,
                                         std::span<const double> candidate);
/// The same of their logarithms, as a relative change; all > 0, else nullopt.
std::optional<ChangeLaw> runs_relative(std::span<const double> baseline,
                                       std::span<const double> candidate);
/// Run i of both had the same schedule.
std::optional<ChangeLaw> paired_runs_difference(std::span<const double> baseline,
                                                std::span<const double> candidate);
std::optional<ChangeLaw> paired_runs_relative(std::span<const double> baseline,
                                              std::span<const double> candidate);

}  // namespace prony::compare
