// RunPair: the changes between two runs with rows, one a side, by block bootstrap (latencies and
// throughputs) and from intervals of shares (errors, goodput), and the rank tests of all requests.
// Thread safety: none; one thread a pair.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "prony/compare/change_law.hpp"
#include "prony/compare/run_data.hpp"
#include "prony/stats/rank_tests.hpp"

namespace prony::compare {

/// What one method found of a metric.
struct MetricChange {
  std::optional<double> baseline, candidate;
  std::optional<ChangeLaw> relative, difference;
  std::string method;   // or why nothing is known
  int64_t samples = 0;  // blocks
};

struct RedrawOptions {
  int replicates = 4999;
  uint64_t seed = 1;
};

class RunPair {
 public:
  /// The inputs must outlive it. `paired`: the same requests (same_requests()).
  RunPair(const RunInput& baseline, const RunData& baseline_data, const RunInput& candidate,
          const RunData& candidate_data, bool paired, const RedrawOptions& options);

  MetricChange change(const core::SloTerm& term);
  /// Wilcoxon's test if paired, else Mann and Whitney's; of latencies with one value a request.
  std::optional<stats::RankTest> rank_test(core::SloMetric metric, double confidence) const;

 private:
  struct Side {
    const RunInput& run;
    const RunData& data;
    int blocks = 0;                          // of requests, before joining
    std::map<int, stats::BlockDraws> draws;  // by number of blocks
    uint64_t stream = 0;
    int32_t block_of(size_t request) const;
    std::vector<stats::RatioBatch> mean_batches(core::SloMetric metric) const;
    std::vector<stats::BlockedValue> values(core::SloMetric metric) const;
    Share share(core::SloMetric metric) const;
  };
  struct Levels {
    int baseline = 0, candidate = 0;
  };
  using Batches = std::vector<stats::RatioBatch>;

  const stats::BlockDraws& draws(Side& side, int blocks);
  Levels levels(const Batches& baseline, const Batches& candidate, bool paired) const;
  void quantile_change(const core::SloTerm& term, double q, MetricChange& out);
  void ratio_change(const Batches& baseline, const Batches& candidate, bool paired,
                    MetricChange& out);
  void laws(const std::vector<double>& baseline, const std::vector<double>& candidate, int blocks_a,
            int blocks_b, MetricChange& out) const;

  Side baseline_, candidate_;
  bool paired_;
  RedrawOptions options_;
};

/// 0.5 for kP50, ...; nullopt for what is no percentile.
std::optional<double> quantile_of(core::SloStatistic statistic);

}  // namespace prony::compare
