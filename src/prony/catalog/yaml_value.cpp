#include "prony/catalog/yaml_value.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <exception>

namespace prony::catalog {
namespace {

constexpr size_t kBytesMax = 1 << 20;
constexpr int kDepthMax = 16;
constexpr int kValuesMax = 65'536;

int line_of(const YAML::Mark& mark) {
  return mark.line < 0 ? 1 : mark.line + 1;
}

class Converter {
 public:
  explicit Converter(std::string_view name) : name_(name) {}

  Result<YamlValue> convert(const YAML::Node& node, int depth) {
    YamlValue value;
    value.line = line_of(node.Mark());
    if (depth > kDepthMax) {
      return error(value.line, fmt::format("nested deeper than {} levels", kDepthMax));
    }
    if (++values_ > kValuesMax) {
      return error(value.line, fmt::format("more than {} values", kValuesMax));
    }
    // "?" is a plain scalar, "!" a quoted one, empty a null or a collection.
    const std::string& tag = node.Tag();
    if (!tag.empty() && tag != "?" && tag != "!") {
      return error(value.line, fmt::format("tag '{}', expected none", tag));
    }
    if (node.IsScalar()) {
      value.kind = YamlValue::Kind::kScalar;
      value.text = node.Scalar();
      value.quoted = tag == "!";
      return value;
    }
    if (node.IsSequence()) return list(node, std::move(value), depth);
    if (node.IsMap()) return map(node, std::move(value), depth);
    return value;
  }

 private:
  Result<YamlValue> list(const YAML::Node& node, YamlValue value, int depth) {
    value.kind = YamlValue::Kind::kList;
    for (const YAML::Node& item : node) {
      auto converted = convert(item, depth + 1);
      if (!converted) return converted;
      value.items.push_back(*std::move(converted));
    }
    return value;
  }

  Result<YamlValue> map(const YAML::Node& node, YamlValue value, int depth) {
    value.kind = YamlValue::Kind::kMap;
    for (const auto& pair : node) {
      YamlEntry entry;
      entry.line = line_of(pair.first.Mark());
      if (!pair.first.IsScalar()) return error(entry.line, "a key that is no text");
      entry.key = pair.first.Scalar();
      if (entry.key == "<<") return error(entry.line, "merge key '<<', expected plain keys");
      if (const YamlEntry* first = value.find(entry.key)) {
        return error(entry.line, fmt::format("duplicate key '{}', first given on line {}",
                                             entry.key, first->line));
      }
      auto converted = convert(pair.second, depth + 1);
      if (!converted) return converted;
      entry.value = *std::move(converted);
      value.entries.push_back(std::move(entry));
    }
    return value;
  }

  Error error(int line, const std::string& what) const {
    return invalid_argument(fmt::format("{}:{}: {}", name_, line, what));
  }

  std::string_view name_;
  int values_ = 0;
};

}  // namespace

const YamlEntry* YamlValue::find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

Result<YamlValue> parse_yaml(std::string_view text, std::string_view name) {
  if (text.size() > kBytesMax) {
    return invalid_argument(
        fmt::format("{}: {} bytes, expected at most {}", name, text.size(), kBytesMax));
  }
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(std::string(text));
    if (documents.size() != 1 || documents[0].IsNull()) {
      return invalid_argument(
          fmt::format("{}:1: {}, expected one document", name,
                      documents.size() > 1 ? "several YAML documents" : "an empty file"));
    }
    if (!documents[0].IsMap()) {
      return invalid_argument(fmt::format("{}:{}: the top is no map, expected 'key: value' lines",
                                          name, line_of(documents[0].Mark())));
    }
    return Converter(name).convert(documents[0], 0);
  } catch (const YAML::Exception& failure) {
    return invalid_argument(
        fmt::format("{}:{}: not YAML: {}", name, line_of(failure.mark), failure.msg));
  } catch (const std::exception& failure) {
    // yaml-cpp lets some exceptions of the standard library through on malformed input.
    return invalid_argument(fmt::format("{}:1: not YAML: {}", name, failure.what()));
  }
}

}  // namespace prony::catalog
