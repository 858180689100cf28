// Bpe: the model of a tokenizer.json: byte-pair merges over bytes (ByteLevel) or over characters
// with a fall-back to bytes (SentencePiece-style). The pair of the lowest rank is merged first, the
// leftmost of equals, until no pair of the word has a rank.
// Thread safety: immutable; any thread. Source: Sennrich et al., "Neural machine translation of
// rare words with subword units", 2016; Hugging Face tokenizers 0.22, tokenizers/src/models/bpe.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"

namespace prony::token {

class Bpe {
 public:
  /// `json` is the member "model". Error: kInvalidArgument, "NAME: ...": another type of model, a
  /// vocabulary with equal or absurd ids, a merge of unknown tokens, an option that is not
  /// understood (dropout, affixes).
  static Result<Bpe> read(const core::Json& json, bool byte_level, std::string_view name);

  /// Appends the tokens of one word. Words are UTF-8.
  void append_encoded(std::string_view word, std::vector<int32_t>& out) const;

  /// As the file writes it; empty if no token has this id.
  const std::string& text(int32_t id) const { return texts_[static_cast<size_t>(id)]; }
  std::optional<int32_t> id(std::string_view text) const;  // by the file's spelling
  int32_t size() const noexcept { return static_cast<int32_t>(texts_.size()); }  // largest id + 1
  bool byte_level() const noexcept { return byte_level_; }

 private:
  struct Merge {
    int32_t rank = 0;
    int32_t result = 0;
  };
  // Open addressing: a look-up is one or two cache lines, and a word makes dozens.
  class MergeTable {
   public:
    void reserve(size_t count);
    void insert(int32_t left, int32_t right, Merge merge);
    const Merge* find(int32_t left, int32_t right) const;

   private:
    struct Slot {
      uint64_t key = kEmpty;
      Merge merge;
    };
    static constexpr uint64_t kEmpty = ~uint64_t{0};
    static size_t hash(uint64_t key);
    std::vector<Slot> slots_;
  };
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Ids = std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>>;

  Result<void> read_vocabulary(const core::Json& json, std::string_view name);
  Result<void> read_merges(const core::Json& json, std::string_view name);
  void append_symbols(std::string_view word, std::vector<int32_t>& symbols) const;
  void append_unknown(std::string_view character, std::vector<int32_t>& symbols) const;
  void merge_short(std::vector<int32_t>& symbols) const;
  void merge_long(std::vector<int32_t>& symbols) const;

  bool byte_level_ = false, ignore_merges_ = false, byte_fallback_ = false, fuse_unknown_ = false;
  std::optional<int32_t> unknown_;
  std::vector<std::string> texts_;       // [id], as in the file
  Ids ids_;                              // by the file's spelling
  Ids words_;                            // byte level only: by the bytes themselves
  std::array<int32_t, 256> byte_ids_{};  // the token of a byte (ByteLevel) or of "<0xAB>"; -1: none
  MergeTable merges_;
};

}  // namespace prony::token
