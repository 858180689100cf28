// The money model: what an hour of a GPU costs, and from that a thousand tokens and the energy of
// one. Capital is an annuity: (P - R) r / (1 - (1 + r)^-n) + R r, with R the residual value.
// Every number is per GPU; rates of tokens are of the whole deployment of `gpus`.
// Thread safety: values and pure functions. Source: textbook annuity; power curve idle + (TDP -
// idle) * load, both times PUE.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "prony/cost/inputs.hpp"
#include "prony/record/metrics.hpp"

namespace prony::cost {

inline constexpr double kHoursPerYear = 8760, kHoursPerMonth = kHoursPerYear / 12;

/// Yearly payment that repays `price` less the residual value, interest included. rate >= 0.
double annuity(double price, double residual, double rate, double years);

/// Shares of one hour of one GPU in service [USD/h], before spares and idle hours.
struct Breakdown {
  double capital = 0, energy = 0, colocation = 0, operations = 0, rental = 0;
  double spares = 0;      // on everything above
  double idle_hours = 0;  // hours paid and not used
  double total = 0;       // sum of all of them: price of one hour of use
  double it_w = 0;        // average electric power, host included
  double facility_w = 0;  // it_w * PUE
};
/// Requires check(inputs).
Breakdown hourly(const Inputs& inputs);

/// What the deployment delivers; a rate that is not known stays empty, and so does its price.
struct Rates {
  int64_t gpus = 1;
  std::optional<double> input, output, total, goodput;  // tokens/s
  std::optional<double> requests;                       // requests/s
};
/// From a record's metrics. `input` is total less output.
Rates rates_of(const record::Metrics& metrics, int64_t gpus);

struct TokenCost {
  std::optional<double> usd_per_1k_input, usd_per_1k_output, usd_per_1k_total, usd_per_1k_goodput;
  std::optional<double> usd_per_1k_requests;
  std::optional<double> j_per_output, j_per_total;                    // IT energy
  std::optional<double> facility_j_per_output, facility_j_per_total;  // with PUE
};
TokenCost token_cost(const Inputs& inputs, const Rates& rates);

/// Effect of one input on the price of a token.
struct Sensitivity {
  Field field = Field::kCapexUsd;
  double value = 0;
  double derivative = 0;   // d(USD/h at constant throughput) / d(input), exact
  double elasticity = 0;   // % of price per % of input, exact
  double low_change = 0;   // relative change of price with input at (1 - step)
  double high_change = 0;  // and at (1 + step), both clipped to the input's range
};
/// Inputs that are zero or without effect are left out; widest first.
std::vector<Sensitivity> tornado(const Inputs& inputs, double step);

/// Relative change of the price of a token under `change`; the exact derivative beside it, times
/// the size of the change. Error: kInvalidArgument where the changed inputs fail check().
struct WhatIf {
  double before = 0, after = 0;  // USD per hour of use, over the throughput factor
  double relative = 0;           // after / before - 1
  double linear = 0;             // the same by the derivative alone
};
Result<WhatIf> what_if(const Inputs& inputs, const Change& change);

}  // namespace prony::cost
