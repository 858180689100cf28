// Helpers to read the typed objects of a tokenizer.json: {"type": "Split", ...}. Thread safety:
// pure functions.
#pragma once
#include <string>
#include <string_view>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/token/regex.hpp"

namespace prony::token {

/// The object's "type", or "" where there is none.
std::string type_of(const core::Json& json);
/// A string member, or `fallback`.
std::string text_or(const core::Json& json, const char* key, std::string_view fallback);
bool flag_or(const core::Json& json, const char* key, bool fallback);
int64_t integer_or(const core::Json& json, const char* key, int64_t fallback);

/// {"String": ".."} matches literally, {"Regex": ".."} as a pattern; the two are not the same even
/// where the text looks like a pattern. Error: kInvalidArgument.
Result<Regex> read_pattern(const core::Json& json, std::string_view name);

}  // namespace prony::token
