#include "prony/token/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "prony/token/byte_tokenizer.hpp"
#include "prony/token/detokenizer.hpp"
#include "prony/token/hf_tokenizer.hpp"
#include "prony/token/quote.hpp"

namespace prony::token {

bool Tokenizer::is_special(TokenId id) const {
  const auto specials = special_tokens();
  const auto found = std::lower_bound(
      specials.begin(), specials.end(), id,
      [](const SpecialToken& special, TokenId wanted) { return special.id < wanted; });
  return found != specials.end() && found->id == id;
}

bool Tokenizer::is_eos(TokenId id) const {
  const auto ids = eos_ids();
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

std::optional<TokenId> Tokenizer::special_id(std::string_view text) const {
  for (const auto& special : special_tokens()) {
    if (special.text == text) return special.id;
  }
  return std::nullopt;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<TokenId> ids;
  append_encoded(text, options, ids);
  return ids;
}

int64_t Tokenizer::count(std::string_view text) const {
  return static_cast<int64_t>(encode(text).size());
}

std::string Tokenizer::decode(std::span<const TokenId> ids, const DecodeOptions& options) const {
  std::string bytes;
  DecodeOptions now = options;
  for (const TokenId id : ids) {
    append_bytes(id, now, bytes);
    now.at_text_start = false;
  }
  std::string text;
  Utf8Stream stream;
  stream.push(bytes, text);
  stream.flush(text);
  return text;
}

Result<std::shared_ptr<const Tokenizer>> open_tokenizer(std::string_view name,
                                                        std::string_view flag) {
  if (name == "byte") return std::shared_ptr<const Tokenizer>(std::make_shared<ByteTokenizer>());
  std::error_code ignored;
  const std::filesystem::path path(name);
  if (std::filesystem::exists(path, ignored)) {
    auto opened = HfTokenizer::open(path.string());
    if (!opened) return opened.error();
    return std::shared_ptr<const Tokenizer>(std::move(opened).value());
  }
  return invalid_argument(fmt::format(
      "{}: found {}, expected 'byte' or a folder with tokenizer.json", flag, quote(name)));
}

}  // namespace prony::token
