#include "prony/record/json_schema.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "prony/core/check.hpp"

namespace prony::record {
namespace {

using core::Json;

// 3.0 is an integer, in JSON Schema and after any JavaScript program has rewritten the file.
bool is_whole(const Json& json) {
  if (json.is_number_integer()) return true;
  if (!json.is_number_float()) return false;
  const double value = json.get<double>();
  return std::floor(value) == value && std::fabs(value) <= 9007199254740992.0;
}

bool has_type(const Json& json, std::string_view type) {
  if (type == "null") return json.is_null();
  if (type == "boolean") return json.is_boolean();
  if (type == "string") return json.is_string();
  if (type == "object") return json.is_object();
  if (type == "array") return json.is_array();
  if (type == "number") return json.is_number();
  PRONY_CHECK(type == "integer", "unknown type in a schema");
  return is_whole(json);
}

std::string_view spoken(std::string_view type) {
  if (type == "null") return "null";
  if (type == "boolean") return "true or false";
  if (type == "string") return "a string";
  if (type == "object") return "an object";
  if (type == "array") return "an array";
  return type == "number" ? "a number" : "a whole number";
}

class Checker {
 public:
  Checker(const Json& root, std::string_view name) : root_(root), name_(name) {}

  Result<void> check(const Json& document, const Json& schema, const std::string& path, int depth) {
    if (depth > kDepthMax) return error(path, fmt::format("nested deeper than {}", kDepthMax));
    if (document.is_number_float() && !std::isfinite(document.get<double>())) {
      return error(path, fmt::format("found {}, expected a finite number", document.get<double>()));
    }
    const Json* rules = &schema;
    while (rules->is_object() && rules->contains("$ref")) rules = &resolve(rules->at("$ref"));
    if (rules->is_boolean()) {
      if (!rules->get<bool>()) return error(path, "unknown key");
      return check_children(document, nullptr, path, depth);
    }
    for (const auto& [keyword, value] : rules->items()) {
      if (auto result = check_keyword(document, keyword, value, path); !result) return result;
    }
    return check_children(document, rules, path, depth);
  }

 private:
  Error error(const std::string& path, std::string_view reason) const {
    return invalid_argument(fmt::format("{}: {}: {}", name_, path.empty() ? "/" : path, reason));
  }

  const Json& resolve(const Json& reference) const {
    const auto text = reference.get<std::string>();
    constexpr std::string_view kPrefix = "#/$defs/";
    PRONY_CHECK(text.starts_with(kPrefix), "unsupported $ref in a schema");
    return root_.at("$defs").at(text.substr(kPrefix.size()));
  }

  Result<void> check_type(const Json& document, const Json& types, const std::string& path) const {
    std::string expected;
    const auto matches = [&](const Json& type) {
      const auto& name = type.get_ref<const std::string&>();
      expected += fmt::format("{}{}", expected.empty() ? "" : " or ", spoken(name));
      return has_type(document, name);
    };
    if (types.is_string()) {
      if (matches(types)) return {};
    } else {
      for (const auto& type : types) {
        if (matches(type)) return {};
      }
    }
    return error(path, fmt::format("found {}, expected {}", describe(document), expected));
  }

  Result<void> check_choice(const Json& document, const Json& choices,
                            const std::string& path) const {
    std::string expected;
    for (const auto& choice : choices) {
      if (choice == document) return {};
      expected += (expected.empty() ? "" : ", ") + describe(choice);
    }
    return error(path, fmt::format("found {}, expected {}{}", describe(document),
                                   choices.size() > 1 ? "one of " : "", expected));
  }

  Result<void> check_keyword(const Json& document, const std::string& keyword, const Json& value,
                             const std::string& path) const {
    if (keyword == "type") return check_type(document, value, path);
    if (keyword == "enum") return check_choice(document, value, path);
    if (keyword == "const") return check_choice(document, Json::array({value}), path);
    if (keyword == "minimum" || keyword == "maximum") {
      const bool low = keyword == "minimum";
      if (!document.is_number() || (low ? document >= value : document <= value)) return {};
      return error(path, fmt::format("found {}, expected at {} {}", describe(document),
                                     low ? "least" : "most", value.dump()));
    }
    if (keyword == "minItems" || keyword == "maxItems") {
      const bool low = keyword == "minItems";
      const auto bound = value.get<size_t>();
      if (!document.is_array() || (low ? document.size() >= bound : document.size() <= bound)) {
        return {};
      }
      return error(path, fmt::format("found {} elements, expected at {} {}", document.size(),
                                     low ? "least" : "most", bound));
    }
    if (keyword == "required") {
      if (!document.is_object()) return {};
      for (const auto& key : value) {
        if (!document.contains(key.get_ref<const std::string&>())) {
          return error(path + "/" + key.get<std::string>(), "missing");
        }
      }
      return {};
    }
    PRONY_CHECK(keyword == "properties" || keyword == "additionalProperties" ||
                    keyword == "items" || keyword == "title" || keyword == "description" ||
                    keyword == "$schema" || keyword == "$id" || keyword == "$defs",
                "unsupported keyword in a schema");
    return {};
  }

  // `rules` null: anything goes below, as long as its numbers are finite.
  Result<void> check_children(const Json& document, const Json* rules, const std::string& path,
                              int depth) {
    const auto rule = [&](const char* keyword) -> const Json* {
      return rules != nullptr && rules->contains(keyword) ? &rules->at(keyword) : nullptr;
    };
    if (document.is_array()) {
      const Json* items = rule("items");
      for (size_t i = 0; i < document.size(); ++i) {
        auto result = check(document[i], items != nullptr ? *items : kAnything,
                            fmt::format("{}/{}", path, i), depth + 1);
        if (!result) return result;
      }
    } else if (document.is_object()) {
      const Json* properties = rule("properties");
      const Json* others = rule("additionalProperties");
      for (const auto& [key, value] : document.items()) {
        const Json* own =
            properties != nullptr && properties->contains(key) ? &properties->at(key) : others;
        auto result =
            check(value, own != nullptr ? *own : kAnything, path + "/" + one_line(key), depth + 1);
        if (!result) return result;
      }
    }
    return {};
  }

  const Json kAnything = true;
  const Json& root_;
  std::string_view name_;
};

}  // namespace

std::string one_line(std::string_view text, size_t bytes_max) {
  const bool cut = text.size() > bytes_max;
  if (cut) {
    while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xc0) == 0x80) {
      --bytes_max;  // inside a UTF-8 character
    }
    text = text.substr(0, bytes_max);
  }
  std::string out(text);
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return cut ? out + "..." : out;
}

std::string describe(const Json& json) {
  if (json.is_object()) return "an object";
  if (json.is_array()) return "an array";
  if (json.is_number_float()) return fmt::format("{}", json.get<double>());
  if (!json.is_string()) return json.dump();
  return "'" + one_line(json.get_ref<const std::string&>()) + "'";
}

Result<void> check_schema(const Json& document, const Json& schema, std::string_view name) {
  return Checker(schema, name).check(document, schema, "", 0);
}

}  // namespace prony::record
