// Elementary functions that give the same bits on every machine: libm differs between versions and
// processors, and equal seeds must give equal schedules. Only + - * / and sqrt (exact in IEEE 754)
// are used; compile with -ffp-contract=off. Relative error <= 1e-15 for log and exp, <= 1e-14 for
// pow with |y log x| <= 30; tests compare with libm.
// Thread safety: pure functions.
#pragma once

namespace prony::core::math {

double sqrt(double x);
/// Natural logarithm. x <= 0 gives -infinity (0) or NaN, as in C.
double log(double x);
double exp(double x);
/// x^y for x >= 0; pow(0, 0) = 1.
double pow(double x, double y);
/// log(Gamma(x)) for x > 0. Source: Lanczos 1964, g = 7, n = 9.
double log_gamma(double x);
/// Error function, |error| <= 2e-15 by series and continued fraction.
double erf(double x);

}  // namespace prony::core::math

namespace prony::core {
/// Standard normal cumulative distribution.
double normal_cdf(double x);
/// Its inverse for p in (0, 1) (checked); relative error about 1e-15 after one Newton step.
/// Source: Wichura, algorithm AS 241 (PPND16), Applied Statistics 37(3), 1988.
double inverse_normal_cdf(double p);
}  // namespace prony::core
