#include "prony/load/openai_chunk.hpp"

#include <cstring>
#include <limits>

namespace prony::load {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr size_t kFirstCapacity = 4096;  // grows with the largest event seen

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

std::string_view string_or_empty(element value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? text : std::string_view{};
}

// Counts come as integers; some gateways write 5.0. Anything else says nothing.
int32_t count_or_none(element value) {
  int64_t number = -1;
  if (value.get(number) != simdjson::SUCCESS) {
    double real = -1;
    if (value.get(real) != simdjson::SUCCESS || !(real >= 0 && real <= 2e9)) return -1;
    number = static_cast<int64_t>(real);
    if (static_cast<double>(number) != real) return -1;
  }
  if (number < 0 || number > std::numeric_limits<int32_t>::max()) return -1;
  return static_cast<int32_t>(number);
}

void read_usage(element value, Delta& delta) {
  object usage;
  if (value.get(usage) != simdjson::SUCCESS) return;  // null in every chunk: TGI, SGLang
  for (const auto& [key, field] : usage) {
    if (key == "prompt_tokens") {
      delta.usage.prompt_tokens = count_or_none(field);
    } else if (key == "completion_tokens") {
      delta.usage.completion_tokens = count_or_none(field);
    } else if (key == "completion_tokens_details" || key == "prompt_tokens_details") {
      object details;
      if (field.get(details) != simdjson::SUCCESS) continue;
      for (const auto& [detail, count] : details) {
        if (detail == "reasoning_tokens") delta.usage.reasoning_tokens = count_or_none(count);
        if (detail == "cached_tokens") delta.usage.cached_tokens = count_or_none(count);
      }
    }
  }
  delta.has_usage = delta.usage.completion_tokens >= 0 || delta.usage.prompt_tokens >= 0;
}

// `into` = `into` + `piece`, kept in `joined` (where `into` may live already).
void append_text(std::string_view piece, std::string& joined, std::string_view& into) {
  if (into.data() != joined.data()) joined.assign(into);
  joined.append(piece);
  into = joined;
}

bool broken(Delta& delta, std::string_view why) {
  delta.kind = Delta::Kind::kBroken;
  delta.message = why;
  return false;
}

}  // namespace

OpenAiChunkParser::OpenAiChunkParser() {
  padded_.resize(kFirstCapacity + simdjson::SIMDJSON_PADDING);
}

void OpenAiChunkParser::parse(std::string_view data, std::string_view event, Delta& delta) {
  delta = Delta{};
  const bool is_error = event == "error";
  if (!is_error && (data.size() < 2 || data[0] != '{')) {
    const auto word = trimmed(data);
    if (word == "[DONE]") {
      delta.kind = Delta::Kind::kDone;
      return;
    }
    if (word.empty()) return;  // an empty keep-alive event
  }
  parse_json(data, is_error, delta);
}

void OpenAiChunkParser::parse_json(std::string_view data, bool is_error, Delta& delta) {
  if (padded_.size() < data.size() + simdjson::SIMDJSON_PADDING) {
    padded_.resize(2 * data.size() + simdjson::SIMDJSON_PADDING);
  }
  std::memcpy(padded_.data(), data.data(), data.size());
  element root;
  object top;
  const bool is_json = parser_.parse(padded_.data(), data.size(), false).get(root) == 0;
  if (is_error && !(is_json && root.get(top) == simdjson::SUCCESS)) {
    delta.kind = Delta::Kind::kError;  // event: error with plain text
    message_ = one_line(data);
    delta.message = message_;
    return;
  }
  if (!is_json) {
    broken(delta, "an event is not JSON");
    return;
  }
  if (root.get(top) != simdjson::SUCCESS) {
    broken(delta, "an event is not a JSON object");
    return;
  }
  element error;
  bool has_error = false;
  bool flat_error = false;
  bool has_choices = false;
  for (const auto& [key, value] : top) {
    if (key == "choices") {
      has_choices = true;
      if (!read_choices(value, delta)) return;
    } else if (key == "usage") {
      read_usage(value, delta);
    } else if (key == "error" && !value.is_null()) {
      error = value;
      has_error = true;
    } else if (key == "object" || key == "type") {
      flat_error |= string_or_empty(value) == "error";  // older vLLM
    }
  }
  if (has_error || is_error || (flat_error && !has_choices)) {
    read_error(has_error ? &error : nullptr, top, delta);
  }
}

bool OpenAiChunkParser::read_choices(element value, Delta& delta) {
  array choices;
  if (value.is_null()) return true;  // gateways
  if (value.get(choices) != simdjson::SUCCESS) return broken(delta, "choices is not a list");
  size_t count = 0;
  for (const auto choice : choices) {
    if (++count > 1) return broken(delta, "an event holds several choices, expected one");
    object fields;
    if (choice.get(fields) != simdjson::SUCCESS) return broken(delta, "a choice is no object");
    if (!read_choice(fields, delta)) return false;
  }
  return true;
}

bool OpenAiChunkParser::read_choice(object choice, Delta& delta) {
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
  return true;
}

// Forms: {"error":{"message","type","code"}}, {"error":"text"}, {"object":"error","message":..},
// {"type":"error",..}, and any object in an event named error.
void OpenAiChunkParser::read_error(const element* error, object top, Delta& delta) {
  delta.kind = Delta::Kind::kError;
  object fields = top;
  std::string_view text;
  if (error != nullptr && error->get(fields) != simdjson::SUCCESS) text = string_or_empty(*error);
  std::string_view type;
  for (const auto& [key, value] : fields) {
    if (key == "message" && text.empty()) text = string_or_empty(value);
    if (key == "type" && value.is_string()) type = string_or_empty(value);
    if (key == "code") {
      int64_t code = 0;
      if (value.get(code) == simdjson::SUCCESS && code > 0 && code < 1'000'000) {
        delta.error_code = static_cast<int32_t>(code);
      }
    }
  }
  message_ = one_line(text.empty() ? type : text);
  if (message_.empty()) message_ = "an error object without a message";
  delta.message = message_;
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
