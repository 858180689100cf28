// Block bootstrap of differences: a run is cut into blocks of requests (or of time) that follow
// each other, blocks are drawn with replacement, and quantiles and ratios are computed anew of each
// redraw. Neighbours in a queue resemble each other, blocks hardly do. Two runs of one schedule
// take the same draws, so what both owe to the schedule cancels; others take draws of their own.
// Equal values and seed give equal bits everywhere (Philox, portable math).
// Source: Carlstein, Annals of Statistics 14(3), 1986 (blocks); Hesterberg, The American
// Statistician 69(4), 2015 (the percentile interval expanded for few blocks).
// Thread safety: BlockDraws is immutable; pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "prony/stats/batch_ratio.hpp"
#include "prony/stats/quantile.hpp"

namespace prony::stats {

inline constexpr int kBlocksMax = 64;
/// Fewer blocks than this give no interval.
inline constexpr int kBlocksMin = 8;

/// How often each of `blocks` blocks was drawn, for every replicate.
class BlockDraws {
 public:
  /// Requires 1 <= blocks <= kBlocksMax and replicates > 0 (checked).
  BlockDraws(int blocks, int replicates, uint64_t seed, uint64_t stream);
  int blocks() const { return blocks_; }
  int replicates() const { return replicates_; }
  /// [blocks]; adds up to blocks().
  std::span<const uint8_t> weights(int replicate) const;

 private:
  int blocks_, replicates_;
  std::vector<uint8_t> weights_;  // [replicates][blocks]
};

/// A value and the block that it came in.
struct BlockedValue {
  double value = 0;
  int32_t block = 0;
};

/// The q-quantile (linear interpolation, as quantile_linear) of every redraw; NaN where a redraw
/// holds no value. Exact up to some 500 values; beyond, ranks are read off a grid that is dense
/// around the quantile. Requires `sorted` ascending, not empty, blocks below draws.blocks().
/// Cost: n + replicates * blocks * 10.
std::vector<double> quantile_replicates(std::span<const BlockedValue> sorted, double q,
                                        const BlockDraws& draws);
/// Sum of numerators / sum of denominators of every redraw; NaN where that is no number.
/// Requires as many batches as draws.blocks() (checked).
std::vector<double> ratio_replicates(std::span<const RatioBatch> batches, const BlockDraws& draws);

/// How many times neighbours must be joined until they do not correlate any more (decorrelated()).
int joining_level(std::span<const RatioBatch> batches);
/// Neighbours joined `level` times: batch i of the result is the sum of those with index >> level.
std::vector<RatioBatch> joined(std::span<const RatioBatch> batches, int level);

/// What replicates of a difference say of it. NaNs are left out; nothing is known where they are
/// more than half, or with fewer than kBlocksMin blocks.
class ReplicateLaw {
 public:
  /// `estimate`: of the runs as they were.
  ReplicateLaw(std::vector<double> replicates, double estimate, int blocks);
  bool known() const { return known_; }
  /// Expanded percentile interval; where its tails hold fewer than five replicates, Student's t
  /// around the estimate with the replicates' spread. Requires known() (checked).
  Interval interval(double confidence) const;
  /// Two-sided, of no difference. Requires known() (checked).
  double p_value() const;

 private:
  std::vector<double> sorted_;
  double estimate_, mean_ = 0, sd_ = 0;
  int blocks_;
  bool known_ = false;
};

}  // namespace prony::stats
