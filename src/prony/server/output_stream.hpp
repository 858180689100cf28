// OutputStream: one generated sequence on its way from tokens to text: whole characters only, stop
// strings found across token borders and cut off, and the decision where it ends. Order of the
// rules: end-of-sequence token, stop string, max_tokens; the first two only once min_tokens are
// out. Thread safety: none; one per sequence.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/token/detokenizer.hpp"
#include "prony/token/stop_matcher.hpp"
#include "prony/token/tokenizer.hpp"

namespace prony::server {

enum class Finish { kNone, kStop, kLength, kAbort };
/// "stop", "length", "abort"; kNone has no name (checked).
const char* finish_name(Finish finish);

class OutputStream {
 public:
  struct Options {
    int32_t max_tokens = 16;
    int32_t min_tokens = 0;
    bool ignore_eos = false;
    std::vector<std::string> stop;
  };
  /// Keeps a reference to `tokenizer`. Error: kInvalidArgument for a stop string that cannot be.
  static Result<OutputStream> create(const token::Tokenizer& tokenizer, const Options& options);

  /// Takes the next token, appends to `text` what may be shown now, and says whether it was the
  /// last. Nothing may follow a finish (checked).
  Finish push(token::TokenId id, std::string& text);

  int32_t token_count() const { return token_count_; }
  /// The stop string that ended it; nullopt for an end-of-sequence token or no end yet.
  std::optional<std::string> stop_reason() const;

 private:
  OutputStream(const token::Tokenizer& tokenizer, const Options& options,
               token::StopMatcher matcher);
  void flush(std::string& text);

  const token::Tokenizer* tokenizer_;
  Options options_;
  token::Detokenizer detokenizer_;
  token::StopMatcher matcher_;
  std::string piece_;  // scratch: text of the latest token
  int32_t token_count_ = 0;
  bool finished_ = false;
};

}  // namespace prony::server
