// vllm-generate: POST /generate of vLLM's demonstration server (vllm.entrypoints.api_server): a
// JSON object a line, in older versions each ended by a NUL, whose text is a list of one string:
// the prompt and all output so far. No counts and no end marker: the end of the body is the only
// one, and it must come as HTTP says, not by a closed connection.
#include "prony/load/json_event.hpp"

namespace prony::load {
namespace {

constexpr StreamForm kForm{
    .framing = StreamForm::Framing::kLines, .ends_with_body = true, .echoes_prompt = true};

class VllmGenerateParser final : public JsonEventParser {
 public:
  VllmGenerateParser() : JsonEventParser(kForm) {}
  void on_request(std::string_view message, StreamMemory& memory) override {
    remember_prompt(body_member(message, "prompt"), memory);
  }

 private:
  void read(Object event, StreamMemory& memory, Delta& delta) override {
    for (const auto& [key, value] : event) {
      if (key == "text") {
        payload();
        if (!read_text(value, memory, delta)) return;
      } else {
        other(key, value);
      }
    }
  }

  bool read_text(Element value, StreamMemory& memory, Delta& delta) {
    simdjson::dom::array outputs;
    if (value.get(outputs) != simdjson::SUCCESS) return broken(delta, "text is not a list");
    if (outputs.size() != 1) {
      return broken(delta, "text is not a list of one, expected one answer a request");
    }
    std::string_view all;
    if (outputs.at(0).get(all) != simdjson::SUCCESS) return broken(delta, "text is not text");
    memory.text = StreamMemory::Text::kWhole;
    delta.text = added_text(all, true, memory);
    return true;
  }
};

class VllmGenerate final : public Dialect {
 public:
  const DialectInfo& info() const override {
    static constexpr DialectInfo kInfo{
        .name = "vllm-generate",
        .aliases = "",
        .path = "/generate",
        .form = kForm,
        .text = "whole",
        .end = "the end of the body",
        .counts = "none: events are counted",
        .takes_token_ids = false,
        .continuous_usage = false,
        .channels = false,
        .names_model = false,
        .ignores_eos = true,
        .identity = "",
        .identity_members = "",
    };
    return kInfo;
  }

  std::string body(const BodyPrompt& prompt, const BodyOptions& options) const override {
    core::Json body = core::Json::object();
    body["prompt"] = prompt.text;
    body["max_tokens"] = prompt.output_tokens;
    put_sampling(options, body);
    return write_body(std::move(body), options);
  }

  std::unique_ptr<EventParser> make_parser() const override {
    return std::make_unique<VllmGenerateParser>();
  }
};

}  // namespace

const Dialect& vllm_generate() {
  static const VllmGenerate instance;
  return instance;
}

}  // namespace prony::load
