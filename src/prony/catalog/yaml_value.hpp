// YamlValue: a YAML document of the catalogue as a plain tree with line numbers. yaml-cpp's own
// nodes keep the first of duplicate keys in silence, drop further documents and expand aliases
// without bound; this reader refuses all three and remembers which scalars were quoted.
// Thread safety: pure functions and values. Source: YAML 1.2, parsed by yaml-cpp.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::catalog {

struct YamlEntry;

struct YamlValue {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0;                    // counts from 1
  std::string text;                // of a scalar, without quotes
  bool quoted = false;             // a quoted scalar is text and never a number, boolean or null
  std::vector<YamlValue> items;    // of a list
  std::vector<YamlEntry> entries;  // of a map, in file order; keys are unique

  /// The entry of that key, or nullptr.
  const YamlEntry* find(std::string_view key) const;
};

struct YamlEntry {
  std::string key;
  int line = 0;
  YamlValue value;
};

/// One document whose top is a map. `name` is the file, for messages.
/// Error: kInvalidArgument, "NAME:LINE: what is wrong": syntax, duplicate key, key that is no
/// plain scalar, alias, merge key, tag, several documents, more than 16 levels, 1 MiB or 16,384
/// values.
Result<YamlValue> parse_yaml(std::string_view text, std::string_view name);

}  // namespace prony::catalog
