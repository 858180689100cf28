#include "prony/fit/decay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/core/check.hpp"
#include "prony/stats/moments.hpp"
#include "prony/stats/student_t.hpp"

namespace prony::fit {

std::string_view decay_band(double alpha) {
  if (alpha < kLightDecay) return "light";
  return alpha > kHeavyDecay ? "heavy" : "medium";
}

Result<std::vector<DecayBand>> decay_bands(std::span<const std::string> loads,
                                           std::span<const double> base,
                                           std::span<const double> observed) {
  PRONY_CHECK(loads.size() == base.size() && base.size() == observed.size());
  std::vector<std::string> names;
  std::vector<stats::Moments> moments;
  for (size_t row = 0; row < loads.size(); ++row) {
    if (!(base[row] > 0) || !(observed[row] >= 0)) {
      return invalid_argument(fmt::format("row {}: base {} and observed {}, expected rates",
                                          row + 1, base[row], observed[row]));
    }
    const auto found = std::find(names.begin(), names.end(), loads[row]);
    const auto place = static_cast<size_t>(found - names.begin());
    if (found == names.end()) {
      names.push_back(loads[row]);
      moments.emplace_back();
    }
    moments[place].add(1 - observed[row] / base[row]);
  }
  std::vector<DecayBand> out;
  for (size_t i = 0; i < names.size(); ++i) {
    DecayBand band;
    band.load = names[i];
    band.n = moments[i].n();
    band.mean = *moments[i].mean();
    band.sd = moments[i].sd();
    band.band = decay_band(band.mean);
    if (band.sd) {
      const double n = static_cast<double>(band.n);
      const double half = stats::student_t_two_sided(0.95, n - 1) * *band.sd / std::sqrt(n);
      band.low95 = band.mean - half;
      band.high95 = band.mean + half;
      band.certain = decay_band(*band.low95) == band.band && decay_band(*band.high95) == band.band;
    }
    out.push_back(std::move(band));
  }
  return out;
}

std::optional<size_t> knee_by_rule(std::span<const double> throughput,
                                   std::span<const double> bandwidth_fraction) {
  PRONY_CHECK(throughput.size() == bandwidth_fraction.size());
  for (size_t i = 0; i + 1 < throughput.size(); ++i) {
    if (bandwidth_fraction[i + 1] > kKneeBandwidth &&
        throughput[i + 1] < (1 - kKneeFall) * throughput[i]) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace prony::fit
