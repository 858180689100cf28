#include "prony/compare/run_pair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"
#include "prony/record/slo_verdict.hpp"

namespace prony::compare {
namespace {

using core::SloMetric;
using core::SloStatistic;
using stats::BlockedValue;
using stats::RatioBatch;

// Streams of their own: "comp" and the side.
constexpr uint64_t kStream = 0x636f6d7000;
// Windows that differ by more are not cut into the same slices.
constexpr double kSameWindow = 0.01;

int joined_size(size_t blocks, int level) {
  return static_cast<int>((blocks + (size_t{1} << level) - 1) >> level);
}

// The values of one side at or below a bound, and all of them, by block.
std::vector<RatioBatch> share_batches(std::span<const BlockedValue> values, double bound,
                                      int blocks) {
  std::vector<RatioBatch> out(static_cast<size_t>(blocks));
  for (const auto& one : values) {
    auto& batch = out[static_cast<size_t>(one.block)];
    batch.numerator += one.value <= bound;
    batch.denominator += 1;
  }
  return out;
}

void join_blocks(std::vector<BlockedValue>& values, int level) {
  for (auto& one : values) one.block >>= level;
}

void sort_by_value(std::vector<BlockedValue>& values) {
  std::sort(values.begin(), values.end(), [](const BlockedValue& a, const BlockedValue& b) {
    return a.value != b.value ? a.value < b.value : a.block < b.block;
  });
}

}  // namespace

std::optional<double> quantile_of(SloStatistic statistic) {
  switch (statistic) {
    case SloStatistic::kP50:
      return 0.5;
    case SloStatistic::kP75:
      return 0.75;
    case SloStatistic::kP90:
      return 0.9;
    case SloStatistic::kP95:
      return 0.95;
    case SloStatistic::kP99:
      return 0.99;
    case SloStatistic::kP999:
      return 0.999;
    case SloStatistic::kP9999:
      return 0.9999;
    default:
      return std::nullopt;
  }
}

RunPair::RunPair(const RunInput& baseline, const RunData& baseline_data, const RunInput& candidate,
                 const RunData& candidate_data, bool paired, const RedrawOptions& options)
    : baseline_{baseline, baseline_data, 0, {}, kStream},
      candidate_{candidate, candidate_data, 0, {}, paired ? kStream : kStream + 1},
      paired_(paired),
      options_(options) {
  for (auto* side : {&baseline_, &candidate_}) {
    side->blocks = static_cast<int>(
        std::min<size_t>(side->data.size(), static_cast<size_t>(stats::kBlocksMax)));
  }
  PRONY_CHECK(!paired || baseline_data.size() == candidate_data.size(), "requests without partner");
}

int32_t RunPair::Side::block_of(size_t request) const {
  return static_cast<int32_t>(request * static_cast<size_t>(blocks) / data.size());
}

std::vector<RatioBatch> RunPair::Side::mean_batches(SloMetric metric) const {
  const auto& column = data.latencies.at(metric);
  std::vector<RatioBatch> out(static_cast<size_t>(blocks));
  for (size_t i = 0; i < data.size(); ++i) {
    auto& batch = out[static_cast<size_t>(block_of(i))];
    for (const double ms : column.of(i)) {
      batch.numerator += ms;
      batch.denominator += 1;
    }
  }
  return out;
}

std::vector<BlockedValue> RunPair::Side::values(SloMetric metric) const {
  const auto& column = data.latencies.at(metric);
  std::vector<BlockedValue> out;
  out.reserve(column.values.size());
  for (size_t i = 0; i < data.size(); ++i) {
    const int32_t block = block_of(i);
    for (const double ms : column.of(i)) out.push_back({ms, block});
  }
  return out;
}

Share RunPair::Side::share(SloMetric metric) const {
  Share out;
  out.batches.resize(static_cast<size_t>(blocks));
  const auto& flags = metric == SloMetric::kErrorRate ? data.failed : data.good;
  for (size_t i = 0; i < data.size(); ++i) {
    auto& batch = out.batches[static_cast<size_t>(block_of(i))];
    batch.numerator += flags[i];
    batch.denominator += 1;
  }
  return out;
}

const stats::BlockDraws& RunPair::draws(Side& side, int blocks) {
  const auto found = side.draws.find(blocks);
  if (found != side.draws.end()) return found->second;
  return side.draws.try_emplace(blocks, blocks, options_.replicates, options_.seed, side.stream)
      .first->second;
}

RunPair::Levels RunPair::levels(const Batches& baseline, const Batches& candidate,
                                bool paired) const {
  Levels out{stats::joining_level(baseline), stats::joining_level(candidate)};
  if (paired) out.baseline = out.candidate = std::max(out.baseline, out.candidate);
  return out;
}

void RunPair::laws(const std::vector<double>& baseline, const std::vector<double>& candidate,
                   int blocks_a, int blocks_b, MetricChange& out) const {
  std::vector<double> ratios, differences;
  for (size_t i = 0; i < baseline.size(); ++i) {
    const double a = baseline[i], b = candidate[i];
    ratios.push_back(a > 0 && b > 0 ? core::math::log(b / a)
                                    : std::numeric_limits<double>::quiet_NaN());
    differences.push_back(b - a);
  }
  const int blocks = std::min(blocks_a, blocks_b);
  out.relative = relative_law(std::move(ratios), *out.baseline, *out.candidate, blocks);
  out.difference = difference_law(std::move(differences), *out.baseline, *out.candidate, blocks);
  out.samples = blocks_a + blocks_b;
  if (!out.difference) {
    out.method = fmt::format("too few requests: found {} blocks, expected {} or more", blocks,
                             stats::kBlocksMin);
  }
}

void RunPair::quantile_change(const core::SloTerm& term, double q, MetricChange& out) {
  auto a = baseline_.values(term.metric), b = candidate_.values(term.metric);
  const auto level = levels(share_batches(a, *out.baseline, baseline_.blocks),
                            share_batches(b, *out.candidate, candidate_.blocks), paired_);
  join_blocks(a, level.baseline);
  join_blocks(b, level.candidate);
  sort_by_value(a);
  sort_by_value(b);
  const int blocks_a = joined_size(static_cast<size_t>(baseline_.blocks), level.baseline);
  const int blocks_b = joined_size(static_cast<size_t>(candidate_.blocks), level.candidate);
  laws(stats::quantile_replicates(a, q, draws(baseline_, blocks_a)),
       stats::quantile_replicates(b, q, draws(candidate_, blocks_b)), blocks_a, blocks_b, out);
}

void RunPair::ratio_change(const Batches& baseline, const Batches& candidate, bool paired,
                           MetricChange& out) {
  const auto level = levels(baseline, candidate, paired);
  const auto a = stats::joined(baseline, level.baseline);
  const auto b = stats::joined(candidate, level.candidate);
  const auto blocks_a = static_cast<int>(a.size()), blocks_b = static_cast<int>(b.size());
  // Slices of two windows that are not alike need draws of their own, whatever the requests.
  std::optional<stats::BlockDraws> own;
  if (paired_ && !paired) {
    own.emplace(blocks_b, options_.replicates, options_.seed, kStream + 1);
  }
  laws(stats::ratio_replicates(a, draws(baseline_, blocks_a)),
       stats::ratio_replicates(b, own ? *own : draws(candidate_, blocks_b)), blocks_a, blocks_b,
       out);
}

MetricChange RunPair::change(const core::SloTerm& term) {
  MetricChange out;
  out.baseline = record::slo_value(term, baseline_.run.metrics);
  out.candidate = record::slo_value(term, candidate_.run.metrics);
  if (!out.baseline || !out.candidate) {
    out.method = "too few requests for this figure, or none";
    return out;
  }
  out.method = paired_ ? "paired block bootstrap" : "block bootstrap";
  switch (term.metric) {
    case SloMetric::kErrorRate:
    case SloMetric::kGoodputFraction: {
      if (term.metric == SloMetric::kGoodputFraction &&
          baseline_.run.metrics.goodput_slo != candidate_.run.metrics.goodput_slo) {
        out.method = "goodput by different bounds";
        return out;
      }
      const auto a = baseline_.share(term.metric), b = candidate_.share(term.metric);
      out.difference = share_law(a, b);
      out.method = "clustered Clopper-Pearson intervals";
      out.samples = static_cast<int64_t>(a.batches.size() + b.batches.size());
      return out;
    }
    case SloMetric::kRequestThroughput:
    case SloMetric::kOutputThroughput: {
      const double a = baseline_.data.window_s, b = candidate_.data.window_s;
      const bool aligned = paired_ && std::abs(b - a) <= kSameWindow * a;
      const bool requests = term.metric == SloMetric::kRequestThroughput;
      ratio_change(requests ? baseline_.data.completions : baseline_.data.tokens,
                   requests ? candidate_.data.completions : candidate_.data.tokens, aligned, out);
      return out;
    }
    default:
      break;
  }
  const bool gaps = term.metric == SloMetric::kItl || term.metric == SloMetric::kIcl;
  if (gaps && !(baseline_.data.has_events && candidate_.data.has_events)) {
    out.method = "rows without events (--save-detailed keeps them)";
    return out;
  }
  if (baseline_.data.latencies.at(term.metric).values.empty() ||
      candidate_.data.latencies.at(term.metric).values.empty()) {
    out.method = "rows without such values";
    return out;
  }
  if (term.statistic == SloStatistic::kMean) {
    ratio_change(baseline_.mean_batches(term.metric), candidate_.mean_batches(term.metric), paired_,
                 out);
  } else if (const auto q = quantile_of(term.statistic)) {
    quantile_change(term, *q, out);
  }
  return out;
}

std::optional<stats::RankTest> RunPair::rank_test(SloMetric metric, double confidence) const {
  if (!paired_) {
    return stats::rank_sum_test(baseline_.values(metric), candidate_.values(metric), confidence);
  }
  const auto& a = baseline_.data.latencies.at(metric);
  const auto& b = candidate_.data.latencies.at(metric);
  std::vector<BlockedValue> differences;
  for (size_t i = 0; i < baseline_.data.size(); ++i) {
    const auto of_a = a.of(i), of_b = b.of(i);
    if (of_a.size() != 1 || of_b.size() != 1) continue;  // one of the two failed
    differences.push_back({of_b.front() - of_a.front(), baseline_.block_of(i)});
  }
  return stats::signed_rank_test(differences, confidence);
}

}  // namespace prony::compare
