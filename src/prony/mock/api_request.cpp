#include "prony/mock/api_request.hpp"

#include <algorithm>
#include <cctype>

#include "prony/core/json.hpp"

namespace prony::mock {
namespace {

using core::Json;

// More tokens than any model's context: a mistake rather than a wish.
constexpr int64_t kTokensMax = 10'000'000;

bool flag(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_boolean() && at->get<bool>();
}

/// The mock's tokens of a text are its words.
int64_t count_words(std::string_view text) {
  int64_t words = 0;
  bool in_word = false;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    words += !space && !in_word;
    in_word = !space;
  }
  return words;
}

int64_t count_prompt(const Json& prompt) {
  if (prompt.is_string()) return count_words(prompt.get_ref<const std::string&>());
  if (prompt.is_number()) return 1;  // a token id
  int64_t sum = 0;
  if (prompt.is_array()) {
    for (const Json& part : prompt) sum += count_prompt(part);
  } else if (prompt.is_object()) {  // a message, or a part of one
    for (const char* name : {"content", "text"}) {
      if (const auto at = prompt.find(name); at != prompt.end()) sum += count_prompt(*at);
    }
  }
  return sum;
}

}  // namespace

Result<ApiRequest> parse_api_request(std::string_view body, bool chat) {
  const auto parsed = core::parse_json(body, "request body");
  if (!parsed) return parsed.error();
  const Json& json = parsed.value();
  if (!json.is_object()) return invalid_argument("request body: expected a JSON object");
  const char* prompt_name = chat ? "messages" : "prompt";
  const auto prompt = json.find(prompt_name);
  if (prompt == json.end() || (chat && !prompt->is_array())) {
    return invalid_argument(std::string(prompt_name) + ": expected " +
                            (chat ? "a list of messages" : "text or token ids"));
  }
  ApiRequest request;
  request.facts.chat = chat;
  request.facts.stream = flag(json, "stream");
  request.facts.prompt_tokens = count_prompt(*prompt);
  if (const auto model = json.find("model"); model != json.end() && model->is_string()) {
    request.model = model->get<std::string>();
  }
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {  // the newer name wins
    const auto at = json.find(name);
    if (at == json.end() || at->is_null()) continue;
    if (!at->is_number_integer() || at->get<int64_t>() < 1 || at->get<int64_t>() > kTokensMax) {
      return invalid_argument(std::string(name) + ": found " + at->dump() +
                              ", expected 1 to 10000000");
    }
    request.facts.tokens_asked = at->get<int64_t>();
  }
  if (const auto options = json.find("stream_options");
      options != json.end() && options->is_object()) {
    request.facts.include_usage = flag(*options, "include_usage");
    request.facts.continuous_usage =
        request.facts.include_usage && flag(*options, "continuous_usage_stats");
  }
  return request;
}

}  // namespace prony::mock
