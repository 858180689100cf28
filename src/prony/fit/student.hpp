// Student's t distribution, for intervals from few residuals.
// Thread safety: pure functions. Source: regularised incomplete beta by Lentz's continued fraction.
#pragma once

namespace prony::fit {

/// P(T <= t) with `degrees` > 0 (checked) degrees of freedom; absolute error below 1e-12.
double student_cdf(double t, double degrees);

/// The t with P(|T| <= t) = confidence in (0, 1) (checked).
double student_two_sided(double confidence, double degrees);

}  // namespace prony::fit
