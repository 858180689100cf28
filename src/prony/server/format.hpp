// Format: the JSON bodies and stream events of the OpenAI routes, as vLLM writes them: completions
// with `text`, chat with `delta` and a role chunk first, usage in a chunk of its own (and in every
// chunk with continuous_usage_stats), `data: [DONE]` last. Text must be whole UTF-8 characters.
// Thread safety: a Formatter is immutable; any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/server/output_stream.hpp"

namespace prony::server {

struct Usage {
  int32_t prompt_tokens = 0;
  int32_t completion_tokens = 0;
  int32_t cached_tokens = 0;  // of the prompt, found in the prefix cache
};

struct LogprobEntry {
  std::string token;  // its text alone; bytes that are no character show as U+FFFD
  std::string bytes;  // its bytes
  float logprob = 0;
  std::vector<std::pair<std::string, float>> top;
};

/// What one choice has to say now: a streamed delta, or all of it.
struct ChoicePiece {
  int32_t index = 0;
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<LogprobEntry> logprobs;
  Finish finish = Finish::kNone;
  std::optional<std::string> stop_reason;
};

class Formatter {
 public:
  struct Options {
    bool chat = false;
    std::string id;  // cmpl-... or chatcmpl-...
    std::string model;
    int64_t created_s = 0;  // Unix time
    bool logprobs = false;
    bool token_ids = false;
  };
  explicit Formatter(Options options);

  /// Chat only: the opening chunk with the role and no text.
  std::string role_event(int32_t index, const Usage* usage) const;
  std::string piece_event(const ChoicePiece& piece, const Usage* usage) const;
  std::string usage_event(const Usage& usage) const;
  static std::string error_event(std::string_view error_json);
  static std::string done_event() { return "data: [DONE]\n\n"; }
  /// The body of an answer that was not streamed.
  std::string whole(std::span<const ChoicePiece> choices, const Usage& usage) const;

 private:
  core::Json head(const char* object) const;
  core::Json choice(const ChoicePiece& piece, const char* chat_field) const;
  core::Json logprobs_json(const std::vector<LogprobEntry>& entries) const;
  Options options_;
};

}  // namespace prony::server
