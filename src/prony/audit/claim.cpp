#include "prony/audit/claim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include "prony/audit/quantity.hpp"
#include "prony/catalog/catalog.hpp"
#include "prony/catalog/yaml_map.hpp"
#include "prony/core/file.hpp"

namespace prony::audit {
namespace {

using catalog::YamlEntry;
using catalog::YamlErrors;
using catalog::YamlMap;
using catalog::YamlValue;

constexpr std::string_view kKinds[] = {"capacity",  "roofline", "bandwidth",  "link",      "little",
                                       "order",     "formula",  "arithmetic", "datasheet", "fact",
                                       "plausible", "similar",  "sample"};

bool is_equality(CheckKind kind) {
  return kind == CheckKind::kFormula || kind == CheckKind::kArithmetic ||
         kind == CheckKind::kDatasheet || kind == CheckKind::kFact || kind == CheckKind::kSimilar;
}

bool is_name(std::string_view text) {
  return !text.empty() && !(text.front() >= '0' && text.front() <= '9') &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

// Scalars of expressions and quantities: "4" is a number to YAML and fine here.
std::string scalar(const YamlMap& map, const YamlValue& value, std::string_view key,
                   const std::string& path, YamlErrors& errors) {
  const YamlEntry* entry = value.find(key);
  if (entry == nullptr) {
    errors.add(map.line(), fmt::format("{}{} is missing", path, key));
    return {};
  }
  if (entry->value.kind != YamlValue::Kind::kScalar || entry->value.text.empty()) {
    errors.add(entry->line, fmt::format("{}{} is no text", path, key));
    return {};
  }
  return entry->value.text;
}

Input read_input(const YamlEntry& entry, const std::string& path, YamlErrors& errors) {
  Input out;
  out.name = entry.key;
  out.line = entry.line;
  if (!is_name(entry.key)) {
    errors.add(entry.line, fmt::format("{}{}: expected a name of a-z, 0-9 and _", path, entry.key));
  }
  if (entry.value.kind == YamlValue::Kind::kScalar) {
    out.text = entry.value.text;
  } else if (entry.value.kind == YamlValue::Kind::kMap) {
    const std::string inner = fmt::format("{}{}.", path, entry.key);
    YamlMap map(entry.value, inner, errors);
    constexpr std::pair<std::string_view, InputKind> kForms[] = {{"fact", InputKind::kFact},
                                                                 {"assumed", InputKind::kAssumed},
                                                                 {"hardware", InputKind::kHardware},
                                                                 {"model", InputKind::kModel},
                                                                 {"missing", InputKind::kMissing}};
    size_t used = 0, forms = 0;
    for (const auto& [key, kind] : kForms) {
      if (!map.has(key)) continue;
      ++forms;
      ++used;
      out.kind = kind;
      out.text = scalar(map, entry.value, key, inner, errors);
    }
    if (forms != 1) {
      errors.add(entry.line, inner + " expected one of fact, assumed, hardware, model, missing");
    }
    if (out.kind == InputKind::kHardware || out.kind == InputKind::kModel) {
      out.field = map.text("field");
      ++used;
    }
    if (out.kind == InputKind::kFact || out.kind == InputKind::kAssumed) {
      out.ref = map.text("ref");
      ++used;
    }
    if (used != entry.value.entries.size()) {
      errors.add(entry.line, inner + " has a key that does not belong there");
    }
  } else {
    errors.add(entry.line, fmt::format("{}{} is empty", path, entry.key));
  }
  const bool number = out.kind == InputKind::kClaimed || out.kind == InputKind::kFact ||
                      out.kind == InputKind::kAssumed;
  if (number && !out.text.empty()) {
    if (const auto parsed = parse_quantity(out.text); !parsed) {
      errors.add(entry.line, fmt::format("{}{}: {}", path, entry.key, parsed.error().message));
    }
  }
  return out;
}

Check read_check(const YamlEntry& entry, const std::string& path, YamlErrors& errors) {
  Check out;
  out.name = entry.key;
  out.line = entry.line;
  if (entry.value.kind != YamlValue::Kind::kMap) {
    errors.add(entry.line, fmt::format("{}{} is no map", path, entry.key));
    return out;
  }
  const std::string inner = fmt::format("{}{}.", path, entry.key);
  YamlMap map(entry.value, inner, errors);
  out.kind = static_cast<CheckKind>(map.word("kind", kKinds));
  const bool equal = is_equality(out.kind);
  const std::string_view left = equal ? "printed" : "need", right = equal ? "expected" : "have";
  out.left = scalar(map, entry.value, left, inner, errors);
  out.right = scalar(map, entry.value, right, inner, errors);
  std::vector<std::string_view> known = {"kind", left, right, "reading", "when", "note", "ref"};
  const bool bound = out.kind == CheckKind::kRoofline || out.kind == CheckKind::kBandwidth ||
                     out.kind == CheckKind::kLink;
  if (bound) {
    known.push_back("best");
    out.best = map.maybe_number("best", 0.01, 1);
  }
  if (equal && out.kind != CheckKind::kFact) {
    known.push_back("tolerance");
    out.tolerance =
        map.maybe_number("tolerance", 0, 1)
            .value_or(out.kind == CheckKind::kDatasheet ? kDatasheetTolerance : kFormulaTolerance);
  }
  if (map.has("reading")) out.reading = map.text("reading");
  if (map.has("when")) out.condition = map.text("when");
  if (map.has("note")) out.note = map.text("note");
  if (map.has("ref")) out.note += (out.note.empty() ? "" : "; ") + map.text("ref");
  for (const auto& item : entry.value.entries) {
    if (std::find(known.begin(), known.end(), item.key) == known.end()) {
      errors.add(item.line, fmt::format("unknown key '{}{}'", inner, item.key));
    }
  }
  return out;
}

void read_children(const YamlValue& value, std::string_view key, const std::string& path, int line,
                   YamlErrors& errors, const std::function<void(const YamlEntry&)>& read) {
  const YamlEntry* entry = value.find(key);
  if (entry == nullptr || entry->value.kind != YamlValue::Kind::kMap ||
      entry->value.entries.empty()) {
    errors.add(entry ? entry->line : line, fmt::format("{}{} is missing or empty", path, key));
    return;
  }
  for (const auto& item : entry->value.entries) read(item);
}

Claim read_claim(const YamlEntry& entry, const std::string& source, YamlErrors& errors) {
  Claim out;
  out.id = entry.key;
  out.source = source;
  out.line = entry.line;
  if (entry.value.kind != YamlValue::Kind::kMap) {
    errors.add(entry.line, fmt::format("{} is no map", entry.key));
    return out;
  }
  const std::string path = entry.key + ".";
  YamlMap map(entry.value, path, errors);
  out.where = map.text("where");
  out.statement = map.text("statement");
  out.control = map.flag("control", false);
  if (map.has("inputs")) {
    map.map("inputs");
    read_children(entry.value, "inputs", path, entry.line, errors, [&](const YamlEntry& item) {
      out.inputs.push_back(read_input(item, path + "inputs.", errors));
    });
  }
  map.map("checks");
  read_children(entry.value, "checks", path, entry.line, errors, [&](const YamlEntry& item) {
    out.checks.push_back(read_check(item, path + "checks.", errors));
  });
  map.done();
  return out;
}

}  // namespace

std::string_view check_kind_name(CheckKind kind) {
  return kKinds[static_cast<size_t>(kind)];
}

Result<std::vector<Claim>> parse_claims(std::string_view text, std::string_view name) {
  const auto document = catalog::parse_yaml(text, name);
  if (!document) return document.error();
  YamlErrors errors(name);
  YamlMap top(*document, "", errors);
  constexpr std::string_view kSchemas[] = {"prony.claims/1"};
  top.word("schema", kSchemas);
  const std::string source = top.text("source");
  if (top.has("licence")) top.text("licence");
  top.map("claims");
  top.done();
  std::vector<Claim> out;
  if (errors.empty()) {
    read_children(*document, "claims", "", 1, errors, [&](const YamlEntry& entry) {
      out.push_back(read_claim(entry, source, errors));
    });
  }
  if (!errors.empty()) return errors.first();
  return out;
}

Result<std::vector<Claim>> read_claims(const std::vector<std::string>& paths) {
  auto files = paths;
  if (files.empty()) {
    const auto data = catalog::data_folder();
    if (!data) return data.error();
    const std::filesystem::path folder = std::filesystem::path(*data) / "claims";
    std::error_code code;
    for (const auto& file : std::filesystem::directory_iterator(folder, code)) {
      if (file.path().extension() == ".yaml") files.push_back(file.path().string());
    }
    if (code) {
      return environment_error(fmt::format("cannot read {}: {}", folder.string(), code.message()));
    }
    std::sort(files.begin(), files.end());
  }
  std::vector<Claim> out;
  std::map<std::string, std::string> seen;
  for (const auto& path : files) {
    const auto text = core::read_file(path);
    if (!text) return text.error();
    auto claims = parse_claims(*text, path);
    if (!claims) return claims.error();
    for (auto& claim : *claims) {
      const auto [place, added] = seen.emplace(claim.id, path);
      if (!added) {
        return invalid_argument(fmt::format("{}:{}: claim {} is also in {}", path, claim.line,
                                            claim.id, place->second));
      }
      out.push_back(std::move(claim));
    }
  }
  return out;
}

}  // namespace prony::audit
