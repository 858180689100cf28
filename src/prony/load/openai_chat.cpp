// openai-chat: POST /v1/chat/completions. Text in choices[0].delta: content (also refusal),
// reasoning or reasoning_content, tool_calls or the older function_call.
#include "prony/load/openai_body.hpp"
#include "prony/load/openai_chunk.hpp"

namespace prony::load {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

class ChatParser final : public OpenAiChunkParser {
 private:
  bool read_choice_field(std::string_view key, element value, Delta& delta) override {
    // A gateway that did not split the answer sends it whole, as `message`.
    if (key != "delta" && key != "message") return true;
    if (value.is_null()) return true;
    object fields;
    if (value.get(fields) != simdjson::SUCCESS) return broken(delta, "delta is not an object");
    for (const auto& [name, field] : fields) {
      if (name == "content" || name == "refusal") {
        if (!add_text(field, joined_text_, delta.text)) return broken(delta, "content is not text");
      } else if (name == "reasoning" || name == "reasoning_content") {
        // Some servers send both names with the same text.
        if (!delta.reasoning.empty()) continue;
        if (!add_text(field, joined_reasoning_, delta.reasoning)) {
          return broken(delta, "reasoning is not text");
        }
      } else if (name == "tool_calls") {
        if (!read_tool_calls(field, delta)) return false;
      } else if (name == "function_call") {
        if (!read_function(field, delta)) return false;
      }
    }
    return true;
  }

  bool read_tool_calls(element value, Delta& delta) {
    array calls;
    if (value.is_null()) return true;
    if (value.get(calls) != simdjson::SUCCESS) return broken(delta, "tool_calls is not a list");
    for (const auto call : calls) {
      element function;
      if (call["function"].get(function) != simdjson::SUCCESS) continue;
      if (!read_function(function, delta)) return false;
    }
    return true;
  }

  bool read_function(element value, Delta& delta) {
    object function;
    if (value.is_null()) return true;
    if (value.get(function) != simdjson::SUCCESS) return broken(delta, "function is not an object");
    for (const auto& [name, field] : function) {
      if (name != "name" && name != "arguments") continue;
      // Some servers send arguments as an object instead of text; it counts, unread.
      if (field.is_object()) {
        if (delta.tool_calls.empty()) delta.tool_calls = "{}";
      } else if (!add_text(field, joined_tools_, delta.tool_calls)) {
        return broken(delta, "a tool call is not text");
      }
    }
    return true;
  }
};

class OpenAiChat final : public Dialect {
 public:
  const DialectInfo& info() const override {
    static constexpr DialectInfo kInfo{.name = "openai-chat",
                                       .aliases = "openai-chat-completions,chat",
                                       .path = "/v1/chat/completions",
                                       .form = {},
                                       .text = "pieces",
                                       .end = "`finish_reason` or `[DONE]`",
                                       .counts = "at the end; in every event where the server can",
                                       .takes_token_ids = false,
                                       .continuous_usage = true,
                                       .channels = true,
                                       .names_model = true,
                                       .ignores_eos = true,
                                       .identity = "",
                                       .identity_members = "",
                                       .takes_history = true};
    return kInfo;
  }

  std::string body(const BodyPrompt& prompt, const BodyOptions& options) const override {
    core::Json messages = core::Json::array();
    for (const auto& message : prompt.history) {
      messages.push_back({{"role", message.role}, {"content", message.text}});
    }
    messages.push_back({{"role", "user"}, {"content", prompt.text}});
    core::Json body = core::Json::object();
    body["model"] = options.model;
    body["messages"] = std::move(messages);
    return finish_openai_body(std::move(body), prompt, options);
  }

  std::unique_ptr<EventParser> make_parser() const override {
    return std::make_unique<ChatParser>();
  }
};

}  // namespace

const Dialect& openai_chat() {
  static const OpenAiChat instance;
  return instance;
}

}  // namespace prony::load
