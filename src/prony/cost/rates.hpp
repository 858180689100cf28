// What a deployment delivers, from a record's file, from numbers the user gives, or from both: a
// number given wins. Thread safety: pure functions, but for the read of the file.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/cost/model.hpp"

namespace prony::cost {

struct GivenRates {
  std::optional<int64_t> gpus;
  std::optional<double> input, output, total, goodput;  // tokens/s of all GPUs
  std::optional<double> requests;                       // requests/s of all GPUs
};

/// GPUs behind a record: its details' `gpus`, or the product of tp, pp and replicas where one of
/// them is there; nullopt where it says nothing.
std::optional<int64_t> gpus_of(const core::Json& details);

/// `record_path` may be empty. `source` becomes one line about where the rates are from, empty if
/// there are none. Error: kInvalidArgument for a rate that is not positive or an unknown number of
/// GPUs; else as record::read_record.
Result<Rates> rates_from(const GivenRates& given, const std::string& record_path,
                         std::string& source);

}  // namespace prony::cost
