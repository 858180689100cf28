// MessageWriter: the HTTP messages of a run, from a prompt and, in a conversation, what was said
// before it. A dialect without messages gets the conversation as one text: the earlier prompts and
// answers as they were, a line break before each later prompt.
// Thread safety: immutable; any thread.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "prony/load/dialect.hpp"
#include "prony/load/endpoint.hpp"
#include "prony/workload/prompt_builder.hpp"

namespace prony::load {

struct MessageWriter {
  const Endpoint& endpoint;
  const BodyOptions& body;
  std::string run_id;

  /// X-Request-Id of request `index`; `kind` tells the warm-up from the load.
  std::string id(std::string_view kind, int64_t index) const;
  std::string message(const workload::Prompt& prompt, int32_t output_tokens,
                      std::string id_text) const;
  std::string turn(std::span<const BodyMessage> history, std::string_view text,
                   int32_t output_tokens, std::string id_text) const;

 private:
  std::string format(const BodyPrompt& prompt, std::string id_text) const;
};

}  // namespace prony::load
