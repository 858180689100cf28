#include "prony/token/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <memory>

#include "prony/token/quote.hpp"

namespace prony::token {
namespace {

// White_Space of Unicode: no more, no less.
constexpr const char* kSpaces = R"(\t\n\x0B\f\r\x{85}\p{Z})";
// Enough for any sane pattern on any text; the default of ten million takes seconds.
constexpr uint32_t kMatchLimit = 1'000'000;

struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

std::string to_pcre2(std::string_view pattern) {
  std::string result;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's' && in_class) {
        result += kSpaces;
      } else if (next == 's') {
        result += std::string("[") + kSpaces + "]";
      } else if (next == 'S' && !in_class) {
        result += std::string("[^") + kSpaces + "]";
      } else {
        result += {c, next};
      }
      continue;
    }
    if (c == '[' && !in_class) {
      in_class = true;
      result += c;
      // A bracket right behind the opening one is a member of the class.
      if (i + 1 < pattern.size() && pattern[i + 1] == '^') result += pattern[++i];
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') result += "\\", result += pattern[++i];
      continue;
    }
    if (c == ']') in_class = false;
    result += c;
  }
  return result;
}

Result<Regex> Regex::compile(std::string_view pattern, std::string_view name) {
  const std::string translated = to_pcre2(pattern);
  int error = 0;
  PCRE2_SIZE at = 0;
  auto code = std::make_shared<Code>();
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &at, nullptr);
  if (code->code == nullptr) {
    PCRE2_UCHAR text[256] = {};
    pcre2_get_error_message(error, text, sizeof(text));
    return invalid_argument(fmt::format("{}: pattern {}: {} at byte {}", name, quote(pattern),
                                        reinterpret_cast<const char*>(text), at));
  }
  // Without JIT (a hardened kernel may forbid it) matching is slower and the same.
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);
  return Regex(std::move(code));
}

std::optional<Regex::Match> Regex::match(std::string_view text, size_t from) const {
  // One set of buffers a thread: a match allocates nothing.
  thread_local const std::unique_ptr<pcre2_match_data, FreeMatch> data(
      pcre2_match_data_create(1, nullptr));
  thread_local const std::unique_ptr<pcre2_match_context, FreeContext> context = [] {
    std::unique_ptr<pcre2_match_context, FreeContext> made(pcre2_match_context_create(nullptr));
    pcre2_set_match_limit(made.get(), kMatchLimit);
    return made;
  }();
  // PCRE2_NO_UTF_CHECK: the caller has made it valid, and checking again for every match would make
  // splitting a text quadratic.
  const int count = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                from, PCRE2_NO_UTF_CHECK, data.get(), context.get());
  if (count < 0) return std::nullopt;
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
  return Match{ends[0], ends[1]};
}

}  // namespace prony::token
