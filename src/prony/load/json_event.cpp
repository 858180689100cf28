#include "prony/load/json_event.hpp"

#include <cstring>
#include <limits>

namespace prony::load {
namespace {

constexpr size_t kFirstCapacity = 4096;  // grows with the largest event seen

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

}  // namespace

JsonEventParser::JsonEventParser(const StreamForm& form) : EventParser(form) {
  padded_.resize(kFirstCapacity + simdjson::SIMDJSON_PADDING);
}

void JsonEventParser::parse(std::string_view data, std::string_view event, StreamMemory& memory,
                            Delta& delta) {
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
  Element root;
  Object top;
  const bool is_json = parse_padded(data, root);
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
  event_name_ = event;
  has_error_ = flat_error_ = has_payload_ = false;
  read(top, memory, delta);
  if (delta.kind == Delta::Kind::kBroken) return;
  if (has_error_ || is_error || (flat_error_ && !has_payload_)) read_error(top, delta);
}

bool JsonEventParser::parse_padded(std::string_view data, Element& root) {
  if (padded_.size() < data.size() + simdjson::SIMDJSON_PADDING) {
    padded_.resize(2 * data.size() + simdjson::SIMDJSON_PADDING);
  }
  std::memcpy(padded_.data(), data.data(), data.size());
  return parser_.parse(padded_.data(), data.size(), false).get(root) == simdjson::SUCCESS;
}

// Forms: {"error":{"message","type","code"}}, {"error":"text"}, {"object":"error","message":..},
// {"type":"error",..}, and any object in an event named error.
void JsonEventParser::read_error(Object top, Delta& delta) {
  delta.kind = Delta::Kind::kError;
  Object fields = top;
  std::string_view text;
  if (has_error_ && error_.get(fields) != simdjson::SUCCESS) text = string_or_empty(error_);
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

bool JsonEventParser::text(Element value, std::string_view& into, Delta& delta,
                           std::string_view why) {
  if (value.is_null()) return true;
  return value.get(into) == simdjson::SUCCESS || broken(delta, why);
}

std::string_view JsonEventParser::string_or_empty(Element value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? text : std::string_view{};
}

int32_t JsonEventParser::count_or_none(Element value) {
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

void JsonEventParser::read_openai_usage(Element value, Delta& delta) {
  Object usage;
  if (value.get(usage) != simdjson::SUCCESS) return;
  for (const auto& [key, field] : usage) {
    if (key == "prompt_tokens" || key == "input_tokens") {
      delta.usage.prompt_tokens = count_or_none(field);
    } else if (key == "completion_tokens" || key == "output_tokens") {
      delta.usage.completion_tokens = count_or_none(field);
    } else if (key.ends_with("_tokens_details")) {
      Object details;
      if (field.get(details) != simdjson::SUCCESS) continue;
      for (const auto& [detail, count] : details) {
        if (detail == "reasoning_tokens") delta.usage.reasoning_tokens = count_or_none(count);
        if (detail == "cached_tokens") delta.usage.cached_tokens = count_or_none(count);
      }
    }
  }
  note_usage(delta);
}

std::string_view JsonEventParser::body_member(std::string_view message, std::string_view key) {
  const auto head = message.find("\r\n\r\n");
  if (head == std::string_view::npos) return {};
  Element root;
  if (!parse_padded(message.substr(head + 4), root)) return {};
  std::string_view text;
  return root[key].get(text) == simdjson::SUCCESS ? text : std::string_view{};
}

}  // namespace prony::load
