// Tests of OutputStream: where a sequence ends and what of its text is shown, over every cut.
#include "prony/server/output_stream.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/token/byte_tokenizer.hpp"

namespace prony::server {
namespace {

const token::ByteTokenizer kTokenizer;

struct Outcome {
  std::string text;
  Finish finish = Finish::kNone;
  int32_t tokens = 0;
  std::optional<std::string> stop_reason;
};

Outcome run(const std::vector<int32_t>& ids, const OutputStream::Options& options) {
  auto stream = OutputStream::create(kTokenizer, options).value();
  Outcome outcome;
  for (const auto id : ids) {
    outcome.finish = stream.push(id, outcome.text);
    EXPECT_TRUE(token::is_valid_utf8(outcome.text));
    if (outcome.finish != Finish::kNone) break;
  }
  outcome.tokens = stream.token_count();
  outcome.stop_reason = stream.stop_reason();
  return outcome;
}

std::vector<int32_t> ids_of(const std::string& text) {
  return kTokenizer.encode(text);
}

TEST(OutputStream, EndsAtMaxTokens) {
  const auto outcome = run(ids_of("abcdef"), {.max_tokens = 3});
  EXPECT_EQ(outcome.text, "abc");
  EXPECT_EQ(outcome.finish, Finish::kLength);
}

TEST(OutputStream, EndOfSequenceTokenCountsButShowsNothing) {
  const std::vector<int32_t> ids = {'a', token::kByteEndOfText, 'b'};
  const auto stopped = run(ids, {.max_tokens = 9});
  EXPECT_EQ(stopped.text, "a");
  EXPECT_EQ(stopped.tokens, 2);
  EXPECT_EQ(stopped.finish, Finish::kStop);
  EXPECT_FALSE(stopped.stop_reason.has_value());
  const auto ignored = run(ids, {.max_tokens = 3, .ignore_eos = true});
  EXPECT_EQ(ignored.text, "ab");
  EXPECT_EQ(ignored.finish, Finish::kLength);
}

TEST(OutputStream, StopStringIsCutOffAndNamed) {
  const auto outcome = run(ids_of("one two three"), {.max_tokens = 50, .stop = {"thr", " two"}});
  EXPECT_EQ(outcome.text, "one");
  EXPECT_EQ(outcome.finish, Finish::kStop);
  EXPECT_EQ(outcome.stop_reason, " two");
}

TEST(OutputStream, HeldBackTextComesWithTheEnd) {
  // "on" could become "one": held until the length limit lets it out.
  const auto outcome = run(ids_of("on"), {.max_tokens = 2, .stop = {"one"}});
  EXPECT_EQ(outcome.text, "on");
  EXPECT_EQ(outcome.finish, Finish::kLength);
}

TEST(OutputStream, NothingStopsBeforeMinTokens) {
  const auto outcome = run(ids_of("xx.xx."), {.max_tokens = 50, .min_tokens = 4, .stop = {"."}});
  EXPECT_EQ(outcome.text, "xx.xx");
  EXPECT_EQ(outcome.finish, Finish::kStop);
}

TEST(OutputStream, HalfACharacterNeverShows) {
  const auto whole = run(ids_of("\xE2\x82\xAC"), {.max_tokens = 3});
  EXPECT_EQ(whole.text, "\xE2\x82\xAC");
  const auto cut = run(ids_of("\xE2\x82\xAC"), {.max_tokens = 2});
  EXPECT_EQ(cut.text, "\xEF\xBF\xBD");
}

// Against the definition: decode all tokens, cut before the first stop that ends.
TEST(OutputStream, AgreesWithDecodeAndFindOnRandomTokens) {
  core::Rng rng(11);
  const std::vector<std::string> stops = {"ab", "bca", "c\xC3\xA9"};
  for (int round = 0; round < 20'000; ++round) {
    std::vector<int32_t> ids;
    for (int i = 0; i < 12; ++i) {
      const char* kAlphabet = "abc\xC3\xA9";
      ids.push_back(static_cast<unsigned char>(kAlphabet[rng.below(5)]));
    }
    const auto outcome = run(ids, {.max_tokens = 12, .stop = stops});
    const std::string text = kTokenizer.decode(ids);
    size_t end = std::string::npos, begin = 0;
    for (const auto& stop : stops) {
      const auto found = text.find(stop);
      if (found != std::string::npos && (end == std::string::npos || found + stop.size() < end)) {
        end = found + stop.size();
        begin = found;
      }
    }
    ASSERT_EQ(outcome.text, end == std::string::npos ? text : text.substr(0, begin)) << text;
    // A stop completed only by the final flush still ends at the length limit.
    if (end != std::string::npos) {
      ASSERT_TRUE(outcome.stop_reason.has_value());
    }
  }
}

}  // namespace
}  // namespace prony::server
