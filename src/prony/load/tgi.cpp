// tgi: POST /generate_stream of text-generation-inference. The last event alone has generated_text
// (the whole text again, not read) and, asked for, details with finish_reason and counts.
#include "prony/load/token_event.hpp"

namespace prony::load {
namespace {

class TgiParser final : public TokenEventParser {
 private:
  bool read_member(std::string_view key, Element value, Delta& delta) override {
    if (key == "generated_text") {
      if (value.is_null()) return true;
      if (!value.is_string()) return broken(delta, "generated_text is not text");
      delta.ended = true;
    } else if (key == "details") {
      return read_details(value, delta);
    } else {
      other(key, value);
    }
    return true;
  }

  static bool read_details(Element value, Delta& delta) {
    Object details;
    if (value.is_null()) return true;
    if (value.get(details) != simdjson::SUCCESS) return broken(delta, "details is not an object");
    for (const auto& [key, field] : details) {
      if (key == "finish_reason") delta.finish_reason = string_or_empty(field);
      if (key == "generated_tokens") delta.usage.completion_tokens = count_or_none(field);
      if (key == "input_length") delta.usage.prompt_tokens = count_or_none(field);
    }
    return true;
  }
};

class Tgi final : public Dialect {
 public:
  const DialectInfo& info() const override {
    static constexpr DialectInfo kInfo{
        .name = "tgi",
        .aliases = "",
        .path = "/generate_stream",
        .form = {},
        .text = "pieces",
        .end = "`generated_text`",
        .counts = "one token an event; at the end",
        .takes_token_ids = false,
        .continuous_usage = true,
        .channels = false,
        .names_model = false,
        .ignores_eos = true,
        .identity = "/info",
        .identity_members = "/model_id",
    };
    return kInfo;
  }

  std::string body(const BodyPrompt& prompt, const BodyOptions& options) const override {
    auto body = token_event_body(prompt, options);
    body["parameters"]["details"] = true;
    if (options.ignore_eos) body["parameters"]["ignore_eos_token"] = true;
    return write_body(std::move(body), options);
  }

  std::unique_ptr<EventParser> make_parser() const override {
    return std::make_unique<TgiParser>();
  }
};

}  // namespace

const Dialect& tgi() {
  static const Tgi instance;
  return instance;
}

}  // namespace prony::load
