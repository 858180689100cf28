#include "prony/token/bpe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "prony/token/byte_alphabet.hpp"
#include "prony/token/json_steps.hpp"
#include "prony/token/quote.hpp"

namespace prony::token {
namespace {

using core::Json;

constexpr int64_t kVocabularyMax = 4'000'000;  // ten times the largest that is known
// Below it looking at all pairs after every merge is faster than a queue.
constexpr size_t kShortWord = 32;

size_t character_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// The two halves of "a b" or ["a", "b"].
std::optional<std::pair<std::string, std::string>> halves(const Json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  }
  if (!merge.is_string()) return std::nullopt;
  const auto& text = merge.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    return std::nullopt;
  }
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

}  // namespace

size_t Bpe::MergeTable::hash(uint64_t key) {
  return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 20);
}

void Bpe::MergeTable::reserve(size_t count) {
  size_t size = 16;
  while (size < 2 * count) size *= 2;
  slots_.assign(size, Slot());
}

void Bpe::MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  const uint64_t key =
      static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  for (size_t at = hash(key);; ++at) {
    Slot& slot = slots_[at & (slots_.size() - 1)];
    if (slot.key != kEmpty && slot.key != key) continue;
    slot = {key, merge};
    return;
  }
}

const Bpe::Merge* Bpe::MergeTable::find(int32_t left, int32_t right) const {
  const uint64_t key =
      static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  for (size_t at = hash(key);; ++at) {
    const Slot& slot = slots_[at & (slots_.size() - 1)];
    if (slot.key == key) return &slot.merge;
    if (slot.key == kEmpty) return nullptr;
  }
}

Result<void> Bpe::read_vocabulary(const Json& json, std::string_view name) {
  if (!json.contains("vocab") || !json["vocab"].is_object()) {
    return invalid_argument(
        fmt::format("{}: the model has no vocab, expected tokens and ids", name));
  }
  const Json& vocab = json["vocab"];
  for (const auto& [text, id] : vocab.items()) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= kVocabularyMax) {
      return invalid_argument(fmt::format("{}: vocab {}: found id {}, expected 0 to {}", name,
                                          quote(text), id.dump(-1, ' ', true), kVocabularyMax - 1));
    }
    const auto index = id.get<size_t>();
    // Ids may have gaps, but not so many that a small file asks for a large table.
    if (index >= 16 * vocab.size() + 1024) {
      return invalid_argument(fmt::format("{}: vocab {}: found id {} among {} tokens", name,
                                          quote(text), index, vocab.size()));
    }
    if (index >= texts_.size()) texts_.resize(index + 1);
    if (!texts_[index].empty()) {
      return invalid_argument(fmt::format("{}: vocab {} and {} have the same id {}", name,
                                          quote(texts_[index]), quote(text), index));
    }
    texts_[index] = text;
    ids_.emplace(text, static_cast<int32_t>(index));
    if (!byte_level_) continue;
    if (const auto bytes = from_byte_alphabet(text)) {
      words_.emplace(*bytes, static_cast<int32_t>(index));
    }
  }
  byte_ids_.fill(-1);
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto at = byte_level_ ? words_.find(std::string(1, static_cast<char>(byte)))
                                : ids_.find(fmt::format("<0x{:02X}>", byte));
    if (at != (byte_level_ ? words_.end() : ids_.end())) byte_ids_[byte] = at->second;
  }
  return {};
}

Result<void> Bpe::read_merges(const Json& json, std::string_view name) {
  if (!json.contains("merges") || !json["merges"].is_array()) {
    return invalid_argument(fmt::format("{}: the model has no merges", name));
  }
  const Json& merges = json["merges"];
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto refuse = [&](std::string_view what) {
      return invalid_argument(fmt::format("{}: merges[{}]: {}", name, rank, what));
    };
    const auto pair = halves(merges[rank]);
    if (!pair) return refuse("found no pair, expected two tokens");
    const auto left = id(pair->first), right = id(pair->second);
    const auto result = id(pair->first + pair->second);
    if (!left || !right || !result) {
      return refuse(
          fmt::format("{} is not in the vocabulary", quote(!left    ? pair->first
                                                           : !right ? pair->second
                                                                    : pair->first + pair->second)));
    }
    merges_.insert(*left, *right, {static_cast<int32_t>(rank), *result});
  }
  return {};
}

Result<Bpe> Bpe::read(const Json& json, bool byte_level, std::string_view name) {
  if (!json.is_object()) return invalid_argument(fmt::format("{}: no model", name));
  // Older files leave the type out.
  const std::string type = text_or(json, "type", "BPE");
  if (type != "BPE") {
    return invalid_argument(
        fmt::format("{}: the model is of type {}, expected BPE", name, quote(type)));
  }
  if (json.contains("dropout") && json["dropout"].is_number() && json["dropout"] != 0) {
    return invalid_argument(fmt::format("{}: dropout is not understood", name));
  }
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!text_or(json, affix, "").empty()) {
      return invalid_argument(fmt::format("{}: {} is not understood", name, affix));
    }
  }
  Bpe bpe;
  bpe.byte_level_ = byte_level;
  bpe.ignore_merges_ = flag_or(json, "ignore_merges", false);
  bpe.byte_fallback_ = flag_or(json, "byte_fallback", false);
  bpe.fuse_unknown_ = flag_or(json, "fuse_unk", false);
  if (auto done = bpe.read_vocabulary(json, name); !done) return done.error();
  if (auto done = bpe.read_merges(json, name); !done) return done.error();
  const std::string unknown = text_or(json, "unk_token", "");
  if (!unknown.empty()) {
    bpe.unknown_ = bpe.id(unknown);
    if (!bpe.unknown_) {
      return invalid_argument(
          fmt::format("{}: unk_token {} is not in the vocabulary", name, quote(unknown)));
    }
  }
  return bpe;
}

std::optional<int32_t> Bpe::id(std::string_view text) const {
  const auto at = ids_.find(text);
  if (at == ids_.end()) return std::nullopt;
  return at->second;
}

// A character that is no token: its bytes, or the unknown token, or nothing.
void Bpe::append_unknown(std::string_view character, std::vector<int32_t>& symbols) const {
  if (byte_fallback_ && std::all_of(character.begin(), character.end(), [this](char c) {
        return byte_ids_[static_cast<unsigned char>(c)] >= 0;
      })) {
    for (const char c : character) symbols.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  } else if (unknown_) {
    const bool fused = fuse_unknown_ && !symbols.empty() && symbols.back() == *unknown_;
    if (!fused) symbols.push_back(*unknown_);
  }
}

void Bpe::append_symbols(std::string_view word, std::vector<int32_t>& symbols) const {
  if (byte_level_) {
    for (const char c : word) {
      const int32_t id = byte_ids_[static_cast<unsigned char>(c)];
      if (id >= 0) {
        symbols.push_back(id);
      } else if (unknown_) {
        append_unknown({}, symbols);
      }
    }
    return;
  }
  for (size_t at = 0; at < word.size();) {
    const std::string_view character = word.substr(at, character_bytes(word[at]));
    const auto found = ids_.find(character);
    if (found != ids_.end()) {
      symbols.push_back(found->second);
    } else {
      append_unknown(character, symbols);
    }
    at += character.size();
  }
}

void Bpe::merge_short(std::vector<int32_t>& symbols) const {
  std::array<const Merge*, kShortWord> pair;  // [i]: of symbols i and i + 1
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) pair[i] = merges_.find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = count;
    for (size_t i = 0; i + 1 < count; ++i) {
      if (pair[i] != nullptr && (best == count || pair[i]->rank < pair[best]->rank)) best = i;
    }
    if (best == count) break;
    symbols[best] = pair[best]->result;
    for (size_t i = best + 1; i + 1 < count; ++i) {
      symbols[i] = symbols[i + 1];
      pair[i] = i + 2 < count ? pair[i + 1] : nullptr;
    }
    --count;
    if (best > 0) pair[best - 1] = merges_.find(symbols[best - 1], symbols[best]);
    if (best + 1 < count) pair[best] = merges_.find(symbols[best], symbols[best + 1]);
  }
  symbols.resize(count);
}

// The same through a queue: a line of a million equal characters must not take for ever.
void Bpe::merge_long(std::vector<int32_t>& symbols) const {
  struct Candidate {
    int32_t rank, position, left, right, result;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  const auto count = static_cast<int32_t>(symbols.size());
  std::vector<int32_t> before(symbols.size()), behind(symbols.size());
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](int32_t left, int32_t right) {
    if (left < 0 || right >= count) return;
    const int32_t a = symbols[static_cast<size_t>(left)], b = symbols[static_cast<size_t>(right)];
    if (const Merge* merge = merges_.find(a, b))
      queue.push({merge->rank, left, a, b, merge->result});
  };
  for (int32_t i = 0; i < count; ++i) {
    before[static_cast<size_t>(i)] = i - 1;
    behind[static_cast<size_t>(i)] = i + 1;
    consider(i, i + 1);
  }
  constexpr int32_t kGone = -1;
  while (!queue.empty()) {
    const Candidate candidate = queue.top();
    queue.pop();
    const auto left = static_cast<size_t>(candidate.position);
    const auto right = static_cast<size_t>(behind[left]);
    // Symbols change only by merging, so a pair that still reads the same is the same pair.
    if (symbols[left] != candidate.left || right >= symbols.size() ||
        symbols[right] != candidate.right) {
      continue;
    }
    symbols[left] = candidate.result;
    symbols[right] = kGone;
    behind[left] = behind[right];
    if (behind[left] < count) before[static_cast<size_t>(behind[left])] = candidate.position;
    consider(before[left], candidate.position);
    consider(candidate.position, behind[left]);
  }
  symbols.erase(std::remove(symbols.begin(), symbols.end(), kGone), symbols.end());
}

void Bpe::append_encoded(std::string_view word, std::vector<int32_t>& out) const {
  if (word.empty()) return;
  if (ignore_merges_) {
    const Ids& known = byte_level_ ? words_ : ids_;
    if (const auto whole = known.find(word); whole != known.end()) {
      out.push_back(whole->second);
      return;
    }
  }
  thread_local std::vector<int32_t> symbols;
  symbols.clear();
  append_symbols(word, symbols);
  if (symbols.size() <= kShortWord) {
    merge_short(symbols);
  } else {
    merge_long(symbols);
  }
  out.insert(out.end(), symbols.begin(), symbols.end());
}

}  // namespace prony::token
