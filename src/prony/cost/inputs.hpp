// Inputs: what an hour of one GPU is made of, as named numbers with unit and range. The same names
// are keys of the price books, flags of the command and bars of the tornado.
// Thread safety: values and pure functions.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "prony/core/result.hpp"

namespace prony::cost {

enum class Basis {
  kOwned,   // capital, energy, colocation and operations are the user's
  kRented,  // a price an hour covers capital, energy and colocation
};

enum class Field : size_t {
  kCapexUsd,           // one GPU with its share of the node as far as it is not in kHostUsd
  kHostUsd,            // share of the host
  kNetworkFraction,    // switches and cables, of capex + host
  kResidualFraction,   // of the purchase, recovered at the end of the life
  kLifeYears,          //
  kInterestRate,       // a year; 0 is straight-line depreciation
  kIdleW,              // card at rest
  kTdpW,               // card at full load
  kHostW,              // host and network, per GPU
  kLoadFraction,       // place on the power curve between idle and full load
  kPue,                // facility power / IT power
  kTariffUsdPerKwh,    //
  kColoUsdPerKwMonth,  // per kW of full load
  kOperationsUsdYear,  // staff, support and maintenance, per GPU
  kRentalUsdPerHour,   // rented only
  kSpareFraction,      // spares kept per GPU in service
  kUtilisation,        // hours sold / hours paid
  kThroughputFactor,   // on the tokens/s given; 1. The tornado's bar for speed
};
inline constexpr size_t kFields = static_cast<size_t>(Field::kThroughputFactor) + 1;

struct FieldInfo {
  Field field;
  std::string_view name;  // snake case, key of a price book; as a flag with dashes
  std::string_view unit;
  double fallback, min, max;
  std::string_view help;
};
const std::array<FieldInfo, kFields>& fields();
const FieldInfo& info(Field field);
std::optional<Field> find_field(std::string_view name);

template <class T>
using Values = std::array<T, kFields>;

struct Inputs {
  Basis basis = Basis::kOwned;
  Values<double> values;

  Inputs();  // every field at its fallback
  double& operator[](Field field) { return values[static_cast<size_t>(field)]; }
  double operator[](Field field) const { return values[static_cast<size_t>(field)]; }
};

/// Error: kInvalidArgument, naming the field, what was found and its range.
Result<void> check(const Inputs& inputs);

/// A change of one input: "tariff_usd_per_kwh=+0.01", "life_years=2", "throughput_factor=*0.85".
struct Change {
  Field field = Field::kCapexUsd;
  enum class Kind { kSet, kAdd, kMultiply } kind = Kind::kSet;
  double amount = 0;
};
/// Error: kInvalidArgument for an unknown name or no number.
Result<Change> parse_change(std::string_view text);
Inputs apply(Inputs inputs, const Change& change);

}  // namespace prony::cost
