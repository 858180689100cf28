#include "prony/token/added_tokens.hpp"

#include <utf8proc.h>

#include <algorithm>

#include "prony/core/check.hpp"

namespace prony::token {
namespace {

// The code point that begins at `at`, and its length; text is valid UTF-8.
int32_t code_point_at(std::string_view text, size_t at, size_t& bytes) {
  utf8proc_int32_t point = 0;
  const auto size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                     static_cast<utf8proc_ssize_t>(text.size() - at), &point);
  bytes = size > 0 ? static_cast<size_t>(size) : 1;
  return point;
}

size_t begin_of_character_before(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && (text[at] & 0xC0) == 0x80);
  return at;
}

bool is_word(int32_t point) {
  switch (utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

bool is_space(int32_t point) {
  if ((point >= 9 && point <= 13) || point == 0x85) return true;
  const auto category = utf8proc_category(point);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool inside_word(std::string_view text, size_t begin, size_t end) {
  size_t bytes = 0;
  if (begin > 0 && is_word(code_point_at(text, begin_of_character_before(text, begin), bytes))) {
    return true;
  }
  return end < text.size() && is_word(code_point_at(text, end, bytes));
}

// Whether [begin, end) and one of the ranges have a byte in common.
bool overlaps(std::span<const ByteRange> ranges, size_t begin, size_t end) {
  const auto first = std::upper_bound(ranges.begin(), ranges.end(), begin,
                                      [](size_t at, const ByteRange& r) { return at < r.end; });
  return first != ranges.end() && first->begin < end;
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  PRONY_CHECK(!token.content.empty());
  auto& bucket = by_first_byte_[static_cast<unsigned char>(token.content[0])];
  bucket.push_back(tokens_.size());
  tokens_.push_back(std::move(token));
  std::stable_sort(bucket.begin(), bucket.end(), [this](size_t a, size_t b) {
    return tokens_[a].content.size() > tokens_[b].content.size();
  });
}

const AddedToken* AddedTokens::longest_at(std::string_view text, size_t at, bool specials,
                                          std::span<const ByteRange> plain) const {
  for (const size_t index : by_first_byte_[static_cast<unsigned char>(text[at])]) {
    const AddedToken& token = tokens_[index];
    if (token.special && !specials) continue;
    if (!text.substr(at).starts_with(token.content)) continue;
    if (token.special && overlaps(plain, at, at + token.content.size())) continue;
    return &token;
  }
  return nullptr;
}

bool AddedTokens::touches(std::string_view text, std::span<const ByteRange> plain) const {
  for (const AddedToken& token : tokens_) {
    if (!token.special) continue;
    for (size_t at = text.find(token.content); at != std::string_view::npos;
         at = text.find(token.content, at + 1)) {
      if (overlaps(plain, at, at + token.content.size())) return true;
    }
  }
  return false;
}

void AddedTokens::split(std::string_view text, bool specials, std::vector<Piece>& pieces,
                        std::span<const ByteRange> plain) const {
  size_t done = 0;  // everything before it is in a piece
  for (size_t at = 0; at < text.size(); ++at) {
    const AddedToken* token = longest_at(text, at, specials, plain);
    if (token == nullptr) continue;
    size_t begin = at, end = at + token->content.size();
    at = end - 1;
    if (token->single_word && inside_word(text, begin, end)) continue;
    size_t bytes = 0;
    while (token->lstrip && begin > done) {
      const size_t before = begin_of_character_before(text, begin);
      if (!is_space(code_point_at(text, before, bytes))) break;
      begin = before;
    }
    while (token->rstrip && end < text.size() && is_space(code_point_at(text, end, bytes))) {
      end += bytes;
    }
    if (begin > done) pieces.push_back({text.substr(done, begin - done), -1, done});
    pieces.push_back({text.substr(begin, end - begin), token->id, begin});
    done = end;
    at = end - 1;
  }
  if (done < text.size()) pieces.push_back({text.substr(done), -1, done});
}

}  // namespace prony::token
