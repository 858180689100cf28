// Queueing formulas in closed form. Rates per second, times in seconds.
// Thread safety: pure functions.
// Source: Erlang 1917 (C formula), Pollaczek-Khinchine, Allen-Cunneen approximation for G/G/c.
#pragma once
#include <cstdint>
#include <optional>

namespace prony::perfmodel {

/// Probability that an arrival waits in M/M/c with offered load a = lambda/mu < c; 1 if a >= c.
double erlang_c(int32_t servers, double offered);

/// Mean wait in M/M/c; nullopt if it is not stable.
std::optional<double> mmc_wait(double arrival_rate, double service_rate, int32_t servers);

/// Quantile of the wait in M/M/c, 0 where fewer than 1 - p wait at all; nullopt if not stable.
std::optional<double> mmc_wait_quantile(double arrival_rate, double service_rate, int32_t servers,
                                        double p);

/// Mean wait in M/G/1 with mean service time s and squared coefficient of variation c2.
std::optional<double> mg1_wait(double arrival_rate, double service_s, double service_cv2);

/// Mean wait in G/G/c by Allen-Cunneen: M/M/c's times (arrival_cv2 + service_cv2) / 2.
std::optional<double> ggc_wait(double arrival_rate, double service_rate, int32_t servers,
                               double arrival_cv2, double service_cv2);

}  // namespace prony::perfmodel
