#include "prony/cost/model.hpp"

#include <algorithm>
#include <cmath>

#include "prony/cost/dual.hpp"

namespace prony::cost {
namespace {

// r / (1 - (1 + r)^-n); below 1e-6 by its series in r, which has no 0/0.
template <class T>
T annuity_factor(T rate, T years) {
  if (value_of(rate) < 1e-6) {
    const T growth = rate * (years + T(1)) / T(2);
    return (T(1) + growth + rate * rate * (years * years - T(1)) / T(12)) / years;
  }
  return T(0) - rate / expm1(T(0) - years * log1p(rate));
}

template <class T>
struct Parts {
  T capital, energy, colocation, operations, rental, spares, idle_hours, total, it_w, facility_w;
};

template <class T>
Parts<T> evaluate(Basis basis, const Values<T>& values) {
  const auto at = [&values](Field field) { return values[static_cast<size_t>(field)]; };
  Parts<T> out{};
  const T price =
      (at(Field::kCapexUsd) + at(Field::kHostUsd)) * (T(1) + at(Field::kNetworkFraction));
  const T residual = price * at(Field::kResidualFraction);
  const T rate = at(Field::kInterestRate);
  out.it_w = at(Field::kIdleW) + (at(Field::kTdpW) - at(Field::kIdleW)) * at(Field::kLoadFraction) +
             at(Field::kHostW);
  out.facility_w = out.it_w * at(Field::kPue);
  out.operations = at(Field::kOperationsUsdYear) / T(kHoursPerYear);
  if (basis == Basis::kOwned) {
    out.capital =
        ((price - residual) * annuity_factor(rate, at(Field::kLifeYears)) + residual * rate) /
        T(kHoursPerYear);
    out.energy = out.facility_w / T(1000) * at(Field::kTariffUsdPerKwh);
    out.colocation = (at(Field::kTdpW) + at(Field::kHostW)) / T(1000) *
                     at(Field::kColoUsdPerKwMonth) / T(kHoursPerMonth);
  } else {
    out.rental = at(Field::kRentalUsdPerHour);
  }
  const T sum = out.capital + out.energy + out.colocation + out.operations + out.rental;
  out.spares = sum * at(Field::kSpareFraction);
  out.total = (sum + out.spares) / at(Field::kUtilisation);
  out.idle_hours = out.total - sum - out.spares;
  return out;
}

// Price of a fixed amount of tokens, up to a constant factor.
template <class T>
T price(Basis basis, const Values<T>& values) {
  return evaluate(basis, values).total / values[static_cast<size_t>(Field::kThroughputFactor)];
}

double slope_by(const Inputs& inputs, Field field) {
  Values<Dual> values;
  for (size_t i = 0; i < kFields; ++i) values[i] = Dual(inputs.values[i]);
  values[static_cast<size_t>(field)].slope = 1;
  return price(inputs.basis, values).slope;
}

double changed_price(const Inputs& inputs, Field field, double value) {
  Inputs changed = inputs;
  const auto& range = info(field);
  changed[field] = std::clamp(value, range.min, range.max);
  return price(inputs.basis, changed.values);
}

std::optional<double> over(double amount, const std::optional<double>& rate) {
  return rate && *rate > 0 ? std::optional(amount / *rate) : std::nullopt;
}

}  // namespace

double annuity(double price, double residual, double rate, double years) {
  return (price - residual) * annuity_factor(rate, years) + residual * rate;
}

Breakdown hourly(const Inputs& inputs) {
  const auto parts = evaluate(inputs.basis, inputs.values);
  Breakdown out;
  out.capital = parts.capital;
  out.energy = parts.energy;
  out.colocation = parts.colocation;
  out.operations = parts.operations;
  out.rental = parts.rental;
  out.spares = parts.spares;
  out.idle_hours = parts.idle_hours;
  out.total = parts.total;
  out.it_w = parts.it_w;
  out.facility_w = parts.facility_w;
  return out;
}

Rates rates_of(const record::Metrics& metrics, int64_t gpus) {
  Rates out;
  out.gpus = gpus;
  out.output = metrics.output_throughput;
  out.total = metrics.total_throughput;
  out.goodput = metrics.goodput_output_throughput;
  out.requests = metrics.request_throughput;
  if (out.total && out.output && *out.total > *out.output) out.input = *out.total - *out.output;
  return out;
}

TokenCost token_cost(const Inputs& inputs, const Rates& rates) {
  const auto hour = hourly(inputs);
  const double factor = inputs[Field::kThroughputFactor];
  const double gpus = static_cast<double>(rates.gpus);
  const double usd_per_1k = hour.total * gpus * 1000 / 3600 / factor;
  const double watts = hour.it_w * gpus / factor, facility = hour.facility_w * gpus / factor;
  TokenCost out;
  out.usd_per_1k_input = over(usd_per_1k, rates.input);
  out.usd_per_1k_output = over(usd_per_1k, rates.output);
  out.usd_per_1k_total = over(usd_per_1k, rates.total);
  out.usd_per_1k_goodput = over(usd_per_1k, rates.goodput);
  out.usd_per_1k_requests = over(usd_per_1k, rates.requests);
  if (hour.it_w > 0) {
    out.j_per_output = over(watts, rates.output);
    out.j_per_total = over(watts, rates.total);
    out.facility_j_per_output = over(facility, rates.output);
    out.facility_j_per_total = over(facility, rates.total);
  }
  return out;
}

std::vector<Sensitivity> tornado(const Inputs& inputs, double step) {
  const double base = price(inputs.basis, inputs.values);
  std::vector<Sensitivity> out;
  for (const auto& entry : fields()) {
    Sensitivity bar;
    bar.field = entry.field;
    bar.value = inputs[entry.field];
    bar.derivative = slope_by(inputs, entry.field);
    if (bar.value == 0 || bar.derivative == 0) continue;
    bar.elasticity = bar.derivative * bar.value / base;
    bar.low_change = changed_price(inputs, entry.field, bar.value * (1 - step)) / base - 1;
    bar.high_change = changed_price(inputs, entry.field, bar.value * (1 + step)) / base - 1;
    out.push_back(bar);
  }
  const auto width = [](const Sensitivity& bar) {
    return std::max(std::abs(bar.low_change), std::abs(bar.high_change));
  };
  std::stable_sort(out.begin(), out.end(), [&width](const Sensitivity& a, const Sensitivity& b) {
    return width(a) > width(b);
  });
  return out;
}

Result<WhatIf> what_if(const Inputs& inputs, const Change& change) {
  const Inputs changed = apply(inputs, change);
  if (auto checked = check(changed); !checked) return checked.error();
  WhatIf out;
  out.before = price(inputs.basis, inputs.values);
  out.after = price(changed.basis, changed.values);
  out.relative = out.after / out.before - 1;
  out.linear =
      slope_by(inputs, change.field) * (changed[change.field] - inputs[change.field]) / out.before;
  return out;
}

}  // namespace prony::cost
