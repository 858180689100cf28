#include "prony/load/dialect.hpp"

#include <fmt/format.h>

#include <array>

namespace prony::load {
namespace {

bool has_alias(std::string_view aliases, std::string_view name) {
  while (!aliases.empty()) {
    const auto comma = aliases.find(',');
    if (aliases.substr(0, comma) == name) return true;
    if (comma == std::string_view::npos) return false;
    aliases.remove_prefix(comma + 1);
  }
  return false;
}

// The member of `json` named `key` if it is text, else empty.
std::string text_member(const core::Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return {};
  return found->get<std::string>();
}

std::string error_member(const core::Json& json) {
  if (!json.is_object()) return {};
  if (const auto error = json.find("error"); error != json.end()) {
    if (error->is_string()) return error->get<std::string>();
    if (error->is_object()) {
      if (auto text = text_member(*error, "message"); !text.empty()) return text;
      if (auto text = text_member(*error, "type"); !text.empty()) return text;
    }
  }
  for (const char* key : {"message", "detail", "error_message"}) {
    if (auto text = text_member(json, key); !text.empty()) return text;
  }
  // FastAPI: {"detail":[{"msg":"field required","loc":[..]}]}
  if (const auto detail = json.find("detail"); detail != json.end() && detail->is_array() &&
                                               !detail->empty() && detail->front().is_object()) {
    return text_member(detail->front(), "msg");
  }
  return {};
}

}  // namespace

std::span<const Dialect* const> dialects() {
  static const std::array<const Dialect*, 11> kAll = {
      &openai_chat(), &openai_completions(), &openai_responses(), &sglang(), &llamacpp(), &tgi(),
      &ollama(),      &vllm_generate(),      &triton(),           &trtllm(), &lightllm()};
  return kAll;
}

Result<const Dialect*> find_dialect(std::string_view name, std::string_view flag) {
  std::string names;
  for (const auto* dialect : dialects()) {
    const auto& info = dialect->info();
    if (name == info.name || has_alias(info.aliases, name)) return dialect;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  }
  return invalid_argument(fmt::format("{}: found '{}', expected one of {}", flag, name, names));
}

std::vector<const Dialect*> dialects_of_path(std::string_view endpoint) {
  endpoint = endpoint.substr(0, endpoint.find('?'));
  std::vector<const Dialect*> found;
  size_t longest = 1;  // "/completions" is also the end of "/chat/completions"
  for (const auto* dialect : dialects()) {
    if (dialect == &trtllm()) continue;  // openai-completions with a trap: only by its name
    std::string_view tail = dialect->info().path;
    if (tail.starts_with("/v1/")) tail.remove_prefix(3);  // gateways mount elsewhere
    if (const auto model = tail.find("{model}"); model != std::string_view::npos) {
      if (endpoint.find(tail.substr(0, model)) == std::string_view::npos) continue;
      if (endpoint.ends_with(tail.substr(model + 7))) return {dialect};
      continue;
    }
    if (!endpoint.ends_with(tail) || tail.size() < longest) continue;
    if (tail.size() > longest) found.clear();
    longest = tail.size();
    found.push_back(dialect);
  }
  return found;
}

namespace {

Result<void> check_one_answer(const core::Json& extra, std::string_view flag) {
  for (const char* key : {"n", "best_of", "n_cmpl"}) {
    const auto found = extra.find(key);
    if (found != extra.end() && !found->is_null() && *found != 1) {
      return invalid_argument(fmt::format("{}: found {} = {}, expected 1 (one answer a request)",
                                          flag, key, found->dump()));
    }
  }
  return {};
}

}  // namespace

Result<void> check_extra_body(const core::Json& extra, std::string_view flag) {
  if (!extra.is_object()) {
    return invalid_argument(
        fmt::format("{}: found {}, expected a JSON object", flag, extra.type_name()));
  }
  if (auto one = check_one_answer(extra, flag); !one) return one.error();
  for (const char* key : {"sampling_params", "parameters", "options"}) {
    const auto found = extra.find(key);
    if (found == extra.end() || !found->is_object()) continue;
    if (auto one = check_one_answer(*found, flag); !one) return one.error();
  }
  const auto stream = extra.find("stream");
  if (stream != extra.end() && *stream != true) {
    return invalid_argument(
        fmt::format("{}: found stream = {}, expected true", flag, stream->dump()));
  }
  return {};
}

void put_prompt(const BodyPrompt& prompt, core::Json& body) {
  if (prompt.ids.empty()) {
    body["prompt"] = prompt.text;
  } else {
    body["prompt"] = prompt.ids;
  }
}

void put_sampling(const BodyOptions& options, core::Json& body) {
  body["stream"] = true;
  if (options.temperature) body["temperature"] = *options.temperature;
  if (options.ignore_eos) body["ignore_eos"] = true;
}

std::string write_body(core::Json body, const BodyOptions& options) {
  body.merge_patch(options.extra);  // RFC 7396 is exactly: objects merge, null removes
  return body.dump(-1, ' ', false, core::Json::error_handler_t::replace);
}

std::string one_line(std::string_view text, size_t bytes_max) {
  std::string out;
  out.reserve(std::min(text.size(), bytes_max) + 3);
  for (const char c : text.substr(0, bytes_max)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      if (!out.empty() && out.back() != ' ') out += ' ';
    } else {
      out += c;
    }
  }
  if (text.size() > bytes_max) {
    // Not in the middle of a character: drop its continuation bytes, then its first byte.
    size_t end = out.size();
    while (end > 0 && (static_cast<unsigned char>(out[end - 1]) & 0xC0) == 0x80) --end;
    if (end > 0 && (static_cast<unsigned char>(out[end - 1]) & 0xC0) == 0xC0) --end;
    out.resize(end);
    out += "...";
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string error_text(std::string_view body) {
  const auto json = core::parse_json(body, "body");
  if (json.ok()) {
    if (const auto text = error_member(json.value()); !text.empty()) return one_line(text);
  }
  return one_line(body);
}

}  // namespace prony::load
