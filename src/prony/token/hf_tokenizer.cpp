#include "prony/token/hf_tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "prony/core/check.hpp"
#include "prony/core/file.hpp"
#include "prony/token/byte_alphabet.hpp"
#include "prony/token/detokenizer.hpp"
#include "prony/token/json_steps.hpp"
#include "prony/token/quote.hpp"

namespace prony::token {
namespace {

namespace fs = std::filesystem;
using core::Json;

constexpr TokenId kIdMax = 4'000'000;

// A member that is a token's text, or an object with its content.
std::string token_text(const Json& config, const char* key) {
  if (!config.is_object() || !config.contains(key)) return {};
  const Json& value = config[key];
  if (value.is_string()) return value.get<std::string>();
  return text_or(value, "content", "");
}

// One template, or the one called "default" of several.
std::string template_text(const Json& config) {
  if (!config.is_object() || !config.contains("chat_template")) return {};
  const Json& value = config["chat_template"];
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return {};
  for (const Json& entry : value) {
    if (text_or(entry, "name", "") == "default") return text_or(entry, "template", "");
  }
  return {};
}

// Null if there is no such file.
Result<Json> read_optional(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return Json();
  const auto text = core::read_file(path.string());
  if (!text) return text.error();
  return core::parse_json(*text, path.string());
}

void append_ids(const Json& json, const char* key, std::vector<TokenId>& ids) {
  if (!json.is_object() || !json.contains(key)) return;
  const Json& value = json[key];
  const auto add = [&ids](const Json& id) {
    if (id.is_number_integer()) ids.push_back(id.get<TokenId>());
  };
  if (value.is_array()) {
    for (const Json& id : value) add(id);
  } else {
    add(value);
  }
}

std::string valid_utf8(std::string_view text) {
  std::string result;
  Utf8Stream stream;
  stream.push(text, result);
  stream.flush(result);
  return result;
}

}  // namespace

std::optional<TokenId> HfTokenizer::id_of(std::string_view text) const {
  for (const auto* tokens : {&raw_added_, &normalized_added_}) {
    for (const auto& token : tokens->tokens()) {
      if (token.content == text) return token.id;
    }
  }
  return bpe_.id(text);
}

Result<void> HfTokenizer::read_added(const Json& json) {
  if (!json.contains("added_tokens")) return {};
  const Json& list = json["added_tokens"];
  if (!list.is_array()) {
    return invalid_argument(fmt::format("{}: added_tokens is no list", name_));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    AddedToken token;
    token.content = text_or(list[i], "content", "");
    const int64_t id = integer_or(list[i], "id", -1);
    if (token.content.empty() || id < 0 || id >= kIdMax) {
      return invalid_argument(
          fmt::format("{}: added_tokens[{}]: expected a content and an id", name_, i));
    }
    token.id = static_cast<TokenId>(id);
    token.special = flag_or(list[i], "special", false);
    token.normalized = flag_or(list[i], "normalized", !token.special);
    token.single_word = flag_or(list[i], "single_word", false);
    token.lstrip = flag_or(list[i], "lstrip", false);
    token.rstrip = flag_or(list[i], "rstrip", false);
    if (token.special) special_tokens_.push_back({token.id, token.content});
    if (token.normalized && normalizer_ != nullptr) {
      token.content = normalizer_->apply(token.content);
      normalized_added_.add(std::move(token));
    } else {
      raw_added_.add(std::move(token));
    }
  }
  std::sort(special_tokens_.begin(), special_tokens_.end(),
            [](const SpecialToken& a, const SpecialToken& b) { return a.id < b.id; });
  return {};
}

// Of a TemplateProcessing, the begin token is what comes before the text.
Result<void> HfTokenizer::read_post_processor(const Json& json) {
  const std::string type = type_of(json);
  if (json.is_null() || type == "ByteLevel") return {};
  if (type == "Sequence" && json.contains("processors") && json["processors"].is_array()) {
    for (const Json& part : json["processors"]) {
      if (type_of(part) == "Sequence") break;  // they do not nest
      if (auto read = read_post_processor(part); !read) return read;
    }
    return {};
  }
  if (type != "TemplateProcessing") {
    return invalid_argument(
        fmt::format("{}: post-processor {} is not understood", name_, quote(type)));
  }
  if (!json.contains("single") || !json["single"].is_array()) {
    return invalid_argument(fmt::format("{}: TemplateProcessing has no single", name_));
  }
  for (const Json& part : json["single"]) {
    if (part.is_object() && part.contains("Sequence")) return {};
    if (!part.is_object() || !part.contains("SpecialToken")) continue;
    const std::string text = text_or(part["SpecialToken"], "id", "");
    bos_id_ = id_of(text);
    if (!bos_id_) {
      return invalid_argument(
          fmt::format("{}: TemplateProcessing: unknown token {}", name_, quote(text)));
    }
  }
  return {};
}

Result<void> HfTokenizer::read_decoder(const Json& json) {
  const std::string type = type_of(json);
  if (type == "Sequence" && json.contains("decoders") && json["decoders"].is_array()) {
    for (const Json& part : json["decoders"]) {
      if (type_of(part) == "Sequence") break;  // they do not nest
      if (auto read = read_decoder(part); !read) return read;
    }
    return {};
  }
  if (json.is_null() || type == "ByteLevel" || type == "ByteFallback" || type == "Fuse") return {};
  if (type == "Replace" && json.contains("pattern") && text_or(json, "content", "") == " ") {
    metaspace_ = text_or(json["pattern"], "String", "");
    if (!metaspace_.empty()) return {};
  }
  if (type == "Strip" && text_or(json, "content", "") == " " && integer_or(json, "start", 0) <= 1 &&
      integer_or(json, "stop", 0) == 0) {
    strips_first_space_ = integer_or(json, "start", 0) == 1;
    return {};
  }
  if (type == "Metaspace") {
    metaspace_ = text_or(json, "replacement", "\u2581");
    strips_first_space_ = text_or(json, "prepend_scheme", "always") != "never";
    return {};
  }
  return invalid_argument(
      fmt::format("{}: decoder {} is not understood", name_, quote(json.dump(-1, ' ', true))));
}

void HfTokenizer::read_config(const Json& config) {
  bos_text_ = token_text(config, "bos_token");
  eos_text_ = token_text(config, "eos_token");
  chat_template_ = template_text(config);
  // Some files leave the begin token to the code of the tokenizer's class.
  if (!bos_id_ && !bos_text_.empty() && flag_or(config, "add_bos_token", false)) {
    bos_id_ = id_of(bos_text_);
  }
  if (const auto id = eos_text_.empty() ? std::nullopt : id_of(eos_text_)) eos_ids_.push_back(*id);
  if (bos_text_.empty() && bos_id_) {
    for (const auto& special : special_tokens_) {
      if (special.id == *bos_id_) bos_text_ = special.text;
    }
  }
}

// What a token's text decodes to.
std::string HfTokenizer::bytes_of(std::string_view text) const {
  if (bpe_.byte_level()) return from_byte_alphabet(text).value_or(std::string(text));
  unsigned byte = 0;
  if (text.size() == 6 && text.starts_with("<0x") && text.ends_with('>') &&
      std::all_of(text.begin() + 3, text.end() - 1,
                  [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; })) {
    for (const char c : text.substr(3, 2)) {
      byte = 16 * byte + static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return std::string(1, static_cast<char>(byte));
  }
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    if (!metaspace_.empty() && text.substr(at).starts_with(metaspace_)) {
      bytes += ' ';
      at += metaspace_.size();
    } else {
      bytes += text[at++];
    }
  }
  return bytes;
}

void HfTokenizer::make_bytes() {
  TokenId size = bpe_.size();
  for (const auto* tokens : {&raw_added_, &normalized_added_}) {
    for (const auto& token : tokens->tokens()) size = std::max(size, token.id + 1);
  }
  bytes_.resize(static_cast<size_t>(size));
  is_special_.resize(bytes_.size(), false);
  for (TokenId id = 0; id < bpe_.size(); ++id) {
    bytes_[static_cast<size_t>(id)] = bytes_of(bpe_.text(id));
  }
  for (const auto* tokens : {&raw_added_, &normalized_added_}) {
    for (const auto& token : tokens->tokens()) {
      bytes_[static_cast<size_t>(token.id)] = bytes_of(token.content);
    }
  }
  for (const auto& special : special_tokens_) is_special_[static_cast<size_t>(special.id)] = true;
}

Result<std::shared_ptr<const HfTokenizer>> HfTokenizer::parse(const Json& json, const Json& config,
                                                              std::vector<TokenId> eos_ids,
                                                              std::string_view name) {
  if (!json.is_object() || !json.contains("model")) {
    return invalid_argument(fmt::format("{}: no model, expected a tokenizer.json", name));
  }
  const Json none;
  const auto part = [&](const char* key) -> const Json& {
    return json.contains(key) ? json[key] : none;
  };
  auto words = read_pre_tokenizer(part("pre_tokenizer"), name);
  if (!words) return words.error();
  auto bpe = Bpe::read(json["model"], words->byte_level, name);
  if (!bpe) return bpe.error();
  std::shared_ptr<HfTokenizer> tokenizer(
      new HfTokenizer(std::move(bpe).value(), std::string(name)));
  tokenizer->pre_tokenizer_ = std::move(words->steps);
  auto normalizer = read_normalizer(part("normalizer"), name);
  if (!normalizer) return normalizer.error();
  tokenizer->normalizer_ = std::move(normalizer).value();
  if (auto read = tokenizer->read_added(json); !read) return read.error();
  if (auto read = tokenizer->read_decoder(part("decoder")); !read) return read.error();
  if (auto read = tokenizer->read_post_processor(part("post_processor")); !read) {
    return read.error();
  }
  tokenizer->eos_ids_ = std::move(eos_ids);
  tokenizer->read_config(config);
  tokenizer->make_bytes();
  auto& eos = tokenizer->eos_ids_;
  std::sort(eos.begin(), eos.end());
  eos.erase(std::unique(eos.begin(), eos.end()), eos.end());
  for (const TokenId id : eos) {
    if (!tokenizer->is_valid(id)) {
      return invalid_argument(fmt::format("{}: eos token {} is outside of the vocabulary of {}",
                                          name, id, tokenizer->vocabulary_size()));
    }
  }
  return std::shared_ptr<const HfTokenizer>(std::move(tokenizer));
}

Result<std::shared_ptr<const HfTokenizer>> HfTokenizer::open(const std::string& path) {
  std::error_code ignored;
  const fs::path file =
      fs::is_directory(path, ignored) ? fs::path(path) / "tokenizer.json" : fs::path(path);
  const auto text = core::read_file(file.string());
  if (!text) return text.error();
  const auto json = core::parse_json(*text, file.string());
  if (!json) return json.error();
  const fs::path folder = file.parent_path();
  const auto config = read_optional(folder / "tokenizer_config.json");
  if (!config) return config.error();
  std::vector<TokenId> eos_ids;
  for (const char* name : {"config.json", "generation_config.json"}) {
    const auto other = read_optional(folder / name);
    if (!other) return other.error();
    append_ids(*other, "eos_token_id", eos_ids);
  }
  auto tokenizer = parse(*json, *config, std::move(eos_ids), file.string());
  if (!tokenizer) return tokenizer;
  // Newer folders keep the template in a file of its own.
  const std::string own = (folder / "chat_template.jinja").string();
  if (fs::exists(own, ignored)) {
    auto content = core::read_file(own);
    if (!content) return content.error();
    std::const_pointer_cast<HfTokenizer>(*tokenizer)->chat_template_ = std::move(content).value();
  }
  return tokenizer;
}

void HfTokenizer::append_words(std::string text, bool at_text_start,
                               std::vector<TokenId>& out) const {
  if (pre_tokenizer_ == nullptr) return bpe_.append_encoded(text, out);
  thread_local std::vector<std::string> words;
  words.clear();
  words.push_back(std::move(text));
  pre_tokenizer_->apply(words, {.at_text_start = at_text_start});
  for (const auto& word : words) bpe_.append_encoded(word, out);
}

void HfTokenizer::append_piece(std::string_view text, bool at_text_start, bool specials,
                               std::vector<TokenId>& out) const {
  std::string normal(text);
  if (normalizer_ != nullptr) normal = normalizer_->apply(std::move(normal));
  if (normalized_added_.empty()) return append_words(std::move(normal), at_text_start, out);
  std::vector<AddedTokens::Piece> pieces;
  normalized_added_.split(normal, specials, pieces);
  for (const auto& piece : pieces) {
    if (piece.id >= 0) {
      out.push_back(piece.id);
    } else {
      append_words(std::string(piece.text), at_text_start && piece.begin == 0, out);
    }
  }
}

// Whether control tokens that are looked for after normalising could come out of plain bytes of
// this piece, which begins at `begin` of the text. Positions are lost by normalising, so each plain
// part is normalised alone and what crosses its borders is looked for in the text as written.
bool HfTokenizer::user_could_forge(std::string_view text, size_t begin,
                                   std::span<const ByteRange> plain) const {
  if (normalized_added_.empty()) return false;
  std::vector<ByteRange> inside;
  for (const auto& range : plain) {
    const size_t from = std::max(range.begin, begin), to = std::min(range.end, begin + text.size());
    if (from < to) inside.push_back({from - begin, to - begin});
  }
  if (normalized_added_.touches(text, inside)) return true;
  return std::any_of(inside.begin(), inside.end(), [&](const ByteRange& range) {
    const auto part =
        normalizer_->apply(std::string(text.substr(range.begin, range.end - range.begin)));
    const ByteRange all{0, part.size()};
    return normalized_added_.touches(part, {&all, 1});
  });
}

void HfTokenizer::append_encoded(std::string_view text, const EncodeOptions& options,
                                 std::vector<TokenId>& out) const {
  if (options.add_bos && bos_id_) out.push_back(*bos_id_);
  std::string repaired;
  auto plain = options.plain;
  const ByteRange everything{0, std::string_view::npos};
  if (!is_valid_utf8(text)) {
    repaired = valid_utf8(text);
    text = repaired;
    if (!plain.empty()) plain = {&everything, 1};  // its positions have moved
  }
  std::vector<AddedTokens::Piece> pieces;
  raw_added_.split(text, options.parse_special, pieces, plain);
  for (const auto& piece : pieces) {
    if (piece.id >= 0) {
      out.push_back(piece.id);
    } else {
      const bool specials =
          options.parse_special && !user_could_forge(piece.text, piece.begin, plain);
      append_piece(piece.text, piece.begin == 0, specials, out);
    }
  }
}

void HfTokenizer::append_bytes(TokenId id, const DecodeOptions& options, std::string& out) const {
  PRONY_CHECK(is_valid(id), "token id outside the vocabulary");
  const auto index = static_cast<size_t>(id);
  if (options.skip_special && is_special_[index]) return;
  std::string_view bytes = bytes_[index];
  if (options.at_text_start && strips_first_space_ && bytes.starts_with(' '))
    bytes.remove_prefix(1);
  out += bytes;
}

}  // namespace prony::token
