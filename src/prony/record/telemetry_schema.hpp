// The record's section "telemetry": its JSON Schema, and what the schema cannot say. Written by
// telemetry, which this module does not know; definitions: docs/telemetry.md.
// Internal to record. Thread safety: pure functions.
#pragma once
#include <string_view>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"

namespace prony::record {

core::Json telemetry_schema();

/// `telemetry` has passed the schema. Error: kInvalidArgument, "NAME: /telemetry/...: ...": times
/// and values of a series of different length, times that fall, a mean outside min and max.
Result<void> check_telemetry(const core::Json& telemetry, std::string_view name);

}  // namespace prony::record
