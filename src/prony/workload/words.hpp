// The words prompts are made of: short, common English words, because such words are one token each
// in most vocabularies, which is what the best-effort length without a tokenizer rests on.
// Thread safety: constants.
#pragma once
#include <span>
#include <string_view>

namespace prony::workload {

/// 512 different words of 2 to 9 lower-case letters. Part of the format: equal seeds give equal
/// prompts only while this list and its order stay as they are.
std::span<const std::string_view> common_words();

}  // namespace prony::workload
