// AddedTokens: the tokens of a tokenizer.json that are cut out of a text before anything else is
// done with it: control tokens and what was added after training. At each place the longest wins.
// Thread safety: immutable after add(); any thread.
// Source: Hugging Face tokenizers 0.22, tokenizers/src/tokenizer/added_vocabulary.rs.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/token/tokenizer.hpp"

namespace prony::token {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;                 // control token: no text
  bool normalized = false;              // looked for in the normalised text
  bool single_word = false;             // not inside a word
  bool lstrip = false, rstrip = false;  // swallows the spaces before, behind
};

class AddedTokens {
 public:
  struct Piece {
    std::string_view text;
    int32_t id = -1;  // of the token that the piece is; -1: text between tokens
    size_t begin = 0;
  };

  /// Requires content (checked).
  void add(AddedToken token);
  bool empty() const noexcept { return tokens_.empty(); }
  const std::vector<AddedToken>& tokens() const noexcept { return tokens_; }

  /// Cuts `text`; `specials` false leaves control tokens as text, and so does a byte of `plain`
  /// that they would touch. Pieces are never empty.
  void split(std::string_view text, bool specials, std::vector<Piece>& pieces,
             std::span<const ByteRange> plain = {}) const;
  /// True if a control token is written in `text` so that it touches `plain`.
  bool touches(std::string_view text, std::span<const ByteRange> plain) const;

 private:
  const AddedToken* longest_at(std::string_view text, size_t at, bool specials,
                               std::span<const ByteRange> plain) const;
  std::vector<AddedToken> tokens_;
  std::array<std::vector<size_t>, 256> by_first_byte_;  // longest first
};

}  // namespace prony::token
