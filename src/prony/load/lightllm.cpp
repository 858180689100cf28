// lightllm: POST /generate_stream of LightLLM: TGI's form with a running count beside each token
// and finished: true in the last event.
#include "prony/load/token_event.hpp"

namespace prony::load {
namespace {

class LightLlmParser final : public TokenEventParser {
 private:
  bool read_member(std::string_view key, Element value, Delta& delta) override {
    if (key == "finished") {
      return flag(value, delta.ended, delta, "finished is neither true nor false");
    } else if (key == "finish_reason") {
      delta.finish_reason = string_or_empty(value);
    } else {
      other(key, value);
    }
    return true;
  }

  void read_token_member(std::string_view key, Element value, Delta& delta) override {
    if (key == "count_output_tokens") delta.usage.completion_tokens = count_or_none(value);
    if (key == "prompt_tokens") delta.usage.prompt_tokens = count_or_none(value);
  }

  // The event shows one id, but the count may jump: held-back tokens came with it.
  void end_event(StreamMemory& memory, Delta& delta) override {
    const int32_t count = delta.usage.completion_tokens;
    if (delta.token_ids == 0 || count <= memory.token_ids) return;
    delta.token_ids = count - memory.token_ids;
    memory.token_ids = count;
  }
};

class LightLlm final : public Dialect {
 public:
  const DialectInfo& info() const override {
    static constexpr DialectInfo kInfo{
        .name = "lightllm",
        .aliases = "",
        .path = "/generate_stream",
        .form = {},
        .text = "pieces",
        .end = "`finished: true`",
        .counts = "in every event",
        .takes_token_ids = false,
        .continuous_usage = true,
        .channels = false,
        .names_model = false,
        .ignores_eos = true,
        .identity = "",
        .identity_members = "",
    };
    return kInfo;
  }

  std::string body(const BodyPrompt& prompt, const BodyOptions& options) const override {
    auto body = token_event_body(prompt, options);
    if (options.ignore_eos) body["parameters"]["ignore_eos"] = true;
    return write_body(std::move(body), options);
  }

  std::unique_ptr<EventParser> make_parser() const override {
    return std::make_unique<LightLlmParser>();
  }
};

}  // namespace

const Dialect& lightllm() {
  static const LightLlm instance;
  return instance;
}

}  // namespace prony::load
