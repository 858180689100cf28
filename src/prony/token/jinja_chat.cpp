#include "prony/token/jinja_chat.hpp"

#include <fmt/format.h>

#include "prony/token/quote.hpp"

namespace prony::token {
namespace {

bool is_role(std::string_view role) {
  return role == "system" || role == "developer" || role == "user" || role == "assistant" ||
         role == "tool";
}

}  // namespace

Result<std::unique_ptr<JinjaChatTemplate>> JinjaChatTemplate::create(
    std::string_view text, std::shared_ptr<const Tokenizer> tokenizer, ChatTokens tokens,
    std::string_view name) {
  auto parsed = jinja::Template::parse(text, name);
  if (!parsed) return parsed.error();
  return std::unique_ptr<JinjaChatTemplate>(
      new JinjaChatTemplate(std::move(parsed).value(), std::move(tokenizer), std::move(tokens),
                            text.find("developer") != std::string_view::npos));
}

Result<jinja::Text> JinjaChatTemplate::render_text(std::span<const ChatMessage> messages,
                                                   const ChatOptions& options) const {
  if (messages.empty()) {
    return invalid_argument("messages: found an empty list, expected at least one message");
  }
  core::Json list = core::Json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    // A role may become part of a control token, so only known words are let through.
    if (!is_role(messages[i].role)) {
      return invalid_argument(fmt::format(
          "messages[{}].role: found {}, expected system, developer, user, assistant or tool", i,
          quote(messages[i].role)));
    }
    const bool as_system = messages[i].role == "developer" && !knows_developer_;
    list.push_back(
        {{"role", as_system ? "system" : messages[i].role}, {"content", messages[i].content}});
  }
  core::Json context;
  context["messages"] = std::move(list);
  context["bos_token"] = tokens_.bos;
  context["eos_token"] = tokens_.eos;
  context["add_generation_prompt"] = options.add_generation_prompt;
  jinja::RenderOptions wanted;
  wanted.foreign = {"messages"};
  wanted.now_s = core::realtime_ns() / core::kNanosPerSecond;
  auto text = template_.render(context, wanted);
  if (!text) return Error{text.error().code, "messages: " + text.error().message};
  return text;
}

Result<std::vector<TokenId>> JinjaChatTemplate::render(std::span<const ChatMessage> messages,
                                                       const ChatOptions& options) const {
  const auto text = render_text(messages, options);
  if (!text) return text.error();
  return tokenizer_->encode(text->bytes, {.parse_special = true, .plain = text->foreign});
}

Result<std::vector<TokenId>> NoChatTemplate::render(std::span<const ChatMessage>,
                                                    const ChatOptions&) const {
  return invalid_argument("messages: the model has no chat template, expected /v1/completions");
}

}  // namespace prony::token
