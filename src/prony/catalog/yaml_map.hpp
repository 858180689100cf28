// YamlMap: typed, strict access to one map of a catalogue file, shared by the loaders of models,
// hardware, engines and prices. A getter never fails by itself: the first error of a file is kept
// in its YamlErrors and the getter returns a harmless value, so a loader reads as a list of fields
// and checks once at the end. Every key must be asked for: done() refuses the rest by name, which
// catches misspelt optional keys.
// Thread safety: none; one loader owns the objects.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/catalog/yaml_value.hpp"
#include "prony/core/result.hpp"

namespace prony::catalog {

/// The first error of one file.
class YamlErrors {
 public:
  explicit YamlErrors(std::string_view name) : name_(name) {}
  void add(int line, std::string_view what);
  bool empty() const { return !first_.has_value(); }
  /// Requires !empty().
  const Error& first() const { return *first_; }

 private:
  std::string name_;
  std::optional<Error> first_;
};

/// How a number came to be known.
enum class Origin { kDatasheet, kMeasured, kAssumed };

/// A unit as written in the file and the factor to the unit of the program.
struct Unit {
  std::string_view name;
  double factor;
};

/// A number with its unit and source: `{value: 3.35, unit: TB/s, origin: datasheet, ref: sheet}`.
struct Quantity {
  double value = 0;  // in the program's unit
  Origin origin = Origin::kAssumed;
  std::string ref;  // key of the file's `refs`
  int line = 0;
};

class YamlMap {
 public:
  /// `path` precedes field names in messages ("shape."); empty at the top.
  YamlMap(const YamlValue& value, std::string path, YamlErrors& errors);

  bool has(std::string_view key) const;

  // Required fields; absent is an error that names this map's line.
  int32_t integer(std::string_view key, int64_t min, int64_t max);
  double number(std::string_view key, double min, double max);
  std::string text(std::string_view key);
  /// Returns the index of the word in `words`, 0 on error.
  size_t word(std::string_view key, std::span<const std::string_view> words);
  YamlMap map(std::string_view key);
  std::vector<int32_t> integers(std::string_view key, int64_t min, int64_t max);
  /// `units` are the allowed ones. Requires value, unit, origin and ref; `ref` must be a key of
  /// `refs` (see read_refs).
  Quantity quantity(std::string_view key, std::span<const Unit> units, double min, double max,
                    const YamlMap& refs);
  /// A field `ref` that names a key of `refs`; returns the text behind it.
  std::string ref(const YamlMap& refs);
  /// Map of names to reference texts, all of them text; marks every key as used.
  YamlMap refs(std::string_view key);

  // Optional fields.
  bool flag(std::string_view key, bool fallback);
  std::optional<int32_t> maybe_integer(std::string_view key, int64_t min, int64_t max);
  std::optional<double> maybe_number(std::string_view key, double min, double max);
  std::optional<YamlMap> maybe_map(std::string_view key);

  /// The text of `key`, which must have been read as text before (by refs()), or nullptr.
  const std::string* find_text(std::string_view key) const;

  /// Refuses keys that nobody asked for.
  void done();
  int line() const { return value_->line; }

 private:
  const YamlEntry* need(std::string_view key);
  const YamlEntry* take(std::string_view key);
  void wrong(const YamlEntry& entry, std::string_view expected);
  std::optional<double> parse_number(const YamlEntry& entry, double min, double max);
  std::optional<int32_t> parse_integer(const YamlEntry& entry, const YamlValue& value, int64_t min,
                                       int64_t max);
  std::string parse_text(const YamlEntry& entry);

  const YamlValue* value_;  // not owned; an empty map if the field was wrong
  std::string path_;
  YamlErrors* errors_;
  std::vector<std::string_view> used_;
};

}  // namespace prony::catalog
