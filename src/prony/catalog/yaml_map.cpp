#include "prony/catalog/yaml_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace prony::catalog {
namespace {

using Kind = YamlValue::Kind;

// What stands in for a map that is missing or no map, so that reading can go on.
const YamlValue kEmptyMap{
    .kind = Kind::kMap, .line = 0, .text = {}, .quoted = false, .items = {}, .entries = {}};

// Plain words that some YAML reader takes for a boolean or a null.
bool is_yaml_keyword(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : static_cast<char>(c);
  });
  constexpr std::string_view kWords[] = {"y",   "n",    "yes",   "no",   "on",
                                         "off", "true", "false", "null", "~"};
  return std::find(std::begin(kWords), std::end(kWords), lower) != std::end(kWords);
}

// Decimal only: YAML's octal, hexadecimal, base-60, ".inf" and ".nan" are refused.
std::optional<double> decimal(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const bool signed_text = text.front() == '-';
  const std::string_view digits = text.substr(signed_text ? 1 : 0);
  if (digits.empty() || digits.front() < '0' || digits.front() > '9') return std::nullopt;
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::string describe(const YamlValue& value) {
  switch (value.kind) {
    case Kind::kNull:
      return "empty";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
    case Kind::kScalar:
      break;
  }
  return value.quoted ? fmt::format("the text \"{}\"", value.text)
                      : fmt::format("'{}'", value.text);
}

}  // namespace

void YamlErrors::add(int line, std::string_view what) {
  if (first_) return;
  first_ = invalid_argument(fmt::format("{}:{}: {}", name_, line, what));
}

YamlMap::YamlMap(const YamlValue& value, std::string path, YamlErrors& errors)
    : value_(&value), path_(std::move(path)), errors_(&errors) {}

bool YamlMap::has(std::string_view key) const {
  return value_->find(key) != nullptr;
}

const YamlEntry* YamlMap::take(std::string_view key) {
  const YamlEntry* entry = value_->find(key);
  if (entry != nullptr) used_.push_back(entry->key);
  return entry;
}

const YamlEntry* YamlMap::need(std::string_view key) {
  const YamlEntry* entry = take(key);
  // A map that was itself missing has no line and has been reported already.
  if (entry == nullptr && value_->line > 0) {
    errors_->add(value_->line, fmt::format("{}{} is missing", path_, key));
  }
  return entry;
}

void YamlMap::wrong(const YamlEntry& entry, std::string_view expected) {
  errors_->add(entry.line, fmt::format("{}{} is {}, expected {}", path_, entry.key,
                                       describe(entry.value), expected));
}

std::optional<int32_t> YamlMap::parse_integer(const YamlEntry& entry, const YamlValue& value,
                                              int64_t min, int64_t max) {
  const std::string_view text = value.text;
  int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = value.kind == Kind::kScalar && !value.quoted && code == std::errc() &&
                     end == text.data() + text.size() &&
                     !(text.size() > 1 && text.front() == '0');  // 010 is octal in YAML 1.1
  if (whole && number >= min && number <= max) return static_cast<int32_t>(number);
  // The parser places an empty value on the line after its key.
  const int line = value.kind == Kind::kNull ? entry.line : value.line;
  errors_->add(line, fmt::format("{}{} is {}, expected a whole number from {} to {}", path_,
                                 entry.key, describe(value), min, max));
  return std::nullopt;
}

std::optional<double> YamlMap::parse_number(const YamlEntry& entry, double min, double max) {
  const YamlValue& value = entry.value;
  if (value.kind == Kind::kScalar && !value.quoted) {
    if (const auto number = decimal(value.text); number && *number >= min && *number <= max) {
      return number;
    }
  }
  wrong(entry, fmt::format("a number from {} to {}", min, max));
  return std::nullopt;
}

std::string YamlMap::parse_text(const YamlEntry& entry) {
  const YamlValue& value = entry.value;
  if (value.kind != Kind::kScalar || value.text.empty()) {
    wrong(entry, "text");
  } else if (!value.quoted && is_yaml_keyword(value.text)) {
    wrong(entry, "text: YAML reads this word as a boolean or null, quote it");
  } else if (!value.quoted && decimal(value.text)) {
    wrong(entry, "text: YAML reads this as a number, quote it");
  } else {
    return value.text;
  }
  return {};
}

int32_t YamlMap::integer(std::string_view key, int64_t min, int64_t max) {
  const YamlEntry* entry = need(key);
  if (entry == nullptr) return static_cast<int32_t>(min);
  return parse_integer(*entry, entry->value, min, max).value_or(static_cast<int32_t>(min));
}

double YamlMap::number(std::string_view key, double min, double max) {
  const YamlEntry* entry = need(key);
  if (entry == nullptr) return min;
  return parse_number(*entry, min, max).value_or(min);
}

std::string YamlMap::text(std::string_view key) {
  const YamlEntry* entry = need(key);
  return entry == nullptr ? std::string() : parse_text(*entry);
}

size_t YamlMap::word(std::string_view key, std::span<const std::string_view> words) {
  const YamlEntry* entry = need(key);
  if (entry == nullptr) return 0;
  if (entry->value.kind == Kind::kScalar) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (entry->value.text == words[i]) return i;
    }
  }
  wrong(*entry, fmt::format("one of {}", fmt::join(words, ", ")));
  return 0;
}

YamlMap YamlMap::map(std::string_view key) {
  const YamlEntry* entry = need(key);
  const std::string path = fmt::format("{}{}.", path_, key);
  if (entry == nullptr) return YamlMap(kEmptyMap, path, *errors_);
  if (entry->value.kind != Kind::kMap) {
    wrong(*entry, "a map");
    return YamlMap(kEmptyMap, path, *errors_);
  }
  return YamlMap(entry->value, path, *errors_);
}

std::vector<int32_t> YamlMap::integers(std::string_view key, int64_t min, int64_t max) {
  std::vector<int32_t> numbers;
  const YamlEntry* entry = need(key);
  if (entry == nullptr) return numbers;
  if (entry->value.kind != Kind::kList) {
    wrong(*entry, "a list of whole numbers");
    return numbers;
  }
  for (const YamlValue& item : entry->value.items) {
    if (const auto number = parse_integer(*entry, item, min, max)) numbers.push_back(*number);
  }
  return numbers;
}

bool YamlMap::flag(std::string_view key, bool fallback) {
  const YamlEntry* entry = take(key);
  if (entry == nullptr) return fallback;
  const YamlValue& value = entry->value;
  if (value.kind == Kind::kScalar && !value.quoted) {
    if (value.text == "true") return true;
    if (value.text == "false") return false;
  }
  wrong(*entry, "true or false");
  return fallback;
}

std::optional<int32_t> YamlMap::maybe_integer(std::string_view key, int64_t min, int64_t max) {
  const YamlEntry* entry = take(key);
  if (entry == nullptr) return std::nullopt;
  return parse_integer(*entry, entry->value, min, max);
}

std::optional<double> YamlMap::maybe_number(std::string_view key, double min, double max) {
  const YamlEntry* entry = take(key);
  if (entry == nullptr) return std::nullopt;
  return parse_number(*entry, min, max);
}

std::optional<YamlMap> YamlMap::maybe_map(std::string_view key) {
  if (!has(key)) return std::nullopt;
  return map(key);
}

YamlMap YamlMap::refs(std::string_view key) {
  YamlMap refs = map(key);
  for (const YamlEntry& entry : refs.value_->entries) {
    refs.take(entry.key);
    refs.parse_text(entry);
  }
  if (refs.value_->entries.empty()) {
    errors_->add(
        refs.line() > 0 ? refs.line() : line(),
        fmt::format("{}{} has no entry, expected where the numbers come from", path_, key));
  }
  return refs;
}

const std::string* YamlMap::find_text(std::string_view key) const {
  const YamlEntry* entry = value_->find(key);
  return entry == nullptr ? nullptr : &entry->value.text;
}

std::string YamlMap::ref(const YamlMap& refs) {
  const YamlEntry* entry = need("ref");
  if (entry == nullptr) return {};
  const std::string name = parse_text(*entry);
  if (const std::string* found = refs.find_text(name)) return *found;
  if (!name.empty()) wrong(*entry, "a key of refs");
  return {};
}

Quantity YamlMap::quantity(std::string_view key, std::span<const Unit> units, double min,
                           double max, const YamlMap& refs) {
  constexpr std::string_view kOrigins[] = {"datasheet", "measured", "assumed"};
  std::vector<std::string_view> names;
  for (const Unit& unit : units) names.push_back(unit.name);
  YamlMap fields = map(key);
  Quantity quantity;
  quantity.line = fields.line();
  quantity.value = fields.number("value", min, max);
  quantity.value *= units[fields.word("unit", names)].factor;
  quantity.origin = static_cast<Origin>(fields.word("origin", kOrigins));
  quantity.ref = fields.ref(refs);
  fields.done();
  return quantity;
}

void YamlMap::done() {
  for (const YamlEntry& entry : value_->entries) {
    if (std::find(used_.begin(), used_.end(), entry.key) == used_.end()) {
      errors_->add(entry.line, fmt::format("unknown key '{}{}'", path_, entry.key));
    }
  }
}

}  // namespace prony::catalog
