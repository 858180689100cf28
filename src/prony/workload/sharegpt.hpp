// ShareGPT: conversations of people with chat models, as JSON:
//   [{"id": .., "conversations": [{"from": "human", "value": ".."}, {"from": "gpt", ..}, ..]}, ..]
// Only lengths are taken, of every turn: the texts are other people's, and known to every cache;
// prompts of these lengths are made like all others. An object at a time, so that a file of
// hundreds of megabytes costs its own size and no more.
// Source of the format: the ShareGPT_V3 dumps that serving benchmarks use. Thread safety: pure
// function if `count` is.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "prony/core/result.hpp"
#include "prony/workload/trace.hpp"

namespace prony::workload {

/// Tokens of a text; null: one for every 4 bytes begun, and the trace's note says so.
using TokenCounter = std::function<int64_t(std::string_view)>;

/// A turn is what people ("human", "user") and the system said since the last answer, and the
/// answer ("gpt", "chatgpt", "assistant", "bing", "bard"; several in a row are one). Answers before
/// the first prompt and prompts after the last answer are left out; a conversation without a whole
/// turn counts as skipped. The trace has no times; its rows carry session and turn.
/// Error: kInvalidArgument "FILE:LINE: ..." with the line where the conversation begins.
Result<Trace> parse_sharegpt(std::string_view content, const std::string& path,
                             const TokenCounter& count);

}  // namespace prony::workload
