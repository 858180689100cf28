#include "prony/token/byte_tokenizer.hpp"

#include <algorithm>

#include "prony/core/check.hpp"

namespace prony::token {
namespace {

constexpr TokenId kEosIds[] = {kByteEndOfText, kByteEndOfTurn};

// The printable ASCII characters but space, for ids that stand for no byte: a space could be
// trimmed away and the token would be invisible after all.
constexpr char kFirstPrintable = '!';
constexpr int32_t kPrintableCount = '~' - '!' + 1;

}  // namespace

ByteTokenizer::ByteTokenizer(int32_t vocabulary_size)
    : vocabulary_size_(vocabulary_size),
      special_tokens_{{{kByteBos, "<|begin|>"},
                       {kByteEndOfText, "<|end_of_text|>"},
                       {kByteSystem, "<|system|>"},
                       {kByteUser, "<|user|>"},
                       {kByteAssistant, "<|assistant|>"},
                       {kByteTool, "<|tool|>"},
                       {kByteEndOfTurn, "<|end|>"},
                       {kBytePad, "<|pad|>"}}} {
  PRONY_CHECK(vocabulary_size >= kByteVocabulary);
}

std::span<const TokenId> ByteTokenizer::eos_ids() const {
  return kEosIds;
}

void ByteTokenizer::append_encoded(std::string_view text, const EncodeOptions& options,
                                   std::vector<TokenId>& out) const {
  // No reserve(): an exact one on every append would make many appends quadratic.
  if (options.add_bos) out.push_back(kByteBos);
  size_t at = 0;
  const auto is_plain = [&options](size_t begin, size_t end) {
    return std::any_of(options.plain.begin(), options.plain.end(), [&](const ByteRange& range) {
      return range.begin < end && begin < range.end;
    });
  };
  while (at < text.size()) {
    if (options.parse_special && text[at] == '<') {
      const SpecialToken* found = nullptr;
      for (const auto& special : special_tokens_) {
        if (!text.substr(at).starts_with(special.text)) continue;
        if (!is_plain(at, at + special.text.size())) found = &special;
      }
      if (found != nullptr) {
        out.push_back(found->id);
        at += found->text.size();
        continue;
      }
    }
    out.push_back(static_cast<uint8_t>(text[at]));
    ++at;
  }
}

void ByteTokenizer::append_bytes(TokenId id, const DecodeOptions& options, std::string& out) const {
  PRONY_CHECK(is_valid(id), "token id outside the vocabulary");
  if (id < kByteBos) {
    out.push_back(static_cast<char>(static_cast<uint8_t>(id)));
  } else if (id < kByteVocabulary) {
    if (!options.skip_special) out += special_tokens_[static_cast<size_t>(id - kByteBos)].text;
  } else {
    out.push_back(static_cast<char>(kFirstPrintable + (id - kByteVocabulary) % kPrintableCount));
  }
}

}  // namespace prony::token
