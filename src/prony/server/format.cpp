#include "prony/server/format.hpp"

#include <fmt/format.h>

#include <utility>

namespace prony::server {
namespace {

using core::Json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
std::string event(const Json& json) {
  return fmt::format("data: {}\n\n", dump(json));
}

Json usage_json(const Usage& usage) {
  Json json;
  json["prompt_tokens"] = usage.prompt_tokens;
  json["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  json["completion_tokens"] = usage.completion_tokens;
  json["prompt_tokens_details"]["cached_tokens"] = usage.cached_tokens;
  return json;
}

Json byte_list(const std::string& bytes) {
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

}  // namespace

Formatter::Formatter(Options options) : options_(std::move(options)) {}

Json Formatter::head(const char* object) const {
  Json json;
  json["id"] = options_.id;
  json["object"] = object;
  json["created"] = options_.created_s;
  json["model"] = options_.model;
  return json;
}

// Chat: {"content": [{token, logprob, bytes, top_logprobs}]}; completions: four parallel lists.
Json Formatter::logprobs_json(const std::vector<LogprobEntry>& entries) const {
  Json json;
  if (options_.chat) {
    json["content"] = Json::array();
    for (const auto& entry : entries) {
      Json item;
      item["token"] = entry.token;
      item["logprob"] = entry.logprob;
      item["bytes"] = byte_list(entry.bytes);
      item["top_logprobs"] = Json::array();
      for (const auto& [token, logprob] : entry.top) {
        Json alternative;
        alternative["token"] = token;
        alternative["logprob"] = logprob;
        alternative["bytes"] = byte_list(token);
        item["top_logprobs"].push_back(std::move(alternative));
      }
      json["content"].push_back(std::move(item));
    }
    return json;
  }
  json["text_offset"] = Json::array();
  json["token_logprobs"] = Json::array();
  json["tokens"] = Json::array();
  json["top_logprobs"] = Json::array();
  int64_t offset = 0;
  for (const auto& entry : entries) {
    json["text_offset"].push_back(offset);
    json["token_logprobs"].push_back(entry.logprob);
    json["tokens"].push_back(entry.token);
    Json top = Json::object();
    for (const auto& [token, logprob] : entry.top) top[token] = logprob;
    json["top_logprobs"].push_back(std::move(top));
    offset += static_cast<int64_t>(entry.token.size());
  }
  return json;
}

// `chat_field` is "delta" or "message".
Json Formatter::choice(const ChoicePiece& piece, const char* chat_field) const {
  Json json;
  json["index"] = piece.index;
  if (options_.chat) {
    Json& content = json[chat_field];
    content = Json::object();
    if (std::string_view(chat_field) == "message") content["role"] = "assistant";
    content["content"] = piece.text;
  } else {
    json["text"] = piece.text;
  }
  json["logprobs"] = options_.logprobs ? logprobs_json(piece.logprobs) : Json(nullptr);
  json["finish_reason"] =
      piece.finish == Finish::kNone ? Json(nullptr) : Json(finish_name(piece.finish));
  json["stop_reason"] = piece.stop_reason ? Json(*piece.stop_reason) : Json(nullptr);
  if (options_.token_ids) json["token_ids"] = piece.token_ids;
  return json;
}

std::string Formatter::role_event(int32_t index, const Usage* usage) const {
  Json json = head("chat.completion.chunk");
  Json item;
  item["index"] = index;
  item["delta"]["role"] = "assistant";
  item["delta"]["content"] = "";
  item["logprobs"] = nullptr;
  item["finish_reason"] = nullptr;
  json["choices"].push_back(std::move(item));
  if (usage != nullptr) json["usage"] = usage_json(*usage);
  return event(json);
}

std::string Formatter::piece_event(const ChoicePiece& piece, const Usage* usage) const {
  Json json = head(options_.chat ? "chat.completion.chunk" : "text_completion");
  json["choices"].push_back(choice(piece, "delta"));
  if (usage != nullptr) json["usage"] = usage_json(*usage);
  return event(json);
}

std::string Formatter::usage_event(const Usage& usage) const {
  Json json = head(options_.chat ? "chat.completion.chunk" : "text_completion");
  json["choices"] = Json::array();
  json["usage"] = usage_json(usage);
  return event(json);
}

std::string Formatter::error_event(std::string_view error_json) {
  return fmt::format("data: {}\n\n", error_json);
}

std::string Formatter::whole(std::span<const ChoicePiece> choices, const Usage& usage) const {
  Json json = head(options_.chat ? "chat.completion" : "text_completion");
  json["choices"] = Json::array();
  for (const auto& piece : choices) json["choices"].push_back(choice(piece, "message"));
  json["usage"] = usage_json(usage);
  return dump(json);
}

}  // namespace prony::server
