#include "prony/stats/holm.hpp"

#include <algorithm>
#include <numeric>

namespace prony::stats {

std::vector<double> holm_adjusted(std::span<const double> p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> out(p_values.size());
  double most = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto left = static_cast<double>(order.size() - i);
    most = std::max(most, std::min(1.0, left * p_values[order[i]]));
    out[order[i]] = most;
  }
  return out;
}

}  // namespace prony::stats
