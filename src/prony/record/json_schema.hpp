// A checker for the part of JSON Schema that our schemas use, so that the published schema is the
// validator and the two cannot differ: type, enum, const, minimum, maximum, properties, required,
// additionalProperties (true, false or a schema), items, minItems, maxItems, $ref to #/$defs/NAME.
// Any other keyword but title, description, $schema, $id and $defs is a bug of ours (checked).
// Beyond the standard: a number that is not finite is refused everywhere, and so is a document
// nested deeper than kDepthMax.
// Source: JSON Schema draft 2020-12. Thread safety: pure functions.
#pragma once
#include <string_view>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"

namespace prony::record {

inline constexpr int kDepthMax = 64;

/// Error: kInvalidArgument, the first fault as "NAME: /path: found X, expected Y".
Result<void> check_schema(const core::Json& document, const core::Json& schema,
                          std::string_view name);

/// What was found, short, for messages: "null", "'text'", "12", "an object".
std::string describe(const core::Json& json);
/// `text` fit for a message of one line: control characters become '?', and what is longer than
/// `bytes_max` is cut before a whole character, with "..." behind.
std::string one_line(std::string_view text, size_t bytes_max = 40);

}  // namespace prony::record
