// Tokenizer: text to token ids and ids back to bytes. The byte tokenizer (byte_tokenizer.hpp) is
// one; tokenizer.json files come in behind the same interface. A tokenizer gives the bytes of one
// token; making valid UTF-8 of a sequence of tokens is Detokenizer's work, because a character may
// be spread over several tokens.
// Thread safety: immutable after construction; any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::token {

using TokenId = int32_t;

/// A token that is no text: begin of text, role marker, end of turn. `text` is its written form,
/// for example "<|user|>".
struct SpecialToken {
  TokenId id = 0;
  std::string text;
};

/// Bytes [begin, end) of a text.
struct ByteRange {
  size_t begin = 0, end = 0;
  bool operator==(const ByteRange&) const = default;
};

struct EncodeOptions {
  /// Put bos_id() first, if there is one. Off for rendered chat templates, which bring their own.
  bool add_bos = false;
  /// Written forms of special tokens become those tokens. Off by default: text that came from a
  /// user must not be able to forge a role marker.
  bool parse_special = false;
  /// With parse_special: written forms that touch these bytes stay text (what users wrote inside a
  /// rendered prompt). Rising, disjoint. The text is still encoded as one, so that words that cross
  /// a border give the tokens that they give anywhere.
  std::span<const ByteRange> plain = {};
};

struct DecodeOptions {
  bool skip_special = true;  // special tokens give nothing instead of their written form
  /// The first token opens the text; SentencePiece-like tokenizers then drop its leading space.
  /// False when the tokens continue a prompt, as generated ones do.
  bool at_text_start = false;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// What --tokenizer was asked for: "byte", a folder, a model id.
  virtual std::string_view name() const = 0;
  /// Ids are 0 .. vocabulary_size() - 1.
  virtual int32_t vocabulary_size() const = 0;
  virtual std::optional<TokenId> bos_id() const = 0;
  /// All ids that end a generation (models name several: end of text, end of turn).
  virtual std::span<const TokenId> eos_ids() const = 0;
  /// By rising id.
  virtual std::span<const SpecialToken> special_tokens() const = 0;

  /// Appends the tokens of `text` to `out`. Any bytes are accepted.
  virtual void append_encoded(std::string_view text, const EncodeOptions& options,
                              std::vector<TokenId>& out) const = 0;
  /// Appends the bytes of one token, perhaps half a character, perhaps none. Requires
  /// is_valid(id) (checked).
  virtual void append_bytes(TokenId id, const DecodeOptions& options, std::string& out) const = 0;

  bool is_valid(TokenId id) const { return id >= 0 && id < vocabulary_size(); }
  bool is_special(TokenId id) const;
  bool is_eos(TokenId id) const;
  /// The special token written `text`, for example "<|user|>".
  std::optional<TokenId> special_id(std::string_view text) const;

  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// Number of tokens of `text`, encoded with the default options.
  virtual int64_t count(std::string_view text) const;
  /// The whole text at once, valid UTF-8: what is not becomes U+FFFD. Requires valid ids (checked).
  std::string decode(std::span<const TokenId> ids, const DecodeOptions& options = {}) const;
};

/// The tokenizer that `name` (the value of `flag`) asks for: "byte", a folder with tokenizer.json,
/// or such a file. Error: kInvalidArgument, naming the flag or what is wrong in the file.
Result<std::shared_ptr<const Tokenizer>> open_tokenizer(std::string_view name,
                                                        std::string_view flag = "--tokenizer");

}  // namespace prony::token
