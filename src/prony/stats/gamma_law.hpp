// The gamma distribution's cumulative function, for tests of arrival gaps (gamma gaps have it, and
// exponential ones are its shape 1). Relative error about 1e-13 for shapes up to 1e6.
// Source: Press et al., Numerical Recipes, 3rd ed., 6.2 (series below shape + 1, continued fraction
// above; no code of theirs); NIST DLMF 8.7.1 and 8.9.2. Thread safety: pure function.
#pragma once

namespace prony::stats {

/// P(X <= x) for X ~ Gamma(shape, scale 1). Requires shape > 0 (checked); x <= 0 gives 0.
double gamma_cdf(double x, double shape);

}  // namespace prony::stats
