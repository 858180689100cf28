// Is a series of observations in the order of their arrival steady, or does it still warm up, or
// does it drift away (an overloaded open loop: every answer later than the one before)?
// Two looks: MSER-5 says how much of the start to leave out; the means of 20 batches of the rest
// are tested for a monotone trend (batches, because neighbouring observations are not independent).
// An answer about the level only: a steady mean may hide a growing tail.
// Source: White, Cobb & Spratt, "A comparison of five steady-state truncation heuristics", Winter
// Simulation Conference 2000 (MSER-5); Mann, Econometrica 13(3), 1945, and Kendall, Rank
// Correlation Methods, 4th ed. 1975 (trend test with ties). Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace prony::stats {

/// Observations to leave out at the start by MSER-5, at most half of the series (rounded down to a
/// batch of 5); 0 for fewer than 10 observations.
int64_t mser5_truncation(std::span<const double> series);

/// Two-sided p-value of Mann and Kendall's test for a monotone trend, normal limit with continuity
/// and tie corrections; good for ten values and more that do not depend on each other.
double trend_p_value(std::span<const double> values);

struct SteadyState {
  bool steady = false;
  int64_t truncation = 0;  // MSER-5; half the series or more means no steady part was found
  double change = 0;       // (second half - first half) / first half, of what remains
  double p_value = 1;      // of the trend, two-sided
};
/// nullopt for fewer than kSteadyStateMin observations: too few to tell.
/// Not steady: a trend with p < 0.01 and halves that differ by more than 5 %. Truncation alone is
/// no verdict, since MSER takes any trend for a warm-up; it is reported for the caller to show.
inline constexpr int64_t kSteadyStateMin = 100;
std::optional<SteadyState> assess_steady_state(std::span<const double> series);

/// The start of a series that is unlike the rest.
struct WarmUp {
  int64_t observations = 0;  // 0: the start is like the rest
  double change = 0;         // (their mean - the rest's) / the rest's
};
/// What MSER-5 leaves out, if its mean differs from the rest's by more than 5 % and by more than 4
/// standard errors (of means of five): MSER alone finds a start to cut in any noise. A cut at its
/// limit of half the series means drift, which is no warm-up, and gives 0 observations.
/// nullopt for fewer than kSteadyStateMin observations.
std::optional<WarmUp> assess_warm_up(std::span<const double> series);

}  // namespace prony::stats
