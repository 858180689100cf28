// Tests of UTF-8 streaming. Goal: no cut of a byte stream changes its text, and no piece ever ends
// inside a character. Oracles: the worked tables of the Unicode standard, and a reference decoder
// that follows the definition of "maximal subpart" by trial, not by a state machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/token/byte_tokenizer.hpp"
#include "prony/token/detokenizer.hpp"

namespace prony::token {
namespace {

const std::string kFffd = "\xEF\xBF\xBD";

std::string repeated(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += kFffd;
  return text;
}

std::string decode_at_once(std::string_view bytes) {
  Utf8Stream stream;
  std::string text;
  stream.push(bytes, text);
  stream.flush(text);
  return text;
}

// True if `bytes` is exactly one well-formed character, judged by the code point it spells.
bool is_one_character(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])); };
  if (bytes.empty() || bytes.size() > 4) return false;
  if (bytes.size() == 1) return at(0) < 0x80;
  static constexpr uint32_t kLeadMask[] = {0, 0, 0xE0, 0xF0, 0xF8};
  static constexpr uint32_t kLeadValue[] = {0, 0, 0xC0, 0xE0, 0xF0};
  static constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const size_t n = bytes.size();
  if ((at(0) & kLeadMask[n]) != kLeadValue[n]) return false;
  uint32_t point = at(0) & ~kLeadMask[n];
  for (size_t i = 1; i < n; ++i) {
    if ((at(i) & 0xC0) != 0x80) return false;
    point = point << 6 | (at(i) & 0x3F);
  }
  return point >= kSmallest[n] && point <= 0x10FFFF && !(point >= 0xD800 && point <= 0xDFFF);
}

// True if some bytes after `bytes` make one character of it.
bool begins_a_character(const std::string& bytes) {
  if (is_one_character(bytes)) return true;
  if (bytes.size() >= 4) return false;
  for (const char next : {'\x80', '\x8F', '\x90', '\x9F', '\xA0', '\xBF'}) {
    if (begins_a_character(bytes + next)) return true;
  }
  return false;
}

std::string reference_decode(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    size_t length = 1;
    bool whole = is_one_character(bytes.substr(at, 1));
    while (!whole && at + length < bytes.size() &&
           begins_a_character(std::string(bytes.substr(at, length + 1)))) {
      ++length;
      whole = is_one_character(bytes.substr(at, length));
    }
    text += whole ? std::string(bytes.substr(at, length)) : kFffd;
    at += length;
  }
  return text;
}

// Random bytes that are often nearly UTF-8: whole characters, cut ones, and noise.
std::string random_stream(core::Rng& rng, size_t pieces) {
  static const std::string kCharacters[] = {"a", "\n",         "é",          "ß",
                                            "€", "한",         "\uFFFD",     "\uD7FF",
                                            "😀", "\U0010FFFF", "\U00010000", "\xEF\xBB\xBF"};
  std::string bytes;
  for (size_t i = 0; i < pieces; ++i) {
    const std::string& character = kCharacters[rng.below(std::size(kCharacters))];
    switch (rng.below(4)) {
      case 0:
        bytes.push_back(static_cast<char>(rng.below(256)));
        break;
      case 1:
        bytes += character.substr(0, 1 + rng.below(character.size()));
        break;
      default:
        bytes += character;
    }
  }
  return bytes;
}

TEST(Utf8Stream, UnicodeStandardTables) {
  // Tables 3-8 to 3-11 of the Unicode standard, version 14.
  EXPECT_EQ(decode_at_once("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), repeated(8) + "A");
  EXPECT_EQ(decode_at_once("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), repeated(8) + "A");
  EXPECT_EQ(decode_at_once("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            repeated(5) + "A" + repeated(2) + "B");
  EXPECT_EQ(decode_at_once("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), repeated(4) + "A");
}

TEST(Utf8Stream, EveryCodePointPassesByteByByte) {
  Utf8Stream stream;
  for (uint32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    char bytes[4];
    size_t n = 0;
    const auto put = [&](uint32_t byte) { bytes[n++] = static_cast<char>(byte); };
    if (point < 0x80) {
      put(point);
    } else if (point < 0x800) {
      put(0xC0 | point >> 6);
      put(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
      put(0xE0 | point >> 12);
      put(0x80 | (point >> 6 & 0x3F));
      put(0x80 | (point & 0x3F));
    } else {
      put(0xF0 | point >> 18);
      put(0x80 | (point >> 12 & 0x3F));
      put(0x80 | (point >> 6 & 0x3F));
      put(0x80 | (point & 0x3F));
    }
    const std::string_view character(bytes, n);
    ASSERT_TRUE(is_valid_utf8(character)) << point;
    std::string text;
    for (size_t i = 0; i < n; ++i) {
      ASSERT_TRUE(text.empty()) << point;  // nothing before the last byte
      ASSERT_EQ(stream.held_bytes(), static_cast<int>(i));
      stream.push(character.substr(i, 1), text);
    }
    ASSERT_EQ(text, character) << point;
    ASSERT_EQ(stream.held_bytes(), 0);
  }
}

TEST(Utf8Stream, EveryThreeByteStringMatchesTheReference) {
  // All strings of three bytes over the bytes where the rules change.
  const std::string edges(
      "\x00\x41\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF\xF0\xF1\xF3"
      "\xF4\xF5\xFF",
      25);
  for (const char a : edges) {
    for (const char b : edges) {
      for (const char c : edges) {
        const std::string bytes{a, b, c};
        ASSERT_EQ(decode_at_once(bytes), reference_decode(bytes))
            << ::testing::PrintToString(bytes);
      }
    }
  }
}

TEST(Utf8Stream, RandomStreamsMatchTheReferenceAtEveryCut) {
  core::Rng rng(11);
  for (int round = 0; round < 400; ++round) {
    const std::string bytes = random_stream(rng, 1 + rng.below(12));
    const std::string expected = reference_decode(bytes);
    ASSERT_EQ(decode_at_once(bytes), expected);
    ASSERT_TRUE(is_valid_utf8(expected));
    EXPECT_EQ(is_valid_utf8(bytes), expected == bytes);
    for (size_t cut = 0; cut <= bytes.size(); ++cut) {
      Utf8Stream stream;
      std::string text;
      stream.push(std::string_view(bytes).substr(0, cut), text);
      ASSERT_TRUE(is_valid_utf8(text));
      stream.push(std::string_view(bytes).substr(cut), text);
      ASSERT_TRUE(is_valid_utf8(text));
      stream.flush(text);
      ASSERT_EQ(text, expected);
    }
  }
}

TEST(Detokenizer, AnyCutOfRandomTokensEqualsDecode) {
  const ByteTokenizer tokenizer(512);
  core::Rng rng(12);
  for (int round = 0; round < 300; ++round) {
    std::vector<TokenId> ids;
    for (const char byte : random_stream(rng, rng.below(20))) {
      ids.push_back(static_cast<uint8_t>(byte));
      if (rng.below(8) == 0) ids.push_back(static_cast<TokenId>(256 + rng.below(256)));
    }
    for (const bool skip_special : {true, false}) {
      const DecodeOptions options{.skip_special = skip_special};
      Detokenizer stream(tokenizer, options);
      std::string all, piece;
      for (const TokenId id : ids) {
        piece.clear();
        stream.push(id, piece);
        ASSERT_TRUE(is_valid_utf8(piece));
        all += piece;
        ASSERT_LE(stream.held_bytes(), 3);
      }
      piece.clear();
      stream.flush(piece);
      all += piece;
      ASSERT_EQ(all, tokenizer.decode(ids, options));
    }
  }
}

TEST(Detokenizer, HoldsBackUntilTheCharacterIsWhole) {
  const ByteTokenizer tokenizer;
  Detokenizer stream(tokenizer);
  std::string out;
  for (const TokenId id : {0xF0, 0x9F, 0x98}) stream.push(id, out);
  EXPECT_EQ(out, "");
  EXPECT_EQ(stream.held_bytes(), 3);
  stream.push(0x80, out);
  EXPECT_EQ(out, "😀");
}

TEST(Detokenizer, FlushEndsAnUnfinishedCharacterAndStartsAfresh) {
  const ByteTokenizer tokenizer;
  Detokenizer stream(tokenizer);
  std::string out;
  stream.push(0xE2, out);
  stream.push(0x82, out);
  stream.flush(out);
  EXPECT_EQ(out, kFffd);
  EXPECT_EQ(stream.held_bytes(), 0);
  stream.flush(out);
  EXPECT_EQ(out, kFffd);
  stream.push(0xAC, out);  // belongs to nothing any more
  EXPECT_EQ(out, kFffd + kFffd);
}

}  // namespace
}  // namespace prony::token
