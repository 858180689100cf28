// HfTokenizer: a Hugging Face tokenizer.json (byte-level or SentencePiece-style BPE) with what
// stands beside it: end tokens of generation_config.json and tokenizer_config.json, and the chat
// template. Components that are not understood are errors that name them.
//   text -> added tokens -> normalizer -> pre-tokenizer -> BPE -> ids
// Thread safety: immutable; any thread.
// Source: Hugging Face tokenizers 0.22, tokenizers/src/tokenizer.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/token/added_tokens.hpp"
#include "prony/token/bpe.hpp"
#include "prony/token/text_steps.hpp"
#include "prony/token/tokenizer.hpp"

namespace prony::token {

class HfTokenizer final : public Tokenizer {
 public:
  /// A folder with tokenizer.json, or the path of such a file. Error: kEnvironment if it cannot be
  /// read, kInvalidArgument naming the file and what is wrong in it.
  static Result<std::shared_ptr<const HfTokenizer>> open(const std::string& path);
  /// `config` is tokenizer_config.json, or null. `name` is for messages.
  static Result<std::shared_ptr<const HfTokenizer>> parse(const core::Json& json,
                                                          const core::Json& config,
                                                          std::vector<TokenId> eos_ids,
                                                          std::string_view name);

  std::string_view name() const override { return name_; }
  int32_t vocabulary_size() const override { return static_cast<int32_t>(bytes_.size()); }
  std::optional<TokenId> bos_id() const override { return bos_id_; }
  std::span<const TokenId> eos_ids() const override { return eos_ids_; }
  std::span<const SpecialToken> special_tokens() const override { return special_tokens_; }
  /// Bytes that are no UTF-8 are read as U+FFFD.
  void append_encoded(std::string_view text, const EncodeOptions& options,
                      std::vector<TokenId>& out) const override;
  void append_bytes(TokenId id, const DecodeOptions& options, std::string& out) const override;

  /// The Jinja text of the chat template; empty if the folder has none.
  const std::string& chat_template() const noexcept { return chat_template_; }
  /// Texts that templates call bos_token and eos_token; empty if there is none.
  const std::string& bos_text() const noexcept { return bos_text_; }
  const std::string& eos_text() const noexcept { return eos_text_; }

 private:
  HfTokenizer(Bpe bpe, std::string name) : name_(std::move(name)), bpe_(std::move(bpe)) {}
  Result<void> read_added(const core::Json& json);
  Result<void> read_post_processor(const core::Json& json);
  Result<void> read_decoder(const core::Json& json);
  void read_config(const core::Json& config);
  void make_bytes();
  std::string bytes_of(std::string_view text) const;
  std::optional<TokenId> id_of(std::string_view text) const;
  void append_piece(std::string_view text, bool at_text_start, bool specials,
                    std::vector<TokenId>& out) const;
  bool user_could_forge(std::string_view text, size_t begin,
                        std::span<const ByteRange> plain) const;
  void append_words(std::string text, bool at_text_start, std::vector<TokenId>& out) const;

  std::string name_;
  Bpe bpe_;
  std::unique_ptr<const Normalizer> normalizer_;       // null: none
  std::unique_ptr<const PreTokenizer> pre_tokenizer_;  // null: a text is one word
  AddedTokens raw_added_, normalized_added_;
  std::vector<SpecialToken> special_tokens_;
  std::optional<TokenId> bos_id_;
  std::vector<TokenId> eos_ids_;
  std::vector<std::string> bytes_;  // [id]: what it decodes to
  std::vector<bool> is_special_;    // [id]
  std::string metaspace_;           // what a decoder turns into spaces; empty: byte level
  bool strips_first_space_ = false;
  std::string chat_template_, bos_text_, eos_text_;
};

}  // namespace prony::token
