// openai-responses: POST /v1/responses. Typed events: text in response.output_text.delta, thinking
// in response.reasoning_text.delta or reasoning_summary_text.delta, calls in *_call*.delta, whose
// name comes with response.output_item.added. The stream ends with response.completed or
// response.incomplete, which hold the usage; response.failed holds the error.
#include "prony/load/json_event.hpp"

namespace prony::load {
namespace {

class ResponsesParser final : public JsonEventParser {
 private:
  void read(Object event, StreamMemory&, Delta& delta) override {
    std::string_view type = event_name();  // gateways may keep only one of the two
    Element added, item, response;
    bool has_added = false, has_item = false, has_response = false;
    for (const auto& [key, value] : event) {
      if (key == "type" && value.is_string()) type = string_or_empty(value);
      if (key == "delta") {
        added = value;
        has_added = true;
      } else if (key == "item") {
        item = value;
        has_item = true;
      } else if (key == "response") {
        response = value;
        has_response = true;
      }
      other(key, value);
    }
    if (has_added && type.ends_with(".delta")) {
      read_added(type, added, delta);
    } else if (has_item && type == "response.output_item.added") {
      read_item(item, delta);
    } else if (has_response && (type == "response.completed" || type == "response.incomplete" ||
                                type == "response.failed" || type == "response.cancelled")) {
      read_end(type.substr(std::string_view("response.").size()), response, delta);
    }
  }

  static void read_added(std::string_view type, Element value, Delta& delta) {
    auto* into = &delta.text;
    if (type.find("reasoning") != std::string_view::npos) {
      into = &delta.reasoning;
    } else if (type.find("_call") != std::string_view::npos) {
      into = &delta.tool_calls;
    } else if (type != "response.output_text.delta" && type != "response.refusal.delta") {
      return;  // audio and the like
    }
    Object fields;
    if (value.get(fields) == simdjson::SUCCESS) {  // {"content":"We"}: some builds
      for (const auto& [key, field] : fields) {
        if (key == "content" || key == "text") *into = string_or_empty(field);
      }
      return;
    }
    text(value, *into, delta, "delta is not text");
  }

  // The model wrote the name of the function that it calls.
  static void read_item(Element value, Delta& delta) {
    std::string_view type;
    if (value["type"].get(type) != simdjson::SUCCESS || !type.ends_with("_call")) return;
    std::string_view name;
    if (value["name"].get(name) == simdjson::SUCCESS) delta.tool_calls = name;
  }

  void read_end(std::string_view how, Element value, Delta& delta) {
    Object response;
    if (value.get(response) != simdjson::SUCCESS) {
      broken(delta, "response is not an object");
      return;
    }
    delta.ended = true;
    delta.finish_reason = how;
    for (const auto& [key, field] : response) {
      if (key == "usage") {
        read_openai_usage(field, delta);
      } else if (key == "incomplete_details") {
        std::string_view reason;
        if (field["reason"].get(reason) == simdjson::SUCCESS) delta.finish_reason = reason;
      } else if (key == "error" && !field.is_null()) {
        fail(field);
      }
    }
  }
};

class OpenAiResponses final : public Dialect {
 public:
  const DialectInfo& info() const override {
    static constexpr DialectInfo kInfo{
        .name = "openai-responses",
        .aliases = "responses",
        .path = "/v1/responses",
        .form = {},
        .text = "pieces",
        .end = "`response.completed`, `response.incomplete`",
        .counts = "at the end",
        .takes_token_ids = false,
        .continuous_usage = false,
        .channels = true,
        .names_model = true,
        .ignores_eos = true,
        .identity = "",
        .identity_members = "",
        .takes_history = true,
    };
    return kInfo;
  }

  std::string body(const BodyPrompt& prompt, const BodyOptions& options) const override {
    core::Json body = core::Json::object();
    body["model"] = options.model;
    if (prompt.history.empty()) {
      body["input"] = prompt.text;
    } else {
      auto& input = body["input"];
      for (const auto& message : prompt.history) {
        input.push_back({{"role", message.role}, {"content", message.text}});
      }
      input.push_back({{"role", "user"}, {"content", prompt.text}});
    }
    body["max_output_tokens"] = prompt.output_tokens;
    body["stream"] = true;
    body["store"] = false;  // a load test leaves nothing behind
    if (options.temperature) body["temperature"] = *options.temperature;
    if (options.ignore_eos) body["ignore_eos"] = true;
    return write_body(std::move(body), options);
  }

  std::unique_ptr<EventParser> make_parser() const override {
    return std::make_unique<ResponsesParser>();
  }
};

}  // namespace

const Dialect& openai_responses() {
  static const OpenAiResponses instance;
  return instance;
}

}  // namespace prony::load
