#include "prony/load/openai_chunk.hpp"

namespace prony::load {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// `into` = `into` + `piece`, kept in `joined` (where `into` may live already).
void append_text(std::string_view piece, std::string& joined, std::string_view& into) {
  if (into.data() != joined.data()) joined.assign(into);
  joined.append(piece);
  into = joined;
}

}  // namespace

void OpenAiChunkParser::read(Object event, StreamMemory& memory, Delta& delta) {
  for (const auto& [key, value] : event) {
    if (key == "choices") {
      payload();
      if (!read_choices(value, memory, delta)) return;
    } else if (key == "usage") {
      read_openai_usage(value, delta);
    } else {
      other(key, value);
    }
  }
}

bool OpenAiChunkParser::read_choices(element value, StreamMemory& memory, Delta& delta) {
  array choices;
  if (value.is_null()) return true;  // gateways
  if (value.get(choices) != simdjson::SUCCESS) return broken(delta, "choices is not a list");
  size_t count = 0;
  for (const auto choice : choices) {
    if (++count > 1) return broken(delta, "an event holds several choices, expected one");
    object fields;
    if (choice.get(fields) != simdjson::SUCCESS) return broken(delta, "a choice is no object");
    if (!read_choice(fields, memory, delta)) return false;
  }
  return true;
}

bool OpenAiChunkParser::read_choice(object choice, StreamMemory& memory, Delta& delta) {
  for (const auto& [key, value] : choice) {
    if (key == "index") {
      int64_t index = 0;
      if (value.get(index) == simdjson::SUCCESS && index != 0) {
        return broken(delta, "a choice other than 0, expected one choice a request");
      }
    } else if (key == "finish_reason") {
      if (value.is_null()) continue;
      if (!value.is_string()) return broken(delta, "finish_reason is not text");
      delta.finish_reason = string_or_empty(value);
    } else if (key == "token_ids") {
      array ids;
      if (value.get(ids) != simdjson::SUCCESS) continue;
      delta.token_ids = static_cast<int32_t>(ids.size());
    } else if (!read_choice_field(key, value, delta)) {
      return false;
    }
  }
  end_choice(memory, delta);
  return true;
}

bool OpenAiChunkParser::add_text(element value, std::string& joined, std::string_view& into) {
  if (value.is_null()) return true;
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    if (into.empty()) {
      into = text;  // the common case: no copy
    } else if (!text.empty()) {
      append_text(text, joined, into);  // name and arguments of a tool call
    }
    return true;
  }
  array parts;
  if (value.get(parts) != simdjson::SUCCESS) return false;
  for (const auto part : parts) {
    std::string_view piece;
    if (part["text"].get(piece) == simdjson::SUCCESS) append_text(piece, joined, into);
  }
  return true;
}

}  // namespace prony::load
