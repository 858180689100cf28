#include "prony/token/chat.hpp"

#include <fmt/format.h>

#include <optional>

#include "prony/token/byte_tokenizer.hpp"
#include "prony/token/quote.hpp"

namespace prony::token {
namespace {

std::optional<TokenId> marker_of(std::string_view role) {
  if (role == "system" || role == "developer") return kByteSystem;
  if (role == "user") return kByteUser;
  if (role == "assistant") return kByteAssistant;
  if (role == "tool") return kByteTool;
  return std::nullopt;
}

}  // namespace

Result<std::vector<TokenId>> ByteChatTemplate::render(std::span<const ChatMessage> messages,
                                                      const ChatOptions& options) const {
  if (messages.empty()) {
    return invalid_argument("messages: found an empty list, expected at least one message");
  }
  const ByteTokenizer tokenizer;
  std::vector<TokenId> ids{kByteBos};
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto marker = marker_of(messages[i].role);
    if (!marker) {
      return invalid_argument(fmt::format(
          "messages[{}].role: found {}, expected system, developer, user, assistant or tool", i,
          quote(messages[i].role)));
    }
    ids.push_back(*marker);
    tokenizer.append_encoded(messages[i].content, {}, ids);
    ids.push_back(kByteEndOfTurn);
  }
  if (options.add_generation_prompt) ids.push_back(kByteAssistant);
  return ids;
}

}  // namespace prony::token
