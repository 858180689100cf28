// Json: the document type of records, requests and reports (keys keep their order), with parsing
// that returns an Error and writing that refuses NaN and infinity, which JSON has no word for.
// Thread safety: as nlohmann::json. Not for the token path: SSE events go through simdjson.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "prony/core/result.hpp"

namespace prony::core {

using Json = nlohmann::ordered_json;

/// Error: kInvalidArgument, "NAME: not JSON at byte N: reason". `name` is the file or flag.
Result<Json> parse_json(std::string_view text, std::string_view name);

/// One line (`indent` < 0) or pretty. Error: kFailed, naming the path of the first number that is
/// not finite. Invalid UTF-8 becomes U+FFFD.
Result<std::string> write_json(const Json& json, int indent = -1);

}  // namespace prony::core
