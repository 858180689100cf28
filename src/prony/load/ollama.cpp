// ollama: POST /api/generate of Ollama: a JSON object a line, text pieces in response, thinking in
// thinking; the last line has done: true and the counts. The prompt goes raw, as it is, because the
// model's template would add to its length; {"raw":null} in --extra-body lets Ollama apply it.
#include "prony/load/json_event.hpp"

namespace prony::load {
namespace {

constexpr StreamForm kForm{.framing = StreamForm::Framing::kLines};

class OllamaParser final : public JsonEventParser {
 public:
  OllamaParser() : JsonEventParser(kForm) {}

 private:
  void read(Object event, StreamMemory&, Delta& delta) override {
    for (const auto& [key, value] : event) {
      if (key == "response") {
        payload();
        if (!text(value, delta.text, delta, "response is not text")) return;
      } else if (key == "thinking") {
        if (!text(value, delta.reasoning, delta, "thinking is not text")) return;
      } else if (key == "done") {
        if (!flag(value, delta.ended, delta, "done is neither true nor false")) return;
      } else if (key == "done_reason") {
        delta.finish_reason = string_or_empty(value);
      } else if (key == "eval_count") {
        delta.usage.completion_tokens = count_or_none(value);
      } else if (key == "prompt_eval_count") {
        delta.usage.prompt_tokens = count_or_none(value);
      } else {
        other(key, value);
      }
    }
    note_usage(delta);
  }
};

class Ollama final : public Dialect {
 public:
  const DialectInfo& info() const override {
    static constexpr DialectInfo kInfo{
        .name = "ollama",
        .aliases = "",
        .path = "/api/generate",
        .form = kForm,
        .text = "pieces",
        .end = "`done: true`",
        .counts = "at the end",
        .takes_token_ids = false,
        .continuous_usage = false,
        .channels = true,
        .names_model = true,
        .ignores_eos = false,
        .identity = "/api/tags",
        .identity_members = "/models/0/name",
    };
    return kInfo;
  }

  std::string body(const BodyPrompt& prompt, const BodyOptions& options) const override {
    core::Json body = core::Json::object();
    body["model"] = options.model;
    body["prompt"] = prompt.text;
    body["raw"] = true;
    body["stream"] = true;
    body["options"]["num_predict"] = prompt.output_tokens;
    if (options.temperature) body["options"]["temperature"] = *options.temperature;
    return write_body(std::move(body), options);
  }

  std::unique_ptr<EventParser> make_parser() const override {
    return std::make_unique<OllamaParser>();
  }
};

}  // namespace

const Dialect& ollama() {
  static const Ollama instance;
  return instance;
}

}  // namespace prony::load
