#include "prony/load/token_event.hpp"

namespace prony::load {

void TokenEventParser::read(Object event, StreamMemory& memory, Delta& delta) {
  for (const auto& [key, value] : event) {
    if (key == "token") {
      payload();
      if (!read_token(value, delta)) return;
    } else if (key == "index" || key == "top_tokens") {
      continue;  // of the token, not of an answer
    } else if (!read_member(key, value, delta)) {
      return;
    }
  }
  note_usage(delta);
  end_event(memory, delta);
}

bool TokenEventParser::read_token(Element value, Delta& delta) {
  Object token;
  if (value.is_null()) return true;
  if (value.get(token) != simdjson::SUCCESS) return broken(delta, "token is not an object");
  bool special = false;
  for (const auto& [key, field] : token) {
    if (key == "text") {
      if (!text(field, delta.text, delta, "a token's text is not text")) return false;
    } else if (key == "id") {
      if (count_or_none(field) >= 0) delta.token_ids = 1;
    } else if (key == "special") {
      if (field.get(special) != simdjson::SUCCESS) special = false;
    } else {
      read_token_member(key, field, delta);
    }
  }
  if (special) delta.text = {};
  return true;
}

core::Json token_event_body(const BodyPrompt& prompt, const BodyOptions& options) {
  core::Json body = core::Json::object();
  body["inputs"] = prompt.text;
  auto& parameters = body["parameters"];
  parameters["max_new_tokens"] = prompt.output_tokens;
  if (options.temperature) {
    // Both refuse a temperature of 0; greedy is what it means.
    parameters["do_sample"] = *options.temperature > 0;
    if (*options.temperature > 0) parameters["temperature"] = *options.temperature;
  }
  return body;
}

}  // namespace prony::load
