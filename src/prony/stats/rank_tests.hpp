// Rank tests of two runs whose requests hang together in time: Mann-Whitney's U of two samples and
// Wilcoxon's signed ranks of pairs, with the shift between them (Hodges & Lehmann) and how often
// one side exceeds the other (Cliff's delta). The textbook variances hold for independent requests;
// here variances come from the means of blocks in time, joined until neighbours do not correlate.
// Source: Brunner & Munzel, Biometrical Journal 42(1), 2000 (placements, unequal variances);
// Obuchowski, Biometrics 53(2), 1997 (placements in clusters); Hodges & Lehmann, Annals of
// Mathematical Statistics 34(2), 1963; Cliff, Psychological Bulletin 114(3), 1993; Pratt, JASA
// 54(287), 1959 (zeros). Thread safety: pure functions. Cost: O(n log n).
#pragma once
#include <optional>
#include <span>

#include "prony/stats/block_bootstrap.hpp"

namespace prony::stats {

struct RankTest {
  double p_value = 1;  // two-sided, of no difference
  /// P(b > a) - P(b < a), of any two requests, or of the two of a pair.
  double delta = 0;
  std::optional<Interval> delta_interval;  // unset at -1 and 1, where nothing varies
  double shift = 0;                        // b - a
  std::optional<Interval> shift_interval;
};

/// Samples in the order of their blocks, [0, blocks) each. nullopt with fewer than kBlocksMin
/// blocks that hold values on either side.
std::optional<RankTest> rank_sum_test(std::span<const BlockedValue> a,
                                      std::span<const BlockedValue> b, double confidence = 0.95);
/// Differences b - a of pairs. nullopt as above.
std::optional<RankTest> signed_rank_test(std::span<const BlockedValue> differences,
                                         double confidence = 0.95);

/// Median of all b[j] - a[i]; both sorted and not empty (checked).
double hodges_lehmann(std::span<const double> a_sorted, std::span<const double> b_sorted);
/// Median of all (d[i] + d[j]) / 2, i <= j; sorted and not empty (checked).
double hodges_lehmann(std::span<const double> differences_sorted);

}  // namespace prony::stats
