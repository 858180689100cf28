#include "prony/cost/inputs.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "prony/core/check.hpp"

namespace prony::cost {
namespace {

constexpr double kMoneyMax = 1e7, kWattsMax = 1e5;
constexpr std::array<FieldInfo, kFields> kTable = {{
    {Field::kCapexUsd, "capex_usd", "USD", 0, 0, kMoneyMax, "purchase of one GPU"},
    {Field::kHostUsd, "host_usd", "USD", 0, 0, kMoneyMax, "share of the host, per GPU"},
    {Field::kNetworkFraction, "network_fraction", "1", 0, 0, 10, "network, of GPU and host"},
    {Field::kResidualFraction, "residual_fraction", "1", 0, 0, 0.99, "worth at the end of life"},
    {Field::kLifeYears, "life_years", "year", 4, 0.01, 50, "economic life"},
    {Field::kInterestRate, "interest_rate", "1/year", 0, 0, 1, "cost of capital; 0: straight line"},
    {Field::kIdleW, "idle_w", "W", 0, 0, kWattsMax, "card at rest"},
    {Field::kTdpW, "tdp_w", "W", 0, 0, kWattsMax, "card at full load"},
    {Field::kHostW, "host_w", "W", 0, 0, kWattsMax, "host and network, per GPU"},
    {Field::kLoadFraction, "load_fraction", "1", 1, 0, 1, "place between idle and full power"},
    {Field::kPue, "pue", "1", 1, 1, 5, "facility power over IT power"},
    {Field::kTariffUsdPerKwh, "tariff_usd_per_kwh", "USD/kWh", 0, 0, 100, "electricity"},
    {Field::kColoUsdPerKwMonth, "colo_usd_per_kw_month", "USD/kW/month", 0, 0, 1e5,
     "colocation, per kW of full load"},
    {Field::kOperationsUsdYear, "operations_usd_year", "USD/year", 0, 0, kMoneyMax,
     "operations, per GPU"},
    {Field::kRentalUsdPerHour, "rental_usd_per_hour", "USD/h", 0, 0, 1e4, "price of a rented GPU"},
    {Field::kSpareFraction, "spare_fraction", "1", 0, 0, 10, "spares per GPU in service"},
    {Field::kUtilisation, "utilisation", "1", 1, 1e-6, 1, "hours used over hours paid"},
    {Field::kThroughputFactor, "throughput_factor", "1", 1, 1e-6, 1e6, "on the tokens/s given"},
}};

}  // namespace

const std::array<FieldInfo, kFields>& fields() {
  return kTable;
}

const FieldInfo& info(Field field) {
  return kTable[static_cast<size_t>(field)];
}

std::optional<Field> find_field(std::string_view name) {
  for (const auto& entry : kTable) {
    if (entry.name == name) return entry.field;
  }
  return std::nullopt;
}

Inputs::Inputs() : values{} {
  for (const auto& entry : kTable) (*this)[entry.field] = entry.fallback;
}

Result<void> check(const Inputs& inputs) {
  for (const auto& entry : kTable) {
    const double value = inputs[entry.field];
    if (!(value >= entry.min && value <= entry.max)) {
      return invalid_argument(fmt::format("{}: found {}, expected {} to {} {}", entry.name, value,
                                          entry.min, entry.max, entry.unit));
    }
  }
  if (inputs[Field::kIdleW] > inputs[Field::kTdpW]) {
    return invalid_argument(fmt::format("idle_w: found {}, expected at most tdp_w, {}",
                                        inputs[Field::kIdleW], inputs[Field::kTdpW]));
  }
  if (inputs.basis == Basis::kRented && inputs[Field::kRentalUsdPerHour] <= 0) {
    return invalid_argument("rental_usd_per_hour: found 0, expected a price for a rented GPU");
  }
  if (inputs.basis == Basis::kOwned && inputs[Field::kCapexUsd] <= 0) {
    return invalid_argument("capex_usd: found 0, expected a price for an owned GPU");
  }
  return {};
}

Result<Change> parse_change(std::string_view text) {
  const auto equals = text.find('=');
  const auto name = text.substr(0, equals);
  const auto field = find_field(name);
  if (equals == std::string_view::npos || !field) {
    std::string known;
    for (const auto& entry : kTable) known += fmt::format(" {}", entry.name);
    return invalid_argument(
        fmt::format("--what-if: found '{}', expected NAME=VALUE with one of{}", text, known));
  }
  Change out;
  out.field = *field;
  auto amount = text.substr(equals + 1);
  if (!amount.empty() && (amount.front() == '+' || amount.front() == '*')) {
    out.kind = amount.front() == '+' ? Change::Kind::kAdd : Change::Kind::kMultiply;
    amount.remove_prefix(1);
  } else if (!amount.empty() && amount.front() == '-') {
    out.kind = Change::Kind::kAdd;  // no input may be negative, so this is a decrease
  }
  const auto [end, code] =
      std::from_chars(amount.data(), amount.data() + amount.size(), out.amount);
  if (code != std::errc() || end != amount.data() + amount.size() || !std::isfinite(out.amount)) {
    return invalid_argument(fmt::format(
        "--what-if: found '{}', expected a number, +number, -number or *number after {}=", text,
        name));
  }
  return out;
}

Inputs apply(Inputs inputs, const Change& change) {
  double& value = inputs[change.field];
  switch (change.kind) {
    case Change::Kind::kSet:
      value = change.amount;
      break;
    case Change::Kind::kAdd:
      value += change.amount;
      break;
    case Change::Kind::kMultiply:
      value *= change.amount;
      break;
  }
  return inputs;
}

}  // namespace prony::cost
