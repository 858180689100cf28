// Spearman's rank correlation: how far long prompts have long answers, whatever their scales.
// Source: Spearman, American Journal of Psychology 15(1), 1904; the test of two correlations by
// Fisher's z with variance 1.06 / (n - 3): Fieller, Hartley & Pearson, Biometrika 44, 1957 (good
// for |rho| < 0.8 and n > 10). Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace prony::stats {

/// Ties get the mean of their ranks. nullopt for fewer than 2 pairs, or where one side is constant.
/// Requires lists of equal length (checked).
std::optional<double> spearman(std::span<const double> a, std::span<const double> b);

/// Probability of a difference at least as large between two samples of one law. nullopt below 10
/// pairs on a side, or at |rho| = 1.
std::optional<double> spearman_difference_p(double rho_a, int64_t n_a, double rho_b, int64_t n_b);

}  // namespace prony::stats
