// sglang: POST /generate of SGLang. By default every event repeats all text and token ids so far;
// servers started with --stream-output (later --incremental-streaming-output) send pieces. Which it
// is shows in the number of ids beside meta_info.completion_tokens, or, without ids, in the text.
#include "prony/load/json_event.hpp"

namespace prony::load {
namespace {

class SglangParser final : public JsonEventParser {
 private:
  void read(Object event, StreamMemory& memory, Delta& delta) override {
    std::string_view all;
    int32_t ids = -1;
    for (const auto& [key, value] : event) {
      if (key == "text") {
        payload();
        if (!text(value, all, delta, "text is not text")) return;
      } else if (key == "output_ids") {
        simdjson::dom::array list;
        if (value.get(list) == simdjson::SUCCESS) ids = static_cast<int32_t>(list.size());
      } else if (key == "meta_info") {
        if (!read_meta(value, delta)) return;
      } else if (key == "index") {
        if (!only_answer(value, delta)) return;
      } else {
        other(key, value);
      }
    }
    if (ids >= 0) count_ids(ids, memory, delta);
    delta.text = added_text(all, true, memory);
  }

  bool read_meta(Element value, Delta& delta) {
    Object meta;
    if (value.is_null()) return true;
    if (value.get(meta) != simdjson::SUCCESS) return broken(delta, "meta_info is not an object");
    for (const auto& [key, field] : meta) {
      if (key == "finish_reason") {
        if (field.is_null()) continue;
        delta.ended = true;
        std::string_view reason = string_or_empty(field);
        // {"type":"length","length":3}
        if (field.is_object() && field["type"].get(reason) != simdjson::SUCCESS) reason = {};
        if (!field.is_object() && !field.is_string()) {
          return broken(delta, "finish_reason is neither text nor an object");
        }
        delta.finish_reason = reason;
      } else if (key == "completion_tokens") {
        delta.usage.completion_tokens = count_or_none(field);
      } else if (key == "prompt_tokens") {
        delta.usage.prompt_tokens = count_or_none(field);
      } else if (key == "cached_tokens") {
        delta.usage.cached_tokens = count_or_none(field);
      } else if (key == "reasoning_tokens") {
        delta.usage.reasoning_tokens = count_or_none(field);
      }
    }
    note_usage(delta);
    return true;
  }

  // The first event is the same in both forms; the next one with ids tells them apart.
  static void count_ids(int32_t ids, StreamMemory& memory, Delta& delta) {
    using Text = StreamMemory::Text;
    if (memory.text == Text::kUnknown && memory.token_ids > 0 && ids > 0 &&
        delta.usage.completion_tokens > memory.token_ids) {
      memory.text = ids >= delta.usage.completion_tokens ? Text::kWhole : Text::kPieces;
    }
    if (memory.text == Text::kPieces) {
      delta.token_ids = ids;
      memory.token_ids += ids;
    } else if (ids > memory.token_ids) {
      delta.token_ids = ids - memory.token_ids;
      memory.token_ids = ids;
    }
  }
};

class Sglang final : public Dialect {
 public:
  const DialectInfo& info() const override {
    static constexpr DialectInfo kInfo{
        .name = "sglang",
        .aliases = "sglang-native",
        .path = "/generate",
        .form = {},
        .text = "either",
        .end = "`meta_info.finish_reason` or `[DONE]`",
        .counts = "in every event",
        .takes_token_ids = true,
        .continuous_usage = true,
        .channels = false,
        .names_model = false,
        .ignores_eos = true,
        .identity = "/get_model_info",
        .identity_members = "/model_path",
    };
    return kInfo;
  }

  std::string body(const BodyPrompt& prompt, const BodyOptions& options) const override {
    core::Json body = core::Json::object();
    if (prompt.ids.empty()) {
      body["text"] = prompt.text;
    } else {
      body["input_ids"] = prompt.ids;
    }
    auto& sampling = body["sampling_params"];
    sampling["max_new_tokens"] = prompt.output_tokens;
    if (options.temperature) sampling["temperature"] = *options.temperature;
    if (options.ignore_eos) sampling["ignore_eos"] = true;
    body["stream"] = true;
    return write_body(std::move(body), options);
  }

  std::unique_ptr<EventParser> make_parser() const override {
    return std::make_unique<SglangParser>();
  }
};

}  // namespace

const Dialect& sglang() {
  static const Sglang instance;
  return instance;
}

}  // namespace prony::load
