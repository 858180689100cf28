// Detokenizer: a stream of tokens to a stream of text that never holds half a UTF-8 character.
// Bytes of an unfinished character are held back until it is whole; bytes that can no longer become
// one give U+FFFD at once, one per maximal subpart. The pieces put together equal
// Tokenizer::decode() of the whole sequence, wherever the pieces are cut.
// Source: WHATWG Encoding standard, "UTF-8 decoder"; Unicode 14, section 3.9, best practice for
// U+FFFD substitution.
// Thread safety: none; one per stream.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "prony/token/tokenizer.hpp"

namespace prony::token {

/// Bytes in, valid UTF-8 out. Holds at most 3 bytes.
class Utf8Stream {
 public:
  /// Appends to `out` every character that `bytes` completes.
  void push(std::string_view bytes, std::string& out);
  /// End of the stream: an unfinished character becomes U+FFFD. The stream can be used again.
  void flush(std::string& out);
  /// Bytes held back now, 0 to 3.
  int held_bytes() const noexcept { return held_count_; }

 private:
  std::array<char, 3> held_{};  // the first held_count_ bytes of an unfinished character
  int held_count_ = 0;
  int needed_ = 0;  // bytes still missing
  // Range of the next byte; narrower than 80..BF after E0, ED, F0 and F4, which excludes overlong
  // forms, surrogates and values above U+10FFFF.
  uint8_t lower_ = 0x80, upper_ = 0xBF;
};

class Detokenizer {
 public:
  /// Keeps a reference to `tokenizer`.
  explicit Detokenizer(const Tokenizer& tokenizer, const DecodeOptions& options = {});

  /// Appends to `out` the text that `id` completes, perhaps nothing. Requires a valid id (checked).
  void push(TokenId id, std::string& out);
  /// After the last token.
  void flush(std::string& out);
  int held_bytes() const noexcept { return stream_.held_bytes(); }

 private:
  const Tokenizer& tokenizer_;
  DecodeOptions options_;
  Utf8Stream stream_;
  std::string scratch_;  // bytes of one token; kept so that steady state allocates nothing
};

/// True if `text` is well-formed UTF-8.
bool is_valid_utf8(std::string_view text);

}  // namespace prony::token
