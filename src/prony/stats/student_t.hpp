// Student's t distribution: its quantiles turn the spread of a few batch means into an interval.
// Source: Abramowitz & Stegun 26.7.1 and 26.5.8 (incomplete beta function by continued fraction).
// Relative error of the cdf about 1e-12. Thread safety: pure functions.
#pragma once

namespace prony::stats {

/// P(T <= t) with `freedom` degrees of freedom, > 0 (checked).
double student_t_cdf(double t, double freedom);
/// Its inverse; probability in (0, 1) (checked).
double student_t_quantile(double probability, double freedom);
/// The t with P(|T| <= t) = confidence, in (0, 1) (checked).
double student_t_two_sided(double confidence, double freedom);

}  // namespace prony::stats
