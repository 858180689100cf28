#include "prony/load/message_writer.hpp"

#include <fmt/format.h>

#include <utility>

#include "prony/net/http_client.hpp"

namespace prony::load {

std::string MessageWriter::id(std::string_view kind, int64_t index) const {
  return fmt::format("{}-{}{}", run_id, kind, index);
}

std::string MessageWriter::format(const BodyPrompt& prompt, std::string id_text) const {
  auto all = endpoint.headers;
  const auto framing = endpoint.dialect->info().form.framing;
  all.emplace_back("Accept", framing == StreamForm::Framing::kSse ? "text/event-stream"
                                                                  : "application/x-ndjson");
  all.emplace_back("X-Request-Id", std::move(id_text));
  return net::format_request("POST", endpoint.origin, endpoint.target, all,
                             endpoint.dialect->body(prompt, body));
}

std::string MessageWriter::message(const workload::Prompt& prompt, int32_t output_tokens,
                                   std::string id_text) const {
  return format({.text = prompt.text, .ids = prompt.ids, .output_tokens = output_tokens},
                std::move(id_text));
}

std::string MessageWriter::turn(std::span<const BodyMessage> history, std::string_view text,
                                int32_t output_tokens, std::string id_text) const {
  if (endpoint.dialect->info().takes_history) {
    return format({.text = text, .ids = {}, .output_tokens = output_tokens, .history = history},
                  std::move(id_text));
  }
  std::string whole;
  for (size_t i = 0; i < history.size(); ++i) {
    if (i > 0 && history[i].role == "user") whole += '\n';
    whole += history[i].text;
  }
  if (!history.empty()) whole += '\n';
  whole += text;
  return format({.text = whole, .ids = {}, .output_tokens = output_tokens}, std::move(id_text));
}

}  // namespace prony::load
