// trtllm: POST /v1/completions of trtllm-serve: OpenAI's form, but releases of early 2025 repeat
// the whole text in the last chunk (TensorRT-LLM issue 3280). What it repeats is not counted again.
#include "prony/load/openai_chunk.hpp"

namespace prony::load {
namespace {

class TrtLlmParser final : public OpenAiChunkParser {
 private:
  bool read_choice_field(std::string_view key, Element value, Delta& delta) override {
    if (key != "text" || add_text(value, joined_text_, delta.text)) return true;
    return broken(delta, "text is not text");
  }
  void end_choice(StreamMemory& memory, Delta& delta) override {
    if (delta.finish_reason.empty()) {
      remember_text(delta.text, memory);
    } else {
      delta.text = last_added_text(delta.text, memory);
    }
  }
};

class TrtLlm final : public Dialect {
 public:
  const DialectInfo& info() const override {
    static const DialectInfo kInfo = [] {
      DialectInfo info = openai_completions().info();
      info.name = "trtllm";
      info.aliases = "trtllm-serve";
      return info;
    }();
    return kInfo;
  }

  std::string body(const BodyPrompt& prompt, const BodyOptions& options) const override {
    return openai_completions().body(prompt, options);
  }

  std::unique_ptr<EventParser> make_parser() const override {
    return std::make_unique<TrtLlmParser>();
  }
};

}  // namespace

const Dialect& trtllm() {
  static const TrtLlm instance;
  return instance;
}

}  // namespace prony::load
