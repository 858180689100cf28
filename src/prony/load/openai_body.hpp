// What the request bodies of the OpenAI dialects share: limits, streaming, usage, extras.
// Thread safety: pure function.
#pragma once
#include <string>

#include "prony/load/dialect.hpp"

namespace prony::load {

/// Adds the common members to `body` (model and prompt are there), then --extra-body: its members
/// win, objects merge, null removes. `max_tokens`, not max_completion_tokens: the older name is the
/// one that every self-hosted server honours, and a length that is silently ignored is worse than
/// the 400 of a server that wants the newer one.
std::string finish_openai_body(core::Json body, const BodyPrompt& prompt,
                               const BodyOptions& options);

}  // namespace prony::load
