// llamacpp: POST /completion, the native route of llama.cpp's server. Text pieces in content, ids
// in tokens, a running tokens_predicted; the last event has stop: true and no [DONE] follows.
#include "prony/load/json_event.hpp"

namespace prony::load {
namespace {

class LlamaCppParser final : public JsonEventParser {
 private:
  void read(Object event, StreamMemory&, Delta& delta) override {
    for (const auto& [key, value] : event) {
      if (key == "content") {
        payload();
        if (!text(value, delta.text, delta, "content is not text")) return;
      } else if (key == "tokens") {
        simdjson::dom::array ids;
        if (value.get(ids) == simdjson::SUCCESS) delta.token_ids = static_cast<int32_t>(ids.size());
      } else if (key == "stop") {
        if (!flag(value, delta.ended, delta, "stop is neither true nor false")) return;
      } else if (key == "stop_type") {
        if (const auto type = string_or_empty(value); type != "none") delta.finish_reason = type;
      } else if (key.starts_with("stopped_")) {  // before stop_type: stopped_eos, stopped_limit, ..
        bool stopped = false;
        if (value.get(stopped) == simdjson::SUCCESS && stopped) {
          delta.finish_reason = key.substr(std::string_view("stopped_").size());
        }
      } else if (key == "tokens_predicted") {
        delta.usage.completion_tokens = count_or_none(value);
      } else if (key == "tokens_evaluated") {
        delta.usage.prompt_tokens = count_or_none(value);
      } else if (key == "timings") {
        int64_t cached = 0;
        if (value["cache_n"].get(cached) == simdjson::SUCCESS) {
          delta.usage.cached_tokens = count_or_none(value["cache_n"].value());
        }
      } else if (key == "index") {
        if (!only_answer(value, delta)) return;
      } else {
        other(key, value);
      }
    }
    if (!delta.ended) delta.finish_reason = {};
    note_usage(delta);
  }
};

class LlamaCpp final : public Dialect {
 public:
  const DialectInfo& info() const override {
    static constexpr DialectInfo kInfo{
        .name = "llamacpp",
        .aliases = "llama.cpp",
        .path = "/completion",
        .form = {},
        .text = "pieces",
        .end = "`stop: true`",
        .counts = "in every event",
        .takes_token_ids = true,
        .continuous_usage = true,
        .channels = false,
        .names_model = true,
        .ignores_eos = true,
        .identity = "/props",
        .identity_members = "/model_alias,/model_path",
    };
    return kInfo;
  }

  std::string body(const BodyPrompt& prompt, const BodyOptions& options) const override {
    core::Json body = core::Json::object();
    body["model"] = options.model;
    put_prompt(prompt, body);
    body["n_predict"] = prompt.output_tokens;
    put_sampling(options, body);
    return write_body(std::move(body), options);
  }

  std::unique_ptr<EventParser> make_parser() const override {
    return std::make_unique<LlamaCppParser>();
  }
};

}  // namespace

const Dialect& llamacpp() {
  static const LlamaCpp instance;
  return instance;
}

}  // namespace prony::load
