#include "prony/stats/bootstrap.hpp"

#include <algorithm>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/core/rng.hpp"

namespace prony::stats {

std::optional<Interval> bootstrap_ratio(std::span<const RatioBatch> batches,
                                        const BootstrapOptions& options) {
  PRONY_CHECK(options.replicates > 0 && options.confidence > 0 && options.confidence < 1,
              "no replicates, or a confidence not in (0, 1)");
  if (batches.size() < kBatchesMin) return std::nullopt;
  const auto whole = ratio_estimate(batches);
  if (!whole) return std::nullopt;
  if (!(whole->standard_error > 0)) return Interval{whole->ratio, whole->ratio};
  core::Rng rng(options.seed, 0x626f6f74);  // a stream of its own: "boot"
  std::vector<RatioBatch> drawn(batches.size());
  std::vector<double> deviations;
  deviations.reserve(static_cast<size_t>(options.replicates));
  for (int i = 0; i < options.replicates; ++i) {
    for (auto& batch : drawn) batch = batches[rng.below(batches.size())];
    const auto estimate = ratio_estimate(drawn);
    // A redraw of equal batches has no spread to measure its deviation by.
    if (!estimate || !(estimate->standard_error > 0)) continue;
    deviations.push_back((estimate->ratio - whole->ratio) / estimate->standard_error);
  }
  if (deviations.size() < static_cast<size_t>(options.replicates) / 2) return std::nullopt;
  std::sort(deviations.begin(), deviations.end());
  // Of 999 redraws the 25th from either end: (replicates + 1) * tail.
  const double tail = (1 - options.confidence) / 2;
  const auto rank =
      static_cast<size_t>(std::max(1.0, tail * static_cast<double>(deviations.size() + 1) + 1e-9));
  const double low = deviations[rank - 1], high = deviations[deviations.size() - rank];
  return Interval{whole->ratio - high * whole->standard_error,
                  whole->ratio - low * whole->standard_error};
}

}  // namespace prony::stats
