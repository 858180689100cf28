// Expressions of claims: + - * / ^, parentheses, min max abs sqrt ln exp, numbers and named inputs,
// evaluated with dimensions. A name may be known and missing: the claim does not give it.
// Thread safety: pure functions.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "prony/audit/quantity.hpp"
#include "prony/core/result.hpp"

namespace prony::audit {

/// A value, or the name of an input that the claim leaves out.
struct Value {
  std::optional<Quantity> quantity;
  std::string missing;
};

/// nullopt: no such name.
using Lookup = std::function<std::optional<Value>(std::string_view name)>;

/// Error: kInvalidArgument: syntax with its place, an unknown name, or dimensions that do not
/// agree ("cannot add B and B/s").
Result<Value> evaluate(std::string_view expression, const Lookup& lookup);

}  // namespace prony::audit
