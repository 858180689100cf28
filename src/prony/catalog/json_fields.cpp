#include "prony/catalog/json_fields.hpp"

#include <fmt/format.h>

#include <cmath>

namespace prony::catalog {
namespace {

constexpr size_t kShownMax = 40;

std::optional<int32_t> whole(const core::Json& value, int64_t min, int64_t max) {
  if (!value.is_number_integer()) return std::nullopt;
  // Above 2^63 the parser keeps an unsigned number, which get<int64_t> would wrap.
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return std::nullopt;
  }
  const int64_t number = value.get<int64_t>();
  if (number < min || number > max) return std::nullopt;
  return static_cast<int32_t>(number);
}

}  // namespace

void JsonErrors::add(std::string_view what) {
  if (first_) return;
  first_ = invalid_argument(fmt::format("{}: {}", name_, what));
}

JsonFields::JsonFields(const core::Json& json, std::string path, JsonErrors& errors)
    : json_(&json), path_(std::move(path)), errors_(&errors) {}

const core::Json* JsonFields::find(const char* key) const {
  const auto found = json_->find(key);
  if (found == json_->end() || found->is_null()) return nullptr;
  return &*found;
}

bool JsonFields::is_null(const char* key) const {
  const auto found = json_->find(key);
  return found != json_->end() && found->is_null();
}

std::string JsonFields::shown(const char* key) const {
  const core::Json* value = find(key);
  if (value == nullptr) return "missing";
  std::string text = value->dump(-1, ' ', true, core::Json::error_handler_t::replace);
  if (text.size() > kShownMax) text = text.substr(0, kShownMax) + "...";
  return text;
}

void JsonFields::wrong(const char* key, std::string_view expected) {
  errors_->add(fmt::format("{}{} is {}, expected {}", path_, key, shown(key), expected));
}

std::optional<int32_t> JsonFields::maybe_integer(const char* key, int64_t min, int64_t max) {
  const core::Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = whole(*value, min, max);
  if (!number) wrong(key, fmt::format("a whole number from {} to {}", min, max));
  return number;
}

std::optional<double> JsonFields::maybe_number(const char* key, double min, double max) {
  const core::Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const double number = value->get<double>();
    if (number >= min && number <= max) return number;
  }
  wrong(key, fmt::format("a number from {} to {}", min, max));
  return std::nullopt;
}

int32_t JsonFields::integer(const char* key, int64_t min, int64_t max) {
  if (!has(key)) {
    errors_->add(fmt::format("{}{} is missing", path_, key));
    return static_cast<int32_t>(min);
  }
  return maybe_integer(key, min, max).value_or(static_cast<int32_t>(min));
}

double JsonFields::number(const char* key, double min, double max) {
  if (!has(key)) {
    errors_->add(fmt::format("{}{} is missing", path_, key));
    return min;
  }
  return maybe_number(key, min, max).value_or(min);
}

int32_t JsonFields::integer_or(const char* key, int32_t fallback, int64_t min, int64_t max) {
  return has(key) ? maybe_integer(key, min, max).value_or(fallback) : fallback;
}

double JsonFields::number_or(const char* key, double fallback, double min, double max) {
  return has(key) ? maybe_number(key, min, max).value_or(fallback) : fallback;
}

bool JsonFields::flag_or(const char* key, bool fallback) {
  const core::Json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  wrong(key, "true or false");
  return fallback;
}

std::optional<std::string> JsonFields::maybe_text(const char* key) {
  const core::Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  wrong(key, "text");
  return std::nullopt;
}

std::vector<int32_t> JsonFields::integers(const char* key, int64_t min, int64_t max) {
  std::vector<int32_t> numbers;
  const core::Json* value = find(key);
  if (value == nullptr) return numbers;
  if (!value->is_array()) {
    if (const auto number = maybe_integer(key, min, max)) numbers.push_back(*number);
    return numbers;
  }
  for (const core::Json& item : *value) {
    const auto number = whole(item, min, max);
    if (!number) {
      wrong(key, fmt::format("whole numbers from {} to {}", min, max));
      return {};
    }
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<std::string> JsonFields::texts(const char* key) {
  std::vector<std::string> texts;
  const core::Json* value = find(key);
  if (value == nullptr) return texts;
  if (!value->is_array()) {
    wrong(key, "a list of text");
    return texts;
  }
  for (const core::Json& item : *value) {
    if (!item.is_string()) {
      wrong(key, "a list of text");
      return {};
    }
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

std::optional<JsonFields> JsonFields::maybe_object(const char* key) {
  const core::Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) {
    wrong(key, "an object");
    return std::nullopt;
  }
  return JsonFields(*value, fmt::format("{}{}.", path_, key), *errors_);
}

}  // namespace prony::catalog
