#include "prony/core/json.hpp"

#include <fmt/format.h>

#include <cmath>

namespace prony::core {
namespace {

// Path of the first non-finite number below `json`, empty if there is none.
std::string find_not_finite(const Json& json, const std::string& path) {
  if (json.is_number_float() && !std::isfinite(json.get<double>())) return path;
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      if (auto found = find_not_finite(value, path + "/" + key); !found.empty()) return found;
    }
  } else if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) {
      auto found = find_not_finite(json[i], path + "/" + std::to_string(i));
      if (!found.empty()) return found;
    }
  }
  return {};
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view name) {
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    std::string_view reason = error.what();
    if (const auto colon = reason.find(": "); colon != std::string_view::npos) {
      reason.remove_prefix(colon + 2);
    }
    return invalid_argument(fmt::format("{}: not JSON at byte {}: {}", name, error.byte, reason));
  } catch (const nlohmann::json::exception& error) {  // numbers that no double holds: 1e999
    std::string_view reason = error.what();
    if (const auto colon = reason.find("] "); colon != std::string_view::npos) {
      reason.remove_prefix(colon + 2);
    }
    return invalid_argument(fmt::format("{}: {}", name, reason));
  }
}

Result<std::string> write_json(const Json& json, int indent) {
  if (const auto path = find_not_finite(json, ""); !path.empty()) {
    return failed(fmt::format("json: {} is not a finite number", path));
  }
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace prony::core
