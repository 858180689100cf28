// Api: what a client may ask of the OpenAI routes, as plain data, and the parser from the JSON
// body. Names, defaults and refusals follow vLLM's OpenAI server, so that its clients work
// unchanged. Nothing here knows tokens: prompts stay text or ids until the server tokenises them.
// Thread safety: pure functions. Source: OpenAI API reference; reference list in docs/server.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/token/chat.hpp"

namespace prony::server {

/// A refusal as the client sees it: HTTP status and the fields of the error object.
struct ApiError {
  int status = 400;
  std::string type = "BadRequestError";
  std::string message;
  std::string param;  // the field at fault; empty if none
};
/// {"error": {"message", "type", "param", "code"}} on one line.
std::string format_error(const ApiError& error);

using Prompt = std::variant<std::string, std::vector<int32_t>>;  // text or token ids

/// What a request that says nothing is sampled with: a checkpoint may recommend other values.
struct SamplingDefaults {
  float temperature = 1;
  float top_p = 1;
  int32_t top_k = 0;  // 0: all
};

struct GenerationRequest {
  bool chat = false;
  std::string model;                         // empty: whatever is served
  std::vector<Prompt> prompts;               // completions: one choice each
  std::vector<token::ChatMessage> messages;  // chat
  std::optional<int32_t> max_tokens;         // unset: the route's default
  int32_t min_tokens = 0;
  bool ignore_eos = false;
  std::vector<std::string> stop;
  float temperature = 1;
  float top_p = 1;
  int32_t top_k = 0;  // 0: all
  std::optional<uint64_t> seed;
  int32_t logprobs = -1;  // alternatives to report; -1: none
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool return_token_ids = false;
  int32_t priority = 0;  // lower is sooner, as in vLLM
  std::string cache_salt;
};

/// A T or an ApiError.
template <class T>
using ApiResult = std::variant<T, ApiError>;

/// Body of /v1/chat/completions (`chat`) or /v1/completions.
ApiResult<GenerationRequest> parse_generation(std::string_view body, bool chat,
                                              const SamplingDefaults& defaults = {});

struct TokenizeRequest {
  std::variant<std::string, std::vector<token::ChatMessage>> input;
  bool add_special_tokens = true;
};
ApiResult<TokenizeRequest> parse_tokenize(std::string_view body);
/// Ids of /detokenize.
ApiResult<std::vector<int32_t>> parse_detokenize(std::string_view body);

}  // namespace prony::server
