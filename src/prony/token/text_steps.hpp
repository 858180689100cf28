// The steps of a tokenizer.json before its model: normalizers (text to text) and pre-tokenizers
// (text to words), each read from its JSON object. What is not understood is an error that names
// it: a step left out gives other tokens and no sign of it. Text is valid UTF-8 throughout.
// Thread safety: immutable; any thread.
// Source: Hugging Face tokenizers 0.22, tokenizers/src/normalizers and src/pre_tokenizers.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"

namespace prony::token {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual std::string apply(std::string text) const = 0;
};

/// What pre-tokenizers are told of a piece.
struct PieceContext {
  bool at_text_start = false;  // nothing of the text comes before it
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Replaces `words` (pieces of text) by smaller ones, in order.
  virtual void apply(std::vector<std::string>& words, const PieceContext& context) const = 0;
};

/// NFC, NFD, NFKC, NFKD, Prepend, Replace, Sequence; null gives null.
/// Error: kInvalidArgument, "NAME: normalizer 'X': ...".
Result<std::unique_ptr<const Normalizer>> read_normalizer(const core::Json& json,
                                                          std::string_view name);

/// What a pre-tokenizer leaves behind.
struct PreTokenization {
  std::unique_ptr<const PreTokenizer> steps;  // null: the whole text is one word
  bool byte_level = false;                    // words are bytes, written in ByteLevel's alphabet
};
/// Split, ByteLevel, Digits, Metaspace, Sequence. Words stay plain UTF-8: ByteLevel's alphabet is
/// undone in the vocabulary instead.
Result<PreTokenization> read_pre_tokenizer(const core::Json& json, std::string_view name);

}  // namespace prony::token
