// triton: POST /v2/models/MODEL/generate_stream, the generate extension of Triton Inference Server,
// before TensorRT-LLM (an ensemble) or its vLLM backend. Text in text_output: pieces, or all so far
// (accumulate_tokens), perhaps with the prompt in front (exclude_input_in_output: false). No
// counts, no finish reason, no [DONE]: the end of the body is the only end.
#include "prony/load/json_event.hpp"

namespace prony::load {
namespace {

constexpr StreamForm kForm{
    .framing = StreamForm::Framing::kSse, .ends_with_body = true, .echoes_prompt = true};

class TritonParser final : public JsonEventParser {
 public:
  TritonParser() : JsonEventParser(kForm) {}
  void on_request(std::string_view message, StreamMemory& memory) override {
    remember_prompt(body_member(message, "text_input"), memory);
  }

 private:
  void read(Object event, StreamMemory& memory, Delta& delta) override {
    for (const auto& [key, value] : event) {
      if (key == "text_output") {
        payload();
        std::string_view output;
        if (!read_output(value, output, delta)) return;
        delta.text = added_text(output, false, memory);
      } else {
        other(key, value);
      }
    }
  }

  // A tensor of one element comes as the element, of several as a list.
  static bool read_output(Element value, std::string_view& output, Delta& delta) {
    simdjson::dom::array list;
    if (value.get(list) != simdjson::SUCCESS) {
      return text(value, output, delta, "text_output is not text");
    }
    if (list.size() != 1) {
      return broken(delta, "text_output is not a list of one, expected one answer a request");
    }
    return text(list.at(0).value(), output, delta, "text_output is not text");
  }
};

class Triton final : public Dialect {
 public:
  const DialectInfo& info() const override {
    static constexpr DialectInfo kInfo{
        .name = "triton",
        .aliases = "tensorrt-llm",
        .path = "/v2/models/{model}/generate_stream",
        .form = kForm,
        .text = "either",
        .end = "the end of the body",
        .counts = "none: events are counted",
        .takes_token_ids = false,
        .continuous_usage = false,
        .channels = false,
        .names_model = true,
        .ignores_eos = true,
        .identity = "/v2",
        .identity_members = "/extensions",
    };
    return kInfo;
  }

  std::string body(const BodyPrompt& prompt, const BodyOptions& options) const override {
    core::Json body = core::Json::object();
    body["text_input"] = prompt.text;
    body["max_tokens"] = prompt.output_tokens;
    put_sampling(options, body);
    return write_body(std::move(body), options);
  }

  std::unique_ptr<EventParser> make_parser() const override {
    return std::make_unique<TritonParser>();
  }
};

}  // namespace

const Dialect& triton() {
  static const Triton instance;
  return instance;
}

}  // namespace prony::load
