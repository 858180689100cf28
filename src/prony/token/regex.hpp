// Regex: the pre-tokenizer patterns of tokenizer.json, compiled once (PCRE2 with JIT) in the
// dialect they are written in: Oniguruma over Unicode. Where the two differ on what such patterns
// use, the pattern is rewritten: \s and \S are Unicode's White_Space, which PCRE2 widens by U+180E.
// Text must be valid UTF-8. Thread safety: immutable; match() any thread.
// Source: Oniguruma's doc/RE; pcre2pattern(3), "Generic character types".
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "prony/core/result.hpp"

namespace prony::token {

class Regex {
 public:
  struct Match {
    size_t begin = 0, end = 0;  // bytes
  };

  /// Error: kInvalidArgument, "NAME: pattern ...: reason at byte N".
  static Result<Regex> compile(std::string_view pattern, std::string_view name);

  /// The first match that begins at or behind `from`. None also if the pattern gives up (it is
  /// bounded in steps and memory), so that no text can make it run for ever.
  std::optional<Match> match(std::string_view text, size_t from) const;

 private:
  struct Code;
  explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  std::shared_ptr<const Code> code_;
};

/// The pattern as PCRE2 is to read it; for tests.
std::string to_pcre2(std::string_view pattern);

}  // namespace prony::token
