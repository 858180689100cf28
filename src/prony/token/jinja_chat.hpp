// JinjaChatTemplate: the chat template of a checkpoint. Messages are rendered, then encoded with
// the template's control tokens parsed; what users wrote stays text even where it spells one. The
// template brings its own begin token and nothing adds another, as transformers does it.
// Thread safety: immutable; any thread.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/token/chat.hpp"
#include "prony/token/jinja.hpp"
#include "prony/token/tokenizer.hpp"

namespace prony::token {

/// What templates call bos_token and eos_token.
struct ChatTokens {
  std::string bos, eos;
};

class JinjaChatTemplate final : public ChatTemplate {
 public:
  /// Keeps `tokenizer`; `name` is for messages. Error: kInvalidArgument, "NAME:LINE: ...".
  static Result<std::unique_ptr<JinjaChatTemplate>> create(
      std::string_view text, std::shared_ptr<const Tokenizer> tokenizer, ChatTokens tokens,
      std::string_view name);

  /// Error: kInvalidArgument: no messages, an unknown role, or what the template refuses.
  Result<std::vector<TokenId>> render(std::span<const ChatMessage> messages,
                                      const ChatOptions& options = {}) const override;
  /// The text before it is encoded, with the contents of messages marked.
  Result<jinja::Text> render_text(std::span<const ChatMessage> messages,
                                  const ChatOptions& options = {}) const;

 private:
  JinjaChatTemplate(jinja::Template parsed, std::shared_ptr<const Tokenizer> tokenizer,
                    ChatTokens tokens, bool knows_developer)
      : template_(std::move(parsed)),
        tokenizer_(std::move(tokenizer)),
        tokens_(std::move(tokens)),
        knows_developer_(knows_developer) {}
  jinja::Template template_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  ChatTokens tokens_;
  bool knows_developer_;  // others are given such messages as those of the system
};

/// For a checkpoint without a template: refuses every chat.
class NoChatTemplate final : public ChatTemplate {
 public:
  Result<std::vector<TokenId>> render(std::span<const ChatMessage> messages,
                                      const ChatOptions& options = {}) const override;
};

}  // namespace prony::token
