// Tests of StopMatcher. Oracle: search over the whole text for the stop that ends first (longest
// among equals), and for the longest suffix that begins a stop; random texts over a tiny alphabet
// make overlaps common, random cuts must not matter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/token/detokenizer.hpp"
#include "prony/token/stop_matcher.hpp"

namespace prony::token {
namespace {

struct Expected {
  std::string out;
  std::optional<size_t> matched;
};

Expected search(const std::vector<std::string>& stops, const std::string& text, bool include) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<size_t> best;
    for (size_t i = 0; i < stops.size(); ++i) {
      if (!text.substr(0, end).ends_with(stops[i])) continue;
      if (!best || stops[i].size() > stops[*best].size()) best = i;
    }
    if (best) return {text.substr(0, include ? end : end - stops[*best].size()), best};
  }
  return {text, std::nullopt};
}

// Bytes of the longest suffix of `text` that begins a stop.
size_t suffix_that_begins_a_stop(const std::vector<std::string>& stops, const std::string& text) {
  size_t longest = 0;
  for (const auto& stop : stops) {
    for (size_t n = 1; n <= std::min(stop.size(), text.size()); ++n) {
      if (text.ends_with(stop.substr(0, n))) longest = std::max(longest, n);
    }
  }
  return longest;
}

std::string random_text(core::Rng& rng, size_t count) {
  static const std::string kAlphabet[] = {"a", "b", "é"};
  std::string text;
  for (size_t i = 0; i < count; ++i) text += kAlphabet[rng.below(std::size(kAlphabet))];
  return text;
}

TEST(StopMatcher, RandomTextsAtRandomCutsMatchTheSearch) {
  core::Rng rng(21);
  int stopped = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::string> stops;
    for (uint64_t i = 0, n = 1 + rng.below(4); i < n; ++i) {
      stops.push_back(random_text(rng, 1 + rng.below(5)));
    }
    const bool include = rng.below(2) == 0;
    std::vector<std::string> characters;
    for (uint64_t i = 0, n = rng.below(40); i < n; ++i) characters.push_back(random_text(rng, 1));
    std::string text;
    for (const auto& character : characters) text += character;

    auto matcher = StopMatcher::create(stops, include);
    ASSERT_TRUE(matcher.ok());
    std::string out, seen;
    for (size_t at = 0; at < characters.size() && !matcher->stopped();) {
      std::string piece;
      for (uint64_t n = rng.below(4) + 1; n > 0 && at < characters.size(); --n) {
        piece += characters[at++];
      }
      const bool stop = matcher->push(piece, out);
      EXPECT_EQ(stop, matcher->stopped());
      ASSERT_TRUE(is_valid_utf8(out));
      seen += piece;
      if (!stop) {
        ASSERT_EQ(matcher->held_bytes(), suffix_that_begins_a_stop(stops, seen));
        ASSERT_EQ(out.size() + matcher->held_bytes(), seen.size());
      }
    }
    matcher->flush(out);
    const Expected expected = search(stops, text, include);
    ASSERT_EQ(out, expected.out) << text;
    ASSERT_EQ(matcher->matched().has_value(), expected.matched.has_value());
    if (expected.matched) {
      ASSERT_EQ(stops[*matcher->matched()], stops[*expected.matched]);
      ++stopped;
    }
  }
  EXPECT_GT(stopped, 1000);  // the test must reach both ends
  EXPECT_LT(stopped, 3990);
}

TEST(StopMatcher, StopAcrossPiecesNeverLeaks) {
  auto matcher = StopMatcher::create({"\n\nHuman:"});
  std::string out;
  EXPECT_FALSE(matcher->push("fine\n", out));
  EXPECT_EQ(out, "fine");
  EXPECT_FALSE(matcher->push("\nHum", out));
  EXPECT_FALSE(matcher->push("an", out));
  EXPECT_EQ(out, "fine");
  EXPECT_TRUE(matcher->push(": more", out));
  EXPECT_EQ(out, "fine");
  EXPECT_EQ(matcher->matched(), 0u);
  matcher->flush(out);
  EXPECT_EQ(out, "fine");
  EXPECT_DEATH(matcher->push("x", out), "after the stop");
}

TEST(StopMatcher, AFalseStartIsLetOut) {
  auto matcher = StopMatcher::create({"aab"});
  std::string out;
  EXPECT_FALSE(matcher->push("aa", out));
  EXPECT_EQ(out, "");
  EXPECT_FALSE(matcher->push("a", out));  // "aaa": the first a is free, "aa" still begins a stop
  EXPECT_EQ(out, "a");
  EXPECT_TRUE(matcher->push("b", out));
  EXPECT_EQ(out, "a");
}

TEST(StopMatcher, ShorterStopInsideALongerOneEndsFirst) {
  auto matcher = StopMatcher::create({"xabcx", "b"});
  std::string out;
  EXPECT_TRUE(matcher->push("xabcx", out));
  EXPECT_EQ(out, "xa");
  EXPECT_EQ(matcher->matched(), 1u);
}

TEST(StopMatcher, WithoutStopsNothingIsHeld) {
  StopMatcher matcher;
  std::string out;
  EXPECT_FALSE(matcher.push("abc", out));
  EXPECT_EQ(out, "abc");
  auto none = StopMatcher::create({});
  EXPECT_FALSE(none->push("abc", out));
  EXPECT_EQ(out, "abcabc");
}

TEST(StopMatcher, BadStopsAreNamed) {
  EXPECT_EQ(StopMatcher::create({"ok", ""}).error().message,
            "stop[1]: found an empty string, expected text");
  EXPECT_EQ(StopMatcher::create({"\x80"}).error().message,
            "stop[0]: found bytes that are not UTF-8");
}

TEST(StopMatcher, LongTextAndManyStopsStayLinear) {
  // 2 MB of 'a' against stops that all fail late: minutes if a byte cost the length of a stop.
  std::vector<std::string> stops;
  for (int i = 0; i < 16; ++i) stops.push_back(std::string(2000, 'a') + static_cast<char>('b' + i));
  auto matcher = StopMatcher::create(stops);
  std::string out;
  const std::string piece(1000, 'a');
  for (int i = 0; i < 2000; ++i) ASSERT_FALSE(matcher->push(piece, out));
  EXPECT_EQ(matcher->held_bytes(), 2000u);
  EXPECT_EQ(out.size(), 2'000'000u - 2000u);
}

}  // namespace
}  // namespace prony::token
