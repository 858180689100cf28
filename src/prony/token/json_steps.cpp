#include "prony/token/json_steps.hpp"

#include <fmt/format.h>

#include <cctype>

namespace prony::token {

using core::Json;

std::string type_of(const Json& json) {
  return text_or(json, "type", "");
}

std::string text_or(const Json& json, const char* key, std::string_view fallback) {
  if (!json.is_object()) return std::string(fallback);
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? at->get<std::string>() : std::string(fallback);
}

bool flag_or(const Json& json, const char* key, bool fallback) {
  if (!json.is_object()) return fallback;
  const auto at = json.find(key);
  return at != json.end() && at->is_boolean() ? at->get<bool>() : fallback;
}

int64_t integer_or(const Json& json, const char* key, int64_t fallback) {
  if (!json.is_object()) return fallback;
  const auto at = json.find(key);
  return at != json.end() && at->is_number_integer() ? at->get<int64_t>() : fallback;
}

Result<Regex> read_pattern(const Json& json, std::string_view name) {
  const Json empty;
  const Json& pattern = json.is_object() && json.contains("pattern") ? json["pattern"] : empty;
  if (pattern.is_object() && pattern.contains("Regex") && pattern["Regex"].is_string()) {
    return Regex::compile(pattern["Regex"].get<std::string>(), name);
  }
  if (pattern.is_object() && pattern.contains("String") && pattern["String"].is_string()) {
    std::string literal;
    for (const char c : pattern["String"].get<std::string>()) {
      // Bytes beyond ASCII never mean anything to the pattern language.
      if (static_cast<unsigned char>(c) < 0x80 &&
          std::isalnum(static_cast<unsigned char>(c)) == 0) {
        literal += '\\';
      }
      literal += c;
    }
    return Regex::compile(literal, name);
  }
  return invalid_argument(
      fmt::format("{}: {} has no pattern, expected a Regex or a String", name, type_of(json)));
}

}  // namespace prony::token
