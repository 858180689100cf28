// JsonFields: typed access to one object of a foreign JSON file (a Hugging Face config.json). Like
// YamlMap, a getter never fails: the first error is kept in the shared JsonErrors and a harmless
// value returned. Unlike the catalogue, unknown keys are allowed: a config.json has dozens that say
// nothing about the shape. null counts as absent, as transformers reads it.
// Thread safety: none; one loader owns the objects.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"

namespace prony::catalog {

class JsonErrors {
 public:
  explicit JsonErrors(std::string_view name) : name_(name) {}
  void add(std::string_view what);
  bool empty() const { return !first_.has_value(); }
  /// Requires !empty().
  const Error& first() const { return *first_; }

 private:
  std::string name_;
  std::optional<Error> first_;
};

class JsonFields {
 public:
  /// `json` must be an object and outlive this. `path` precedes names in messages.
  JsonFields(const core::Json& json, std::string path, JsonErrors& errors);

  bool has(const char* key) const { return find(key) != nullptr; }
  /// Given, but null. Where a class of transformers has a default that is not null, this and
  /// absence mean different things.
  bool is_null(const char* key) const;

  /// Required.
  int32_t integer(const char* key, int64_t min, int64_t max);
  double number(const char* key, double min, double max);

  std::optional<int32_t> maybe_integer(const char* key, int64_t min, int64_t max);
  std::optional<double> maybe_number(const char* key, double min, double max);
  int32_t integer_or(const char* key, int32_t fallback, int64_t min, int64_t max);
  double number_or(const char* key, double fallback, double min, double max);
  bool flag_or(const char* key, bool fallback);
  std::optional<std::string> maybe_text(const char* key);
  /// One number or a list of them (eos_token_id); empty if absent.
  std::vector<int32_t> integers(const char* key, int64_t min, int64_t max);
  /// A list of text; empty if absent.
  std::vector<std::string> texts(const char* key);
  std::optional<JsonFields> maybe_object(const char* key);

  /// The value as JSON text for a message, cut at 40 characters.
  std::string shown(const char* key) const;
  /// Reports "PATHkey is VALUE, expected EXPECTED".
  void wrong(const char* key, std::string_view expected);

 private:
  const core::Json* find(const char* key) const;

  const core::Json* json_;
  std::string path_;
  JsonErrors* errors_;
};

}  // namespace prony::catalog
