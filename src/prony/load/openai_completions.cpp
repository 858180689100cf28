// openai-completions: POST /v1/completions. Text in choices[0].text, which may be empty although a
// token was made; the prompt is text or token ids.
#include "prony/load/openai_body.hpp"
#include "prony/load/openai_chunk.hpp"

namespace prony::load {
namespace {

class CompletionsParser final : public OpenAiChunkParser {
 private:
  bool read_choice_field(std::string_view key, simdjson::dom::element value,
                         Delta& delta) override {
    if (key == "text" && !add_text(value, joined_text_, delta.text)) {
      delta.kind = Delta::Kind::kBroken;
      delta.message = "text is not text";
      return false;
    }
    // vLLM and gateways put thinking beside the text.
    if ((key == "reasoning" || key == "reasoning_content") && value.is_string() &&
        delta.reasoning.empty()) {
      return add_text(value, joined_reasoning_, delta.reasoning);
    }
    return true;
  }
};

class OpenAiCompletions final : public Dialect {
 public:
  const DialectInfo& info() const override {
    static constexpr DialectInfo kInfo{.name = "openai-completions",
                                       .aliases = "openai,vllm,completions",
                                       .path = "/v1/completions",
                                       .takes_token_ids = true,
                                       .continuous_usage = true,
                                       .channels = false};
    return kInfo;
  }

  std::string body(const BodyPrompt& prompt, const BodyOptions& options) const override {
    core::Json body = core::Json::object();
    body["model"] = options.model;
    if (prompt.ids.empty()) {
      body["prompt"] = prompt.text;
    } else {
      body["prompt"] = prompt.ids;
    }
    return finish_openai_body(std::move(body), prompt, options);
  }

  std::unique_ptr<EventParser> make_parser() const override {
    return std::make_unique<CompletionsParser>();
  }
};

}  // namespace

const Dialect& openai_completions() {
  static const OpenAiCompletions instance;
  return instance;
}

}  // namespace prony::load
