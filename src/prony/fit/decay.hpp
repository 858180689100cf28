// Decay bands: how much of its peak a system loses under a named background load, alpha = 1 -
// observed / base, as mean and spread per load, and the band it falls into.
// Thread safety: values and pure functions. Source: E8's definition; bands light < 0.15, medium,
// heavy > 0.4.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::fit {

inline constexpr double kLightDecay = 0.15, kHeavyDecay = 0.4;

struct DecayBand {
  std::string load;
  int64_t n = 0;
  double mean = 0;                      // of alpha
  std::optional<double> sd;             // nullopt for one sample
  std::optional<double> low95, high95;  // of the mean, by Student's t
  std::string_view band;                // "light", "medium", "heavy"
  /// False where the interval of the mean reaches into another band, or there is none.
  bool certain = false;
};

std::string_view decay_band(double alpha);

/// One entry a load, in order of first appearance. Error: kInvalidArgument for rates that are not
/// positive.
Result<std::vector<DecayBand>> decay_bands(std::span<const std::string> loads,
                                           std::span<const double> base,
                                           std::span<const double> observed);

/// E27's rule on a sweep sorted by its input: the first step after which throughput falls by more
/// than 15 % while the memory bandwidth was used beyond 92 %. Index of the last good row.
inline constexpr double kKneeFall = 0.15, kKneeBandwidth = 0.92;
/// Both spans are of one length (checked).
std::optional<size_t> knee_by_rule(std::span<const double> throughput,
                                   std::span<const double> bandwidth_fraction);

}  // namespace prony::fit
