// StreamMemory: whole text or pieces, told apart; echoed prompts; repeated endings.
#include "prony/load/stream_memory.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "prony/core/rng.hpp"

namespace prony::load {
namespace {

using Texts = std::vector<std::string>;

Texts added(const Texts& texts, bool repeats = false, std::string_view prompt = "",
            StreamMemory::Text form = StreamMemory::Text::kUnknown) {
  StreamMemory memory;
  memory.text = form;
  remember_prompt(prompt, memory);
  Texts out;
  for (const auto& text : texts) out.emplace_back(added_text(text, repeats, memory));
  return out;
}

TEST(AddedText, WholeText) {
  EXPECT_EQ(added({"a", "ab", "abc", "abc", "abcd"}), (Texts{"a", "b", "c", "", "d"}));
}

TEST(AddedText, Pieces) {
  EXPECT_EQ(added({"a", "b", "ab", "abab"}), (Texts{"a", "b", "ab", "abab"}));
  EXPECT_EQ(added({"la", "la", "la"}), (Texts{"la", "la", "la"}));
  EXPECT_EQ(added({"", "la", "", "x"}), (Texts{"", "la", "", "x"}));
}

TEST(AddedText, APieceThatLooksWholeCostsTextButNoEvent) {
  // "\n" then "\n\n": as whole text the second adds one newline. The third tells.
  EXPECT_EQ(added({"\n", "\n\n", "x", "\n"}), (Texts{"\n", "\n", "x", "\n"}));
}

TEST(AddedText, ServersKnownToRepeatMay) {
  EXPECT_EQ(added({"a", "a", "ab"}, true), (Texts{"a", "", "b"}));
  EXPECT_EQ(added({"a", "b", "b"}, true), (Texts{"a", "b", "b"}));
}

TEST(AddedText, AnEchoedPromptIsNoText) {
  EXPECT_EQ(added({"p", "pa", "pab", "pabc"}, false, "p"), (Texts{"", "a", "b", "c"}));
  EXPECT_EQ(added({"pa", "b", "c"}, false, "p"), (Texts{"a", "b", "c"}));
  EXPECT_EQ(added({"a", "pb"}, false, "p"), (Texts{"a", "pb"}));  // only in front
  EXPECT_EQ(added({"p", "pp"}, true, "p", StreamMemory::Text::kWhole), (Texts{"", "p"}));
}

TEST(AddedText, ARewrittenEndIsNotCutInACharacter) {
  EXPECT_EQ(added({"ab?", "ab\u6d77x"}, true, "", StreamMemory::Text::kWhole), (Texts{"ab?", "x"}));
  EXPECT_EQ(added({"abc", "a", "abcd"}, true, "", StreamMemory::Text::kWhole),
            (Texts{"abc", "", "d"}));
}

// Any text in any growing steps: what is added joins to it.
TEST(AddedText, RandomWholeTextComesBack) {
  core::Rng rng(3);
  for (int round = 0; round < 500; ++round) {
    std::string all;
    const std::string prompt(rng.below(3), 'a');
    Texts texts;
    for (uint64_t i = 0; i < 1 + rng.below(12); ++i) {
      all += std::string(1 + rng.below(4), static_cast<char>('a' + rng.below(2)));
      texts.push_back(prompt + all);
    }
    std::string joined;
    for (const auto& text : added(texts, true, prompt)) joined += text;
    ASSERT_EQ(joined, all);
  }
}

TEST(LastAddedText, RepetitionsAreTakenOff) {
  StreamMemory memory;
  remember_text("New", memory);
  EXPECT_EQ(last_added_text("New York", memory), "New York");  // one event proves nothing
  remember_text("", memory);
  remember_text(" York", memory);
  EXPECT_EQ(last_added_text("New York is", memory), " is");
  EXPECT_EQ(last_added_text("New York", memory), "");
  EXPECT_EQ(last_added_text("New", memory), "New");
  EXPECT_EQ(last_added_text("", memory), "");
}

}  // namespace
}  // namespace prony::load
