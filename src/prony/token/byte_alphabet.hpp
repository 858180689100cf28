// ByteLevel's alphabet: every byte written as one printable character, so that a vocabulary of
// bytes can be JSON. Printable Latin-1 stands for itself, the other 68 bytes follow from U+0100 on.
// Thread safety: pure functions. Source: Radford et al., "Language models are unsupervised
// multitask learners", 2019 (GPT-2), its bytes_to_unicode.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace prony::token {

/// The bytes that `text` stands for, or nullopt if one of its characters is not of the alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view text);
/// `bytes` in the alphabet.
std::string to_byte_alphabet(std::string_view bytes);

}  // namespace prony::token
