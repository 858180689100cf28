// ChatTemplate: messages to the prompt that a chat model expects. The built-in one is for the byte
// tokenizer and sets each message between role markers:
//   <|begin|> (<|role|> content <|end|>)* [<|assistant|>]
// Jinja templates of checkpoints come in behind the same interface. Templates bring their own begin
// marker, so nobody adds another; message text never becomes a marker.
// Thread safety: immutable; any thread.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/token/tokenizer.hpp"

namespace prony::token {

struct ChatMessage {
  std::string role;     // system, developer (same as system), user, assistant, tool
  std::string content;  // text
};

struct ChatOptions {
  bool add_generation_prompt = true;  // open the assistant's turn at the end
};

class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;
  /// Error: kInvalidArgument for no messages or an unknown role: "messages[2].role: found 'x',
  /// expected ...".
  virtual Result<std::vector<TokenId>> render(std::span<const ChatMessage> messages,
                                              const ChatOptions& options = {}) const = 0;
};

class ByteChatTemplate final : public ChatTemplate {
 public:
  Result<std::vector<TokenId>> render(std::span<const ChatMessage> messages,
                                      const ChatOptions& options = {}) const override;
  /// Tokens that render() adds around the contents of so many messages.
  static constexpr int32_t overhead_tokens(int32_t messages, const ChatOptions& options = {}) {
    return 1 + 2 * messages + (options.add_generation_prompt ? 1 : 0);
  }
};

}  // namespace prony::token
