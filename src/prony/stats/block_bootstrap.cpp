#include "prony/stats/block_bootstrap.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"
#include "prony/core/rng.hpp"
#include "prony/stats/moments.hpp"
#include "prony/stats/student_t.hpp"

namespace prony::stats {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kCoarse = 128, kFine = 400;

// Ranks (from 1) at which the values of each block are counted: all of few values; else some over
// the whole range and many where the quantile of a redraw is likely to lie.
std::vector<int64_t> grid_ranks(std::span<const BlockedValue> sorted, double q, int blocks) {
  const auto n = static_cast<int64_t>(sorted.size());
  std::vector<int64_t> ranks;
  if (n <= kCoarse + kFine) {
    for (int64_t rank = 1; rank <= n; ++rank) ranks.push_back(rank);
    return ranks;
  }
  const int64_t centre = nearest_rank(q, n);
  std::vector<double> excess(static_cast<size_t>(blocks), 0);
  for (int64_t i = 0; i < n; ++i) {
    excess[static_cast<size_t>(sorted[static_cast<size_t>(i)].block)] += (i < centre ? 1 : 0) - q;
  }
  double square = 0;
  for (const double one : excess) square += one * one;
  const auto half = static_cast<int64_t>(6 * core::math::sqrt(square)) + kFine / 2;
  const auto add = [&](int64_t low, int64_t high, int64_t steps) {
    low = std::max<int64_t>(1, low);
    high = std::min(n, high);
    for (int64_t i = 0; i <= steps; ++i) {
      ranks.push_back(low +
                      static_cast<int64_t>(static_cast<double>(high - low) *
                                           static_cast<double>(i) / static_cast<double>(steps)));
    }
  };
  add(1, n, kCoarse);
  add(centre - half, centre + half, kFine);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

class QuantileGrid {
 public:
  QuantileGrid(std::span<const BlockedValue> sorted, double q, int blocks)
      : blocks_(static_cast<size_t>(blocks)), ranks_(grid_ranks(sorted, q, blocks)) {
    counts_.reserve(ranks_.size() * blocks_);
    values_.reserve(ranks_.size());
    std::vector<int64_t> so_far(blocks_, 0);
    size_t seen = 0;
    for (const int64_t rank : ranks_) {
      for (; seen < static_cast<size_t>(rank); ++seen) {
        ++so_far[static_cast<size_t>(sorted[seen].block)];
      }
      counts_.insert(counts_.end(), so_far.begin(), so_far.end());
      values_.push_back(sorted[seen - 1].value);
    }
  }

  double quantile(double q, std::span<const uint8_t> weights) const {
    const int64_t total = count(ranks_.size() - 1, weights);
    if (total == 0) return kNan;
    const double position = q * static_cast<double>(total - 1);
    const auto below = static_cast<int64_t>(position);
    const double share = position - static_cast<double>(below);
    const double low = value_at(below + 1, weights);
    if (share == 0) return low;
    return low + share * (value_at(below + 2, weights) - low);
  }

 private:
  int64_t count(size_t entry, std::span<const uint8_t> weights) const {
    const int64_t* counts = counts_.data() + entry * blocks_;
    int64_t sum = 0;
    for (size_t k = 0; k < blocks_; ++k) sum += weights[k] * counts[k];
    return sum;
  }
  // The value of this rank in the redraw.
  double value_at(int64_t rank, std::span<const uint8_t> weights) const {
    size_t low = 0, high = ranks_.size() - 1;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (count(middle, weights) >= rank) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (low == 0 || ranks_[low] - ranks_[low - 1] == 1) return values_[low];
    const auto before = static_cast<double>(count(low - 1, weights));
    const auto here = static_cast<double>(count(low, weights));
    const double share = (static_cast<double>(rank) - before) / (here - before);
    return values_[low - 1] + share * (values_[low] - values_[low - 1]);
  }

  size_t blocks_;
  std::vector<int64_t> ranks_;
  std::vector<int64_t> counts_;  // [ranks][blocks]: values of the block up to that rank
  std::vector<double> values_;   // at these ranks
};

}  // namespace

BlockDraws::BlockDraws(int blocks, int replicates, uint64_t seed, uint64_t stream)
    : blocks_(blocks), replicates_(replicates) {
  PRONY_CHECK(blocks >= 1 && blocks <= kBlocksMax && replicates > 0, "no blocks, or too many");
  const auto width = static_cast<size_t>(blocks);
  weights_.assign(width * static_cast<size_t>(replicates), 0);
  core::Rng rng(seed, stream);
  for (int i = 0; i < replicates; ++i) {
    uint8_t* weights = weights_.data() + width * static_cast<size_t>(i);
    for (int k = 0; k < blocks; ++k) ++weights[rng.below(static_cast<uint64_t>(blocks))];
  }
}

std::span<const uint8_t> BlockDraws::weights(int replicate) const {
  const auto width = static_cast<size_t>(blocks_);
  return std::span(weights_).subspan(width * static_cast<size_t>(replicate), width);
}

std::vector<double> quantile_replicates(std::span<const BlockedValue> sorted, double q,
                                        const BlockDraws& draws) {
  PRONY_CHECK(!sorted.empty() && q >= 0 && q <= 1, "no values, or a quantile outside [0, 1]");
  const QuantileGrid grid(sorted, q, draws.blocks());
  std::vector<double> out;
  out.reserve(static_cast<size_t>(draws.replicates()));
  for (int i = 0; i < draws.replicates(); ++i) out.push_back(grid.quantile(q, draws.weights(i)));
  return out;
}

std::vector<double> ratio_replicates(std::span<const RatioBatch> batches, const BlockDraws& draws) {
  PRONY_CHECK(batches.size() == static_cast<size_t>(draws.blocks()), "batches are not the blocks");
  std::vector<double> out;
  out.reserve(static_cast<size_t>(draws.replicates()));
  for (int i = 0; i < draws.replicates(); ++i) {
    const auto weights = draws.weights(i);
    double numerator = 0, denominator = 0;
    for (size_t k = 0; k < batches.size(); ++k) {
      numerator += weights[k] * batches[k].numerator;
      denominator += weights[k] * batches[k].denominator;
    }
    out.push_back(denominator > 0 ? numerator / denominator : kNan);
  }
  return out;
}

int joining_level(std::span<const RatioBatch> batches) {
  const size_t left = decorrelated({batches.begin(), batches.end()}).size();
  int level = 0;
  for (size_t size = batches.size(); size > left; size = (size + 1) / 2) ++level;
  return level;
}

std::vector<RatioBatch> joined(std::span<const RatioBatch> batches, int level) {
  std::vector<RatioBatch> out;
  for (size_t i = 0; i < batches.size(); ++i) {
    if (i >> level == out.size()) out.emplace_back();
    out.back().numerator += batches[i].numerator;
    out.back().denominator += batches[i].denominator;
  }
  return out;
}

ReplicateLaw::ReplicateLaw(std::vector<double> replicates, double estimate, int blocks)
    : sorted_(std::move(replicates)), estimate_(estimate), blocks_(blocks) {
  const size_t drawn = sorted_.size();
  std::erase_if(sorted_, [](double x) { return !std::isfinite(x); });
  known_ = blocks >= kBlocksMin && std::isfinite(estimate) && sorted_.size() * 2 > drawn;
  if (!known_) return;
  std::sort(sorted_.begin(), sorted_.end());
  Moments moments;
  for (const double x : sorted_) moments.add(x);
  mean_ = *moments.mean();
  sd_ = moments.sd().value_or(0);
}

Interval ReplicateLaw::interval(double confidence) const {
  PRONY_CHECK(known_ && confidence > 0 && confidence < 1, "no law, or a confidence not in (0, 1)");
  const auto k = static_cast<double>(blocks_);
  const double widening = core::math::sqrt(k / (k - 1));
  const double t = widening * student_t_two_sided(confidence, k - 1);
  const double rank = core::normal_cdf(-t) * static_cast<double>(sorted_.size() + 1);
  if (rank < 5) return {estimate_ - t * sd_, estimate_ + t * sd_};
  const auto index = static_cast<size_t>(rank) - 1;
  return {sorted_[index], sorted_[sorted_.size() - 1 - index]};
}

double ReplicateLaw::p_value() const {
  PRONY_CHECK(known_, "no law");
  const auto n = static_cast<double>(sorted_.size());
  const auto range = std::equal_range(sorted_.begin(), sorted_.end(), 0.0);
  const auto below = static_cast<double>(range.first - sorted_.begin());
  const auto zero = static_cast<double>(range.second - range.first);
  const double share = (below + zero / 2 + 0.5) / (n + 1);
  double z = core::inverse_normal_cdf(std::min({share, 1 - share, 0.5}));
  // Beyond what the replicates can resolve: their spread.
  if ((below + zero == 0 || below == n) && sd_ > 0) z = std::min(z, -std::abs(mean_) / sd_);
  const auto k = static_cast<double>(blocks_);
  return std::min(1.0, 2 * student_t_cdf(z * core::math::sqrt((k - 1) / k), k - 1));
}

}  // namespace prony::stats
