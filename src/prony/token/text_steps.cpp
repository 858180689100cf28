#include "prony/token/text_steps.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "prony/token/json_steps.hpp"
#include "prony/token/quote.hpp"
#include "prony/token/regex.hpp"

namespace prony::token {
namespace {

using core::Json;

constexpr int kStepsMax = 32;  // of a Sequence, and how deep they nest

class UnicodeForm final : public Normalizer {
 public:
  explicit UnicodeForm(int options) : options_(options) {}
  std::string apply(std::string text) const override {
    if (std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; })) return text;
    utf8proc_uint8_t* mapped = nullptr;
    const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                   static_cast<utf8proc_option_t>(options_));
    if (size < 0) return text;  // out of memory: the text as it is
    std::string result(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
    std::free(mapped);  // utf8proc's contract
    return result;
  }

 private:
  int options_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string apply(std::string text) const override {
    return text.empty() ? text : prefix_ + text;
  }

 private:
  std::string prefix_;
};

class Replace final : public Normalizer {
 public:
  Replace(Regex pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  std::string apply(std::string text) const override {
    std::string result;
    size_t at = 0;
    while (const auto match = pattern_.match(text, at)) {
      if (match->end == match->begin) break;  // a pattern of nothing replaces nothing
      result.append(text, at, match->begin - at);
      result += content_;
      at = match->end;
    }
    if (at == 0) return text;
    return result.append(text, at);
  }

 private:
  Regex pattern_;
  std::string content_;
};

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<const Normalizer>> steps)
      : steps_(std::move(steps)) {}
  std::string apply(std::string text) const override {
    for (const auto& step : steps_) text = step->apply(std::move(text));
    return text;
  }

 private:
  std::vector<std::unique_ptr<const Normalizer>> steps_;
};

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

class Split final : public PreTokenizer {
 public:
  Split(Regex pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void apply(std::vector<std::string>& words, const PieceContext&) const override {
    std::vector<std::string> result;
    std::vector<Part> parts;
    for (const auto& word : words) {
      cut(word, parts);
      join(parts);
      for (const Part& part : parts) {
        if (part.end > part.begin) result.push_back(word.substr(part.begin, part.end - part.begin));
      }
    }
    words = std::move(result);
  }

 private:
  struct Part {
    size_t begin = 0, end = 0;
    bool matched = false;
  };

  // The word as matches and what lies between them.
  void cut(const std::string& word, std::vector<Part>& parts) const {
    parts.clear();
    size_t done = 0, at = 0;
    while (at <= word.size()) {
      const auto match = pattern_.match(word, at);
      if (!match) break;
      if (match->end == match->begin) {  // of nothing: go on behind the next character
        at = match->end + 1;
        while (at < word.size() && (word[at] & 0xC0) == 0x80) ++at;
        continue;
      }
      if (match->begin > done) parts.push_back({done, match->begin, invert_});
      parts.push_back({match->begin, match->end, !invert_});
      done = at = match->end;
    }
    if (done < word.size()) parts.push_back({done, word.size(), invert_});
  }

  void join(std::vector<Part>& parts) const {
    std::vector<Part> joined;
    if (behavior_ == SplitBehavior::kIsolated) return;
    if (behavior_ == SplitBehavior::kMergedWithNext) std::reverse(parts.begin(), parts.end());
    bool before = false;  // whether the part before was a match
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      const bool into_last = !joined.empty() && [&] {
        if (behavior_ == SplitBehavior::kContiguous) return part.matched == before;
        return behavior_ != SplitBehavior::kRemoved && part.matched && !before;
      }();
      if (into_last) {
        joined.back().begin = std::min(joined.back().begin, part.begin);
        joined.back().end = std::max(joined.back().end, part.end);
      } else if (behavior_ != SplitBehavior::kRemoved || !part.matched) {
        joined.push_back(part);
      }
      before = part.matched;
    }
    if (behavior_ == SplitBehavior::kMergedWithNext) std::reverse(joined.begin(), joined.end());
    parts = std::move(joined);
  }

  Regex pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

/// A space before every word that has none (ByteLevel's add_prefix_space).
class PrefixSpace final : public PreTokenizer {
 public:
  void apply(std::vector<std::string>& words, const PieceContext&) const override {
    for (auto& word : words) {
      if (!word.starts_with(' ')) word.insert(0, 1, ' ');
    }
  }
};

/// Spaces become a visible character, as SentencePiece does.
class Metaspace final : public PreTokenizer {
 public:
  enum class Scheme { kAlways, kFirst, kNever };
  Metaspace(std::string replacement, Scheme scheme)
      : replacement_(std::move(replacement)), scheme_(scheme) {}

  void apply(std::vector<std::string>& words, const PieceContext& context) const override {
    for (size_t i = 0; i < words.size(); ++i) {
      std::string result;
      for (const char c : words[i]) {
        if (c == ' ') {
          result += replacement_;
        } else {
          result += c;
        }
      }
      const bool wanted = scheme_ == Scheme::kAlways ||
                          (scheme_ == Scheme::kFirst && i == 0 && context.at_text_start);
      if (wanted && !result.starts_with(replacement_)) result.insert(0, replacement_);
      words[i] = std::move(result);
    }
  }

 private:
  std::string replacement_;
  Scheme scheme_;
};

class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<const PreTokenizer>> steps)
      : steps_(std::move(steps)) {}
  void apply(std::vector<std::string>& words, const PieceContext& context) const override {
    for (const auto& step : steps_) step->apply(words, context);
  }

 private:
  std::vector<std::unique_ptr<const PreTokenizer>> steps_;
};

// GPT-2's words, which ByteLevel uses unless told otherwise.
constexpr const char* kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Error unknown_step(std::string_view name, const char* kind, const Json& json) {
  return invalid_argument(
      fmt::format("{}: {} {} is not understood", name, kind,
                  quote(type_of(json).empty() ? json.dump(-1, ' ', true) : type_of(json))));
}

Result<std::unique_ptr<const Normalizer>> read_normalizer_at(const Json& json,
                                                             std::string_view name, int depth) {
  using Pointer = std::unique_ptr<const Normalizer>;
  const std::string type = type_of(json);
  if (json.is_null()) return Pointer();
  const auto form = [](int options) {
    return Pointer(std::make_unique<UnicodeForm>(options | UTF8PROC_STABLE));
  };
  if (type == "NFC") return form(UTF8PROC_COMPOSE);
  if (type == "NFD") return form(UTF8PROC_DECOMPOSE);
  if (type == "NFKC") return form(UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
  if (type == "NFKD") return form(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  if (type == "Prepend") return Pointer(std::make_unique<Prepend>(text_or(json, "prepend", "")));
  if (type == "Replace") {
    auto pattern = read_pattern(json, name);
    if (!pattern) return pattern.error();
    return Pointer(
        std::make_unique<Replace>(std::move(pattern).value(), text_or(json, "content", "")));
  }
  if (type == "Sequence" && depth < kStepsMax && json.contains("normalizers") &&
      json["normalizers"].is_array()) {
    std::vector<Pointer> steps;
    for (const Json& part : json["normalizers"]) {
      auto step = read_normalizer_at(part, name, depth + 1);
      if (!step) return step.error();
      if (step.value() != nullptr) steps.push_back(std::move(step).value());
    }
    return Pointer(std::make_unique<NormalizerSequence>(std::move(steps)));
  }
  return unknown_step(name, "normalizer", json);
}

Result<SplitBehavior> read_behavior(const Json& json, std::string_view name) {
  const std::string text = text_or(json, "behavior", "");
  if (text == "Removed") return SplitBehavior::kRemoved;
  if (text == "Isolated") return SplitBehavior::kIsolated;
  if (text == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (text == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (text == "Contiguous") return SplitBehavior::kContiguous;
  return invalid_argument(
      fmt::format("{}: split behavior {} is not understood", name, quote(text)));
}

using Steps = std::vector<std::unique_ptr<const PreTokenizer>>;

Result<void> add_split(std::string_view pattern, SplitBehavior behavior, std::string_view name,
                       Steps& steps) {
  auto regex = Regex::compile(pattern, name);
  if (!regex) return regex.error();
  steps.push_back(std::make_unique<Split>(std::move(regex).value(), behavior, false));
  return {};
}

Result<void> add_metaspace(const Json& json, std::string_view name, Steps& steps) {
  const std::string replacement = text_or(json, "replacement", "\u2581");
  const std::string scheme =
      text_or(json, "prepend_scheme", flag_or(json, "add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    return invalid_argument(
        fmt::format("{}: prepend_scheme {} is not understood", name, quote(scheme)));
  }
  using Scheme = Metaspace::Scheme;
  steps.push_back(std::make_unique<Metaspace>(replacement, scheme == "always"  ? Scheme::kAlways
                                                           : scheme == "first" ? Scheme::kFirst
                                                                               : Scheme::kNever));
  if (!flag_or(json, "split", true)) return {};
  const Json pattern = {{"pattern", {{"String", replacement}}}};
  auto regex = read_pattern(pattern, name);
  if (!regex) return regex.error();
  steps.push_back(
      std::make_unique<Split>(std::move(regex).value(), SplitBehavior::kMergedWithNext, false));
  return {};
}

Result<void> add_steps(const Json& json, std::string_view name, int depth, Steps& steps,
                       bool& byte_level) {
  const std::string type = type_of(json);
  if (json.is_null()) return {};
  if (type == "Split") {
    auto pattern = read_pattern(json, name);
    if (!pattern) return pattern.error();
    const auto behavior = read_behavior(json, name);
    if (!behavior) return behavior.error();
    steps.push_back(std::make_unique<Split>(std::move(pattern).value(), *behavior,
                                            flag_or(json, "invert", false)));
    return {};
  }
  if (type == "ByteLevel") {
    byte_level = true;
    if (flag_or(json, "add_prefix_space", true)) steps.push_back(std::make_unique<PrefixSpace>());
    if (!flag_or(json, "use_regex", true)) return {};
    return add_split(kGpt2Words, SplitBehavior::kIsolated, name, steps);
  }
  if (type == "Digits") {
    const bool each = flag_or(json, "individual_digits", false);
    return add_split(R"(\p{N})", each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, name,
                     steps);
  }
  if (type == "Metaspace") return add_metaspace(json, name, steps);
  if (type == "Sequence" && depth < kStepsMax && json.contains("pretokenizers") &&
      json["pretokenizers"].is_array()) {
    for (const Json& part : json["pretokenizers"]) {
      if (byte_level) {  // its alphabet is not text any more
        return invalid_argument(
            fmt::format("{}: found a pre-tokenizer behind ByteLevel, expected it last", name));
      }
      if (auto added = add_steps(part, name, depth + 1, steps, byte_level); !added) return added;
    }
    return {};
  }
  return unknown_step(name, "pre-tokenizer", json);
}

}  // namespace

Result<std::unique_ptr<const Normalizer>> read_normalizer(const Json& json, std::string_view name) {
  return read_normalizer_at(json, name, 0);
}

Result<PreTokenization> read_pre_tokenizer(const Json& json, std::string_view name) {
  PreTokenization result;
  Steps steps;
  if (auto added = add_steps(json, name, 0, steps, result.byte_level); !added) return added.error();
  if (!steps.empty()) result.steps = std::make_unique<PreTokenizerSequence>(std::move(steps));
  return result;
}

}  // namespace prony::token
