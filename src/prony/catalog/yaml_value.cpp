#include "prony/catalog/yaml_value.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <exception>
#include <optional>
#include <sstream>

namespace prony::catalog {
namespace {

constexpr size_t kBytesMax = 1 << 20;
constexpr size_t kDepthMax = 16;
constexpr int kValuesMax = 16'384;

using Kind = YamlValue::Kind;

int line_of(const YAML::Mark& mark) {
  return mark.line < 0 ? 1 : mark.line + 1;
}

// Builds the tree from the parser's events. YAML::Load would hide duplicate keys and aliases, and
// YAML::LoadAll of yaml-cpp 0.7 does not end on some malformed texts (found by fuzzing).
// After the first refusal the remaining events are ignored.
class TreeBuilder : public YAML::EventHandler {
 public:
  struct Refusal {
    int line = 0;
    std::string reason;
  };

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(line_of(mark), "a second YAML document, expected one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    place({.kind = Kind::kNull, .line = line_of(mark)});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(line_of(mark), "an alias, expected the value itself");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    check_tag(mark, tag);
    place({.kind = Kind::kScalar, .line = line_of(mark), .text = value, .quoted = tag == "!"});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, Kind::kList);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, Kind::kMap);
  }
  void OnMapEnd() override { close(); }

  const std::optional<Refusal>& refusal() const { return refusal_; }
  /// nullopt if the document was empty.
  std::optional<YamlValue>& root() { return root_; }

 private:
  // A collection that is still open, and the key that waits for its value.
  struct Level {
    YamlValue value;
    std::optional<YamlEntry> entry;
  };

  void refuse(int line, std::string reason) {
    if (!refusal_) refusal_ = Refusal{line, std::move(reason)};
  }

  // "?" marks a plain scalar, "!" a quoted one; anything else was written in the file.
  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    refuse(line_of(mark), fmt::format("tag '{}', expected none", tag));
  }

  void open(const YAML::Mark& mark, const std::string& tag, Kind kind) {
    check_tag(mark, tag);
    if (levels_.size() >= kDepthMax) {
      refuse(line_of(mark), fmt::format("nested deeper than {} levels", kDepthMax));
    }
    if (refusal_) return;
    levels_.push_back({{.kind = kind, .line = line_of(mark)}, std::nullopt});
  }

  void close() {
    if (refusal_) return;
    YamlValue value = std::move(levels_.back().value);
    levels_.pop_back();
    place(std::move(value));
  }

  void place(YamlValue value) {
    if (++values_ > kValuesMax) refuse(value.line, fmt::format("more than {} values", kValuesMax));
    if (refusal_) return;
    if (levels_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = levels_.back();
    if (level.value.kind == Kind::kList) {
      level.value.items.push_back(std::move(value));
    } else if (!level.entry) {
      start_entry(level, std::move(value));
    } else {
      level.entry->value = std::move(value);
      level.value.entries.push_back(*std::move(level.entry));
      level.entry.reset();
    }
  }

  void start_entry(Level& level, YamlValue key) {
    if (key.kind != Kind::kScalar) return refuse(key.line, "a key that is no text");
    if (key.text == "<<") return refuse(key.line, "merge key '<<', expected plain keys");
    if (const YamlEntry* first = level.value.find(key.text)) {
      return refuse(key.line, fmt::format("duplicate key '{}', first given on line {}", key.text,
                                          first->line));
    }
    level.entry = YamlEntry{std::move(key.text), key.line, {}};
  }

  std::vector<Level> levels_;
  std::optional<YamlValue> root_;
  std::optional<Refusal> refusal_;
  int documents_ = 0;
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
  const auto error = [name](int line, std::string_view what) {
    return invalid_argument(fmt::format("{}:{}: {}", name, line, what));
  };
  TreeBuilder builder;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    parser.HandleNextDocument(builder);  // there must be none: the builder refuses it
  } catch (const YAML::Exception& failure) {
    // What was refused first stands earlier in the text than what the parser stumbled over.
    if (builder.refusal()) return error(builder.refusal()->line, builder.refusal()->reason);
    return error(line_of(failure.mark), fmt::format("not YAML: {}", failure.msg));
  } catch (const std::exception& failure) {
    // yaml-cpp lets some exceptions of the standard library through on malformed input.
    return error(1, fmt::format("not YAML: {}", failure.what()));
  }
  if (builder.refusal()) return error(builder.refusal()->line, builder.refusal()->reason);
  if (!builder.root() || builder.root()->kind == Kind::kNull) {
    return error(1, "an empty file, expected 'key: value' lines");
  }
  if (builder.root()->kind != Kind::kMap) {
    return error(builder.root()->line, "the top is no map, expected 'key: value' lines");
  }
  return *std::move(builder.root());
}

}  // namespace prony::catalog
