// ByteTokenizer: one token a byte, plus markers for text and chat. It needs no file, encodes any
// bytes and loses none, so prompts of an exact length are trivial; it serves `dummy:` models, tests
// and demos. Layout, fixed for ever because recorded runs depend on it:
//   0..255    the byte of that value
//   256 <|begin|>   257 <|end_of_text|> (eos)   258 <|system|>   259 <|user|>   260 <|assistant|>
//   261 <|tool|>    262 <|end|> (end of turn, eos)               263 <|pad|>
//   264..     only if the model's vocabulary is wider: each is written as one printable ASCII
//             character, so that every token of a random model is visible. encode() never gives
//             them.
// Thread safety: immutable; any thread.
#pragma once
#include <array>
#include <string>

#include "prony/token/tokenizer.hpp"

namespace prony::token {

inline constexpr TokenId kByteBos = 256;
inline constexpr TokenId kByteEndOfText = 257;
inline constexpr TokenId kByteSystem = 258;
inline constexpr TokenId kByteUser = 259;
inline constexpr TokenId kByteAssistant = 260;
inline constexpr TokenId kByteTool = 261;
inline constexpr TokenId kByteEndOfTurn = 262;
inline constexpr TokenId kBytePad = 263;
/// Smallest vocabulary: the bytes and the markers.
inline constexpr int32_t kByteVocabulary = 264;

class ByteTokenizer final : public Tokenizer {
 public:
  /// `vocabulary_size` is that of the model it serves. Requires >= kByteVocabulary (checked).
  explicit ByteTokenizer(int32_t vocabulary_size = kByteVocabulary);

  std::string_view name() const override { return "byte"; }
  int32_t vocabulary_size() const override { return vocabulary_size_; }
  std::optional<TokenId> bos_id() const override { return kByteBos; }
  std::span<const TokenId> eos_ids() const override;
  std::span<const SpecialToken> special_tokens() const override { return special_tokens_; }
  void append_encoded(std::string_view text, const EncodeOptions& options,
                      std::vector<TokenId>& out) const override;
  int64_t count(std::string_view text) const override { return static_cast<int64_t>(text.size()); }
  void append_bytes(TokenId id, const DecodeOptions& options, std::string& out) const override;

 private:
  int32_t vocabulary_size_;
  std::array<SpecialToken, kByteVocabulary - 256> special_tokens_;
};

}  // namespace prony::token
