// Holm's adjustment for many tests at once: of all differences called real, the chance that even
// one of them is not stays below the level, whatever the tests' dependence.
// Source: Holm, Scandinavian Journal of Statistics 6(2), 1979. Thread safety: pure functions.
#pragma once
#include <span>
#include <vector>

namespace prony::stats {

/// Adjusted p-values in the order given: reject where they are at most the level. Requires every p
/// in [0, 1].
std::vector<double> holm_adjusted(std::span<const double> p_values);

}  // namespace prony::stats
