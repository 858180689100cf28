#include "prony/perfmodel/queueing.hpp"

#include <algorithm>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"

namespace prony::perfmodel {

double erlang_c(int32_t servers, double offered) {
  PRONY_CHECK(servers >= 1 && offered >= 0, "servers >= 1 and offered load >= 0");
  if (offered >= servers) return 1;
  // Erlang B by its recursion, which never overflows, then C from B.
  double blocked = 1;
  for (int32_t n = 1; n <= servers; ++n) blocked = offered * blocked / (n + offered * blocked);
  const double use = offered / servers;
  return blocked / (1 - use * (1 - blocked));
}

std::optional<double> mmc_wait(double arrival_rate, double service_rate, int32_t servers) {
  const double spare = servers * service_rate - arrival_rate;
  if (spare <= 0) return std::nullopt;
  return erlang_c(servers, arrival_rate / service_rate) / spare;
}

std::optional<double> mmc_wait_quantile(double arrival_rate, double service_rate, int32_t servers,
                                        double p) {
  PRONY_CHECK(p > 0 && p < 1, "quantile between 0 and 1");
  const double spare = servers * service_rate - arrival_rate;
  if (spare <= 0) return std::nullopt;
  const double waits = erlang_c(servers, arrival_rate / service_rate);
  return waits <= 1 - p ? 0 : core::math::log(waits / (1 - p)) / spare;
}

std::optional<double> mg1_wait(double arrival_rate, double service_s, double service_cv2) {
  const double use = arrival_rate * service_s;
  if (use >= 1) return std::nullopt;
  return use * service_s * (1 + service_cv2) / (2 * (1 - use));
}

std::optional<double> ggc_wait(double arrival_rate, double service_rate, int32_t servers,
                               double arrival_cv2, double service_cv2) {
  const auto wait = mmc_wait(arrival_rate, service_rate, servers);
  if (!wait) return std::nullopt;
  return *wait * (arrival_cv2 + service_cv2) / 2;
}

}  // namespace prony::perfmodel
