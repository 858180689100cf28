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
      return broken(delta, "text is not text");
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
                                       .aliases = "openai,vllm,completions,sglang-oai",
                                       .path = "/v1/completions",
                                       .form = {},
                                       .text = "pieces",
                                       .end = "`finish_reason` or `[DONE]`",
                                       .counts = "at the end; in every event where the server can",
                                       .takes_token_ids = true,
                                       .continuous_usage = true,
                                       .channels = false,
                                       .names_model = true,
                                       .ignores_eos = true,
                                       .identity = "",
                                       .identity_members = ""};
    return kInfo;
  }

  std::string body(const BodyPrompt& prompt, const BodyOptions& options) const override {
    core::Json body = core::Json::object();
    body["model"] = options.model;
    put_prompt(prompt, body);
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
