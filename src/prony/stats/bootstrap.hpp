// Bootstrap of a ratio of two sums over batches (throughput: tokens over seconds; goodput: good
// requests over seconds): batches are drawn with replacement, and the studentised deviation of each
// redraw from the whole gives the interval. Studentised, because the plain percentile interval of a
// few dozen batches is too narrow, and its error is of second order where the data are skewed.
// Equal batches and seed give equal bits everywhere (Philox, portable math).
// Source: Efron & Tibshirani, An Introduction to the Bootstrap, 1993, section 12.5; blocks for
// dependent data: Carlstein, Annals of Statistics 14(3), 1986.
// Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "prony/stats/batch_ratio.hpp"

namespace prony::stats {

struct BootstrapOptions {
  int replicates = 999;  // 999: the 2.5 % ranks are whole numbers, 25 and 975
  uint64_t seed = 1;
  double confidence = 0.95;
};
/// nullopt with fewer than kBatchesMin batches or a denominator of nothing. Batches that do not
/// differ give lower == upper.
std::optional<Interval> bootstrap_ratio(std::span<const RatioBatch> batches,
                                        const BootstrapOptions& options = {});

}  // namespace prony::stats
