#include "prony/server/api.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace prony::server {
namespace {

using core::Json;
using token::ChatMessage;

constexpr size_t kMaxPrompts = 256, kMaxStops = 16;
constexpr int32_t kMaxLogprobs = 20;

// Reads fields of one JSON object and keeps the first complaint, so that parsing reads as a list.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  bool has(const char* name) const {
    const auto found = json_.find(name);
    return found != json_.end() && !found->is_null();
  }
  const Json& at(const char* name) const { return json_.at(name); }

  void complain(const char* name, const std::string& expected) {
    if (error_) return;
    const auto text = has(name) ? at(name).dump(-1, ' ', false, Json::error_handler_t::replace)
                                : std::string("nothing");
    const auto found = text.size() > 60 ? text.substr(0, 60) + "..." : text;
    error_ = ApiError{400, "BadRequestError",
                      fmt::format("{}: found {}, expected {}", name, found, expected), name};
  }

  void boolean(const char* name, bool& target) {
    if (!has(name)) return;
    if (!at(name).is_boolean()) return complain(name, "true or false");
    target = at(name).get<bool>();
  }

  template <class Target>
  void integer(const char* name, Target& target, int64_t low, int64_t high) {
    if (!has(name)) return;
    const Json& value = at(name);
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() &&
         value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) ||
        value.get<int64_t>() < low || value.get<int64_t>() > high) {
      return complain(name, fmt::format("a whole number from {} to {}", low, high));
    }
    assign(target, value.get<int64_t>());
  }

  void number(const char* name, float& target, double low, double high) {
    if (!has(name)) return;
    if (!at(name).is_number() || !(at(name).get<double>() >= low) ||
        !(at(name).get<double>() <= high)) {
      return complain(name, fmt::format("a number from {} to {}", low, high));
    }
    target = at(name).get<float>();
  }

  void text(const char* name, std::string& target) {
    if (!has(name)) return;
    if (!at(name).is_string()) return complain(name, "a string");
    target = at(name).get<std::string>();
  }

  std::optional<ApiError>& error() { return error_; }

 private:
  template <class T>
  static void assign(T& target, int64_t value) {
    target = static_cast<T>(value);
  }
  template <class T>
  static void assign(std::optional<T>& target, int64_t value) {
    target = static_cast<T>(value);
  }

  const Json& json_;
  std::optional<ApiError> error_;
};

bool is_id_list(const Json& json) {
  if (!json.is_array() || json.empty()) return false;
  for (const auto& item : json) {
    if (!item.is_number_integer() || item.get<int64_t>() < 0 ||
        item.get<int64_t>() > std::numeric_limits<int32_t>::max()) {
      return false;
    }
  }
  return true;
}

// A string, a list of ids, a list of strings, or a list of lists of ids.
void read_prompts(Fields& fields, std::vector<Prompt>& prompts) {
  constexpr const char* kExpected = "a string, token ids, or a list of either";
  if (!fields.has("prompt")) return fields.complain("prompt", kExpected);
  const Json& json = fields.at("prompt");
  if (json.is_string()) {
    prompts.emplace_back(json.get<std::string>());
  } else if (is_id_list(json)) {
    prompts.emplace_back(json.get<std::vector<int32_t>>());
  } else if (json.is_array() && !json.empty() && json.size() <= kMaxPrompts) {
    for (const auto& item : json) {
      if (item.is_string()) {
        prompts.emplace_back(item.get<std::string>());
      } else if (is_id_list(item)) {
        prompts.emplace_back(item.get<std::vector<int32_t>>());
      } else {
        return fields.complain("prompt", kExpected);
      }
    }
  } else {
    fields.complain("prompt", kExpected);
  }
}

// Content is a string or a list of parts, of which only text is understood.
bool read_content(const Json& json, std::string& content) {
  if (json.is_string()) {
    content = json.get<std::string>();
    return true;
  }
  if (json.is_null()) return true;  // an assistant's tool call
  if (!json.is_array()) return false;
  for (const auto& part : json) {
    // Comparing keeps a `type` that is no string from throwing.
    if (!part.is_object() || !part.contains("type") || part["type"] != "text" ||
        !part.contains("text") || !part["text"].is_string()) {
      return false;
    }
    content += part["text"].get<std::string>();
  }
  return true;
}

void read_messages(Fields& fields, std::vector<ChatMessage>& messages) {
  constexpr const char* kExpected = "a list of {role, content} with text content";
  if (!fields.has("messages") || !fields.at("messages").is_array() ||
      fields.at("messages").empty()) {
    return fields.complain("messages", kExpected);
  }
  for (const auto& item : fields.at("messages")) {
    ChatMessage message;
    if (!item.is_object() || !item.contains("role") || !item["role"].is_string() ||
        !item.contains("content") || !read_content(item["content"], message.content)) {
      return fields.complain("messages", kExpected);
    }
    message.role = item["role"].get<std::string>();
    messages.push_back(std::move(message));
  }
}

void read_stop(Fields& fields, std::vector<std::string>& stop) {
  constexpr const char* kExpected = "a string or up to 16 strings, none empty";
  if (!fields.has("stop")) return;
  const Json& json = fields.at("stop");
  if (json.is_string()) {
    stop.push_back(json.get<std::string>());
  } else if (json.is_array() && json.size() <= kMaxStops) {
    for (const auto& item : json) {
      if (!item.is_string()) return fields.complain("stop", kExpected);
      stop.push_back(item.get<std::string>());
    }
  } else {
    return fields.complain("stop", kExpected);
  }
  for (const auto& text : stop) {
    if (text.empty()) return fields.complain("stop", kExpected);
  }
}

// Completions: `logprobs: n`. Chat: `logprobs: true, top_logprobs: n`.
void read_logprobs(Fields& fields, GenerationRequest& request) {
  if (!request.chat) return fields.integer("logprobs", request.logprobs, 0, kMaxLogprobs);
  bool wanted = false;
  fields.boolean("logprobs", wanted);
  if (!wanted) return;
  request.logprobs = 0;
  fields.integer("top_logprobs", request.logprobs, 0, kMaxLogprobs);
}

void read_stream_options(Fields& fields, GenerationRequest& request) {
  if (!fields.has("stream_options")) return;
  if (!fields.at("stream_options").is_object()) {
    return fields.complain("stream_options", "an object");
  }
  if (!request.stream) {
    return fields.complain("stream_options", "nothing, since stream is not true");
  }
  Fields options(fields.at("stream_options"));
  options.boolean("include_usage", request.include_usage);
  options.boolean("continuous_usage_stats", request.continuous_usage);
  if (options.error()) fields.error() = options.error();
  // As vLLM: usage in every chunk only beside the final one.
  request.continuous_usage = request.continuous_usage && request.include_usage;
}

void read_sampling(Fields& fields, GenerationRequest& request) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  fields.integer("max_tokens", request.max_tokens, 1, kMax);
  // The newer name wins where both are given.
  fields.integer("max_completion_tokens", request.max_tokens, 1, kMax);
  fields.integer("min_tokens", request.min_tokens, 0, kMax);
  fields.boolean("ignore_eos", request.ignore_eos);
  read_stop(fields, request.stop);
  fields.number("temperature", request.temperature, 0, 100);
  fields.number("top_p", request.top_p, 1e-6, 1);
  fields.integer("top_k", request.top_k, -1, kMax);
  if (request.top_k == -1) request.top_k = 0;  // vLLM's other spelling of "all"
  fields.integer("seed", request.seed, std::numeric_limits<int64_t>::min(),
                 std::numeric_limits<int64_t>::max());
  read_logprobs(fields, request);
  int64_t choices = 1;
  fields.integer("n", choices, 1, kMax);
  if (choices != 1) fields.complain("n", "1: several choices a prompt are not supported");
  bool echo = false;
  fields.boolean("echo", echo);
  if (echo) fields.complain("echo", "false: echo is not supported");
}

ApiResult<Json> parse_object(std::string_view body) {
  auto json = core::parse_json(body, "body");
  if (!json) return ApiError{400, "BadRequestError", json.error().message, ""};
  if (!json->is_object()) {
    return ApiError{400, "BadRequestError", "body: expected a JSON object", ""};
  }
  return std::move(json).value();
}

}  // namespace

std::string format_error(const ApiError& error) {
  Json json;
  json["error"]["message"] = error.message;
  json["error"]["type"] = error.type;
  json["error"]["param"] = error.param.empty() ? Json(nullptr) : Json(error.param);
  json["error"]["code"] = error.status;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ApiResult<GenerationRequest> parse_generation(std::string_view body, bool chat,
                                              const SamplingDefaults& defaults) {
  const auto parsed = parse_object(body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return *error;
  Fields fields(std::get<Json>(parsed));
  GenerationRequest request;
  request.chat = chat;
  request.temperature = defaults.temperature;
  request.top_p = defaults.top_p;
  request.top_k = defaults.top_k;
  fields.text("model", request.model);
  if (chat) {
    read_messages(fields, request.messages);
  } else {
    read_prompts(fields, request.prompts);
  }
  read_sampling(fields, request);
  fields.boolean("stream", request.stream);
  read_stream_options(fields, request);
  fields.boolean("return_token_ids", request.return_token_ids);
  fields.integer("priority", request.priority, std::numeric_limits<int32_t>::min(),
                 std::numeric_limits<int32_t>::max());
  fields.text("cache_salt", request.cache_salt);
  if (fields.error()) return *fields.error();
  return request;
}

ApiResult<TokenizeRequest> parse_tokenize(std::string_view body) {
  const auto parsed = parse_object(body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return *error;
  Fields fields(std::get<Json>(parsed));
  TokenizeRequest request;
  fields.boolean("add_special_tokens", request.add_special_tokens);
  if (fields.has("messages")) {
    std::vector<ChatMessage> messages;
    read_messages(fields, messages);
    request.input = std::move(messages);
  } else {
    std::string text;
    if (!fields.has("prompt")) fields.complain("prompt", "a string");
    fields.text("prompt", text);
    request.input = std::move(text);
  }
  if (fields.error()) return *fields.error();
  return request;
}

ApiResult<std::vector<int32_t>> parse_detokenize(std::string_view body) {
  const auto parsed = parse_object(body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return *error;
  Fields fields(std::get<Json>(parsed));
  if (!fields.has("tokens") ||
      !(is_id_list(fields.at("tokens")) || fields.at("tokens") == Json::array())) {
    fields.complain("tokens", "a list of token ids");
  }
  if (fields.error()) return *fields.error();
  return fields.at("tokens").get<std::vector<int32_t>>();
}

}  // namespace prony::server
