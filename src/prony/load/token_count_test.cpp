// TokenCount: where N comes from, and which events have a known number of tokens.
#include "prony/load/token_count.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace prony::load {
namespace {

using record::TokenEvent;
using record::TokenSource;

// Feeds chunks and keeps the events, as Timeline does.
struct Counter {
  TokenCount count;
  std::vector<TokenEvent> events;

  int32_t chunk(std::string_view text, int completion = -1, int ids = 0) {
    Delta delta;
    delta.text = text;
    delta.token_ids = ids;
    if (completion >= 0) {
      delta.has_usage = true;
      delta.usage.completion_tokens = completion;
      delta.usage.prompt_tokens = 11;
    }
    const auto tokens = count.on_chunk(delta);
    if (delta.bears_tokens()) events.push_back({0, 0, tokens});
    return tokens;
  }
  TokenCount::Total finish(bool ended = true) { return count.finish(ended, events); }
  std::vector<int32_t> per_event() const {
    std::vector<int32_t> out;
    for (const auto& event : events) out.push_back(event.tokens);
    return out;
  }
};

TEST(TokenCount, FinalUsageEqualToEventsMeansOneEach) {
  Counter c;
  c.chunk("a");
  c.chunk("b");
  c.chunk("", 2);
  const auto total = c.finish();
  EXPECT_EQ(total.tokens, 2);
  EXPECT_EQ(total.source, TokenSource::kUsage);
  EXPECT_TRUE(total.per_event_exact);
  EXPECT_EQ(c.per_event(), (std::vector<int32_t>{1, 1}));
  EXPECT_EQ(c.count.prompt_tokens(), 11);
}

TEST(TokenCount, FinalUsageAboveEventsProvesNothingAboutEach) {
  Counter c;  // four tokens a chunk, or an invisible end token: cannot be told
  c.chunk("abcd");
  c.chunk("efgh");
  c.chunk("", 8);
  const auto total = c.finish();
  EXPECT_EQ(total.tokens, 8);
  EXPECT_FALSE(total.per_event_exact);
  EXPECT_EQ(c.per_event(), (std::vector<int32_t>{0, 0}));
}

TEST(TokenCount, UsageInTheSameChunkAsTheLastText) {
  Counter c;
  c.chunk("a");
  c.chunk("b", 3);
  const auto total = c.finish();
  EXPECT_EQ(total.tokens, 3);
  EXPECT_EQ(total.source, TokenSource::kUsage);
  EXPECT_FALSE(total.per_event_exact);
}

TEST(TokenCount, ContinuousUsageCountsEachEvent) {
  Counter c;
  c.chunk("", 0);
  EXPECT_EQ(c.chunk("a", 1), 1);
  EXPECT_EQ(c.chunk("bc", 3), 2);
  c.chunk("", 4);  // held back: belongs to the next that shows
  EXPECT_EQ(c.chunk("de", 5), 2);
  c.chunk("", 6);  // the end token shows nowhere
  const auto total = c.finish();
  EXPECT_EQ(total.tokens, 6);
  EXPECT_EQ(total.source, TokenSource::kUsage);
  EXPECT_TRUE(total.per_event_exact);
}

TEST(TokenCount, UsageIsNeverSummed) {
  Counter c;
  for (int i = 1; i <= 5; ++i) c.chunk("x", i);
  for (int i = 0; i < 3; ++i) c.chunk("", 5);
  EXPECT_EQ(c.finish().tokens, 5);
}

TEST(TokenCount, ConstantUsageInEveryChunkIsNotContinuous) {
  Counter c;  // a server that repeats the final number from the start
  EXPECT_EQ(c.chunk("a", 3), 3);
  EXPECT_EQ(c.chunk("b", 3), 0);
  EXPECT_EQ(c.chunk("c", 3), 0);
  const auto total = c.finish();
  EXPECT_EQ(total.tokens, 3);
  EXPECT_TRUE(total.per_event_exact);  // three events, three tokens
  EXPECT_EQ(c.per_event(), (std::vector<int32_t>{1, 1, 1}));
}

TEST(TokenCount, TokenIdsAreExact) {
  Counter c;
  EXPECT_EQ(c.chunk("ab", -1, 2), 2);
  EXPECT_EQ(c.chunk("", -1, 1), 1);
  auto total = c.finish();
  EXPECT_EQ(total.tokens, 3);
  EXPECT_EQ(total.source, TokenSource::kTokenIds);
  EXPECT_TRUE(total.per_event_exact);
  c.chunk("", 4);  // usage, if it comes, is the first source
  total = c.finish();
  EXPECT_EQ(total.tokens, 4);
  EXPECT_EQ(total.source, TokenSource::kUsage);
  EXPECT_TRUE(total.per_event_exact);
}

TEST(TokenCount, SomeEventsWithoutIdsAreNotExact) {
  Counter c;
  c.chunk("a", -1, 1);
  c.chunk("b");
  const auto total = c.finish();
  EXPECT_EQ(total.tokens, 2);
  EXPECT_EQ(total.source, TokenSource::kEventCount);
  EXPECT_FALSE(total.per_event_exact);
}

TEST(TokenCount, NothingButEvents) {
  Counter c;
  c.chunk("a");
  c.chunk("b");
  const auto total = c.finish();
  EXPECT_EQ(total.tokens, 2);
  EXPECT_EQ(total.source, TokenSource::kEventCount);
}

TEST(TokenCount, UsageOfZeroBesideTextProvesNothing) {
  Counter c;
  c.chunk("a", 0);
  c.chunk("", 0);
  const auto total = c.finish();
  EXPECT_EQ(total.tokens, 1);
  EXPECT_EQ(total.source, TokenSource::kEventCount);
}

TEST(TokenCount, CutStreams) {
  Counter usage;
  usage.chunk("a", 1);
  usage.chunk("bc", 3);
  EXPECT_EQ(usage.finish(false).tokens, 3);
  EXPECT_EQ(usage.finish(false).source, TokenSource::kContinuousUsage);
  Counter ids;
  ids.chunk("ab", -1, 2);
  EXPECT_EQ(ids.finish(false).source, TokenSource::kTokenIds);
  Counter events;
  events.chunk("a");
  EXPECT_EQ(events.finish(false).tokens, 1);
  EXPECT_EQ(events.finish(false).source, TokenSource::kEventCount);
  Counter stale;  // a usage far behind the events
  stale.chunk("a", 1);
  stale.chunk("b");
  stale.chunk("c");
  EXPECT_EQ(stale.finish(false).tokens, 3);
  EXPECT_EQ(stale.finish(false).source, TokenSource::kEventCount);
}

TEST(TokenCount, NoTokenAtAll) {
  Counter c;
  EXPECT_FALSE(c.finish(false).tokens.has_value());
  c.chunk("", 1);  // the end token alone
  EXPECT_EQ(c.finish(true).tokens, 0);
  EXPECT_FALSE(c.finish(true).per_event_exact);
}

}  // namespace
}  // namespace prony::load
