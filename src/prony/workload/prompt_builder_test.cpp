// Tests of prompts: exact token counts, determinism, and that prompts share a beginning only where
// the schedule says so. Besides the byte tokenizer a small merging tokenizer is used, on which a
// character more can mean a token less, as in real vocabularies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "prony/token/byte_tokenizer.hpp"
#include "prony/token/chat.hpp"
#include "prony/token/detokenizer.hpp"
#include "prony/workload/prompt_builder.hpp"
#include "prony/workload/words.hpp"

namespace prony::workload {
namespace {

using ::testing::HasSubstr;

// Greedy longest match: " word" and "word" of every second common word, pairs "ss" and "ee", else
// bytes. Words split before their space, as the pre-tokenizers of BPE vocabularies do.
class MergingTokenizer final : public token::Tokenizer {
 public:
  MergingTokenizer() {
    const auto words = common_words();
    for (size_t i = 0; i < words.size(); i += 2) {
      pieces_.push_back(" " + std::string(words[i]));
      pieces_.emplace_back(words[i]);
    }
    pieces_.emplace_back("ss");
    pieces_.emplace_back("ee");
  }
  std::string_view name() const override { return "merging"; }
  int32_t vocabulary_size() const override { return 256 + static_cast<int32_t>(pieces_.size()); }
  std::optional<token::TokenId> bos_id() const override { return std::nullopt; }
  std::span<const token::TokenId> eos_ids() const override { return {}; }
  std::span<const token::SpecialToken> special_tokens() const override { return {}; }
  void append_encoded(std::string_view text, const token::EncodeOptions&,
                      std::vector<token::TokenId>& out) const override {
    while (!text.empty()) {
      size_t best = pieces_.size();
      for (size_t i = 0; i < pieces_.size(); ++i) {
        if (text.starts_with(pieces_[i]) &&
            (best == pieces_.size() || pieces_[i].size() > pieces_[best].size())) {
          best = i;
        }
      }
      const bool merged = best < pieces_.size();
      out.push_back(merged ? 256 + static_cast<int32_t>(best) : static_cast<uint8_t>(text[0]));
      text.remove_prefix(merged ? pieces_[best].size() : 1);
    }
  }
  void append_bytes(token::TokenId id, const token::DecodeOptions&,
                    std::string& out) const override {
    if (id < 256) {
      out.push_back(static_cast<char>(id));
    } else {
      out += pieces_[static_cast<size_t>(id - 256)];
    }
  }

 private:
  std::vector<std::string> pieces_;
};

ScheduleEntry entry_of(int64_t index, int32_t input_tokens, int32_t prefix_group = -1,
                       int32_t prefix_tokens = 0) {
  ScheduleEntry entry;
  entry.index = index;
  entry.input_tokens = input_tokens;
  entry.output_tokens = 1;
  entry.prefix_group = prefix_group;
  entry.prefix_tokens = prefix_tokens;
  return entry;
}

PromptBuilder builder(std::shared_ptr<const token::Tokenizer> tokenizer,
                      const PromptOptions& options = {}) {
  return PromptBuilder::create(std::move(tokenizer), options).value();
}

std::shared_ptr<const token::Tokenizer> bytes() {
  return std::make_shared<token::ByteTokenizer>();
}

// Printable ASCII, no space at an end, no double space: what survives a chat template's trim.
void expect_looks_like_words(const std::string& text) {
  ASSERT_FALSE(text.empty());
  EXPECT_NE(text.front(), ' ');
  EXPECT_NE(text.back(), ' ');
  EXPECT_EQ(text.find("  "), std::string::npos) << text;
  for (const char c : text) {
    EXPECT_TRUE(c == ' ' || (c >= '!' && c <= '~')) << text;
  }
}

TEST(CommonWords, AreDifferentAndPlain) {
  std::set<std::string_view> words;
  for (const auto word : common_words()) {
    EXPECT_TRUE(words.insert(word).second) << word;
    EXPECT_GE(word.size(), 2u);
    EXPECT_LE(word.size(), 9u);
    for (const char c : word) EXPECT_TRUE(c >= 'a' && c <= 'z') << word;
  }
}

TEST(PromptBuilder, EveryLengthIsExactWithBytes) {
  const token::ByteTokenizer tokenizer;
  const auto prompts = builder(bytes(), {.seed = 1, .salt = 2});
  for (int32_t n = 1; n <= 1500; ++n) {
    const Prompt prompt = prompts.build(entry_of(n, n));
    ASSERT_EQ(tokenizer.count(prompt.text), n);
    ASSERT_EQ(prompt.tokens, n);
    ASSERT_TRUE(prompt.exact);
    expect_looks_like_words(prompt.text);
  }
}

TEST(PromptBuilder, EveryLengthIsExactWithMerges) {
  const auto tokenizer = std::make_shared<MergingTokenizer>();
  const auto prompts = builder(tokenizer, {.seed = 1});
  for (int32_t n = 1; n <= 200; ++n) {
    const Prompt prompt = prompts.build(entry_of(n, n));
    ASSERT_EQ(tokenizer->count(prompt.text), n) << prompt.text;
    ASSERT_TRUE(prompt.exact);
    expect_looks_like_words(prompt.text);
  }
}

TEST(PromptBuilder, LongPromptsAreExactToo) {
  const token::ByteTokenizer tokenizer;
  for (const int32_t n : {8192, 131'072, 1'000'000}) {
    EXPECT_EQ(tokenizer.count(builder(bytes()).build(entry_of(0, n)).text), n);
  }
}

TEST(PromptBuilder, TextIsAFunctionOfOptionsAndEntry) {
  // Bytes of today; they may change only with a good reason, as recorded runs name seed and salt.
  const auto prompts = builder(bytes(), {.seed = 7, .salt = 9});
  EXPECT_EQ(prompts.build(entry_of(3, 60)).text,
            "jufutocufageqof class circle course mouth before deep at eas");
  const Prompt late = prompts.build(entry_of(9, 100));
  for (int64_t i = 0; i < 9; ++i) static_cast<void>(prompts.build(entry_of(i, 50)));
  EXPECT_EQ(prompts.build(entry_of(9, 100)).text, late.text);
  EXPECT_EQ(builder(bytes(), {.seed = 7, .salt = 9}).build(entry_of(9, 100)).text, late.text);
  EXPECT_NE(builder(bytes(), {.seed = 7, .salt = 8}).build(entry_of(9, 100)).text, late.text);
  EXPECT_NE(builder(bytes(), {.seed = 8, .salt = 9}).build(entry_of(9, 100)).text, late.text);
}

TEST(PromptBuilder, NoTwoPromptsShareACacheBlock) {
  // Blocks of 16 tokens, chained from the first: it is enough that the first 16 differ, over
  // requests, warm-up, seeds and salts.
  std::set<std::string> beginnings;
  size_t count = 0;
  for (const uint64_t seed : {1u, 2u}) {
    for (const uint64_t salt : {0u, 1u, 2u}) {
      const auto prompts = builder(bytes(), {.seed = seed, .salt = salt});
      for (int64_t i = 0; i < 3000; ++i) {
        beginnings.insert(prompts.build(entry_of(i, 40)).text.substr(0, 16));
        beginnings.insert(prompts.build_warm_up(i, 40).text.substr(0, 16));
        count += 2;
      }
    }
  }
  EXPECT_EQ(beginnings.size(), count);
}

TEST(PromptBuilder, WarmUpPromptsAreExactAndTheirOwn) {
  const auto prompts = builder(bytes());
  const Prompt warm = prompts.build_warm_up(5, 64);
  EXPECT_EQ(warm.tokens, 64);
  EXPECT_TRUE(warm.exact);
  EXPECT_NE(warm.text, prompts.build(entry_of(5, 64)).text);
}

template <typename Tokenizer>
void expect_groups_share_exactly_their_prefix() {
  const auto tokenizer = std::make_shared<Tokenizer>();
  const auto prompts = builder(tokenizer, {.seed = 3});
  constexpr int32_t kPrefix = 48;
  std::array<std::vector<token::TokenId>, 3> prefixes;
  std::set<std::vector<token::TokenId>> tails;
  for (int64_t i = 0; i < 60; ++i) {
    const auto group = static_cast<int32_t>(i % 3);
    const auto prompt = prompts.build(entry_of(i, 80 + static_cast<int32_t>(i), group, kPrefix));
    ASSERT_TRUE(prompt.exact);
    const auto ids = tokenizer->encode(prompt.text);
    ASSERT_EQ(static_cast<int64_t>(ids.size()), 80 + i);
    const std::vector<token::TokenId> head(ids.begin(), ids.begin() + kPrefix);
    auto& prefix = prefixes[static_cast<size_t>(group)];
    if (prefix.empty()) prefix = head;
    ASSERT_EQ(head, prefix);
    // The 17 tokens after it (space and salt word of the byte tokenizer) are the prompt's own.
    EXPECT_TRUE(tails.insert({ids.begin() + kPrefix, ids.begin() + kPrefix + 17}).second);
  }
  EXPECT_NE(prefixes[0], prefixes[1]);
  EXPECT_NE(prefixes[1], prefixes[2]);
}

TEST(PromptBuilder, GroupsShareExactlyTheirPrefix) {
  expect_groups_share_exactly_their_prefix<token::ByteTokenizer>();
  expect_groups_share_exactly_their_prefix<MergingTokenizer>();
}

TEST(PromptBuilder, ReservedTokensAreLeftToTheTemplate) {
  const int32_t reserved = token::ByteChatTemplate::overhead_tokens(1);
  const auto prompts = builder(bytes(), {.reserved_tokens = reserved});
  const Prompt prompt = prompts.build(entry_of(0, 100));
  EXPECT_EQ(prompt.tokens, 100);
  EXPECT_TRUE(prompt.exact);
  const token::ByteChatTemplate chat;
  const std::vector<token::ChatMessage> messages{{"user", prompt.text}};
  EXPECT_EQ(chat.render(messages)->size(), 100u);
  // Shorter than the template alone: one token of text, and no claim.
  const Prompt tiny = prompts.build(entry_of(0, 3));
  EXPECT_EQ(tiny.text.size(), 1u);
  EXPECT_EQ(tiny.tokens, reserved + 1);
  EXPECT_FALSE(tiny.exact);
}

TEST(PromptBuilder, IdsOfAKnownTokenizerSpellTheText) {
  const token::ByteTokenizer tokenizer;
  const auto texts = builder(bytes(), {.seed = 4});
  const auto ids = builder(bytes(), {.seed = 4, .format = PromptFormat::kIds});
  for (const int32_t n : {1, 17, 300}) {
    const Prompt prompt = ids.build(entry_of(n, n));
    EXPECT_EQ(prompt.ids.size(), static_cast<size_t>(n));
    EXPECT_TRUE(prompt.exact);
    EXPECT_TRUE(prompt.text.empty());
    EXPECT_EQ(tokenizer.decode(prompt.ids), texts.build(entry_of(n, n)).text);
  }
}

TEST(PromptBuilder, IdsWithoutATokenizerKeepOffTheSpecials) {
  const auto prompts =
      builder(nullptr, {.seed = 5, .format = PromptFormat::kIds, .vocabulary_size = 32'000});
  const Prompt first = prompts.build(entry_of(0, 500, 0, 100));
  const Prompt second = prompts.build(entry_of(1, 500, 0, 100));
  EXPECT_TRUE(first.exact);
  EXPECT_EQ(first.tokens, 500);
  ASSERT_EQ(first.ids.size(), 500u);
  EXPECT_TRUE(std::equal(first.ids.begin(), first.ids.begin() + 100, second.ids.begin()));
  EXPECT_NE(std::vector(first.ids.begin() + 100, first.ids.begin() + 116),
            std::vector(second.ids.begin() + 100, second.ids.begin() + 116));
  for (const auto id : first.ids) {
    EXPECT_GE(id, 4000);
    EXPECT_LT(id, 28'000);
  }
}

TEST(PromptBuilder, WithoutATokenizerItIsABestEffortAndSaysSo) {
  const auto prompts = builder(nullptr, {.seed = 6});
  const Prompt prompt = prompts.build(entry_of(0, 50));
  EXPECT_EQ(std::count(prompt.text.begin(), prompt.text.end(), ' '), 49);
  EXPECT_EQ(prompt.tokens, 50);
  EXPECT_FALSE(prompt.exact);
  expect_looks_like_words(prompt.text);
  EXPECT_NE(prompt.text, prompts.build(entry_of(1, 50)).text);
  EXPECT_NE(prompt.text, prompts.build_warm_up(0, 50).text);
  EXPECT_THAT(prompts.describe(), HasSubstr("the real number of tokens differs"));
}

TEST(PromptBuilder, DescribeNamesSaltAndTokenizer) {
  EXPECT_EQ(builder(bytes()).describe(),
            "prompts of an exact number of tokens (byte tokenizer), the same in every run of this "
            "seed");
  EXPECT_EQ(
      builder(bytes(), {.salt = 5, .format = PromptFormat::kIds, .reserved_tokens = 4}).describe(),
      "prompts of an exact number of tokens (byte tokenizer), sent as ids, salt 5, 4 tokens "
      "left to the server's template");
}

TEST(PromptBuilder, BadOptionsAreNamed) {
  EXPECT_THAT(PromptBuilder::create(nullptr, {.format = PromptFormat::kIds}).error().message,
              HasSubstr("--prompt-format ids: found no tokenizer and a vocabulary of 0"));
  EXPECT_FALSE(PromptBuilder::create(nullptr, {.reserved_tokens = -1}).ok());
}

int64_t shared_bytes(const std::string& a, const std::string& b) {
  return std::mismatch(a.begin(),
                       a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())),
                       b.begin())
             .first -
         a.begin();
}

// Prefix blocks: prompts share the tokens of their equal leading ids and no block more.
TEST(PromptBlocks, SharedIdsAreSharedTokens) {
  const auto byte = std::make_shared<const token::ByteTokenizer>();
  const auto builder = PromptBuilder::create(byte, {.seed = 1, .salt = 2}).value();
  const auto prompt = [&](int64_t index, int32_t tokens, std::vector<int64_t> ids) {
    const auto made = builder.build(entry_of(index, tokens), ids, 64);
    EXPECT_TRUE(made.exact);
    EXPECT_EQ(made.text.size(), static_cast<size_t>(tokens));
    return made.text;
  };
  const std::vector<int64_t> ids = {0, 1, 2, 3};
  const auto base = prompt(0, 250, ids);
  EXPECT_EQ(prompt(7, 250, ids), base) << "the ids say everything";
  for (int64_t equal = 0; equal < 4; ++equal) {
    auto other = ids;
    for (size_t i = static_cast<size_t>(equal); i < 4; ++i)
      other[i] = 100 + static_cast<int64_t>(i);
    const int64_t shared = shared_bytes(base, prompt(1, 230, other));
    EXPECT_GE(shared, 64 * equal);
    EXPECT_LT(shared, 64 * equal + 8) << "different blocks begin differently";
  }
  // Beyond its blocks a prompt is its own, and a cut block is the beginning of the whole one.
  EXPECT_NE(prompt(1, 400, ids), prompt(2, 400, ids));
  EXPECT_GE(shared_bytes(prompt(1, 400, ids), prompt(2, 400, ids)), 4 * 64);
  EXPECT_GE(shared_bytes(base, prompt(3, 100, {0, 1})), 98);
  // Another run, another text.
  const auto salted = PromptBuilder::create(byte, {.seed = 1, .salt = 3}).value();
  EXPECT_LT(shared_bytes(salted.build(entry_of(0, 250), ids, 64).text, base), 8);
}

TEST(PromptBlocks, AlsoWithMergingTokenizersAndWithoutAny) {
  const auto merging = std::make_shared<const MergingTokenizer>();
  const auto counted = PromptBuilder::create(merging, {.seed = 1, .salt = 2}).value();
  const auto a = counted.build(entry_of(0, 300), std::vector<int64_t>{0, 1, 2, 3, 4}, 64);
  const auto b = counted.build(entry_of(1, 300), std::vector<int64_t>{0, 1, 9, 8, 7}, 64);
  EXPECT_TRUE(a.exact && b.exact);
  const auto ids_a = merging->encode(a.text), ids_b = merging->encode(b.text);
  int shared = 0;
  while (ids_a[static_cast<size_t>(shared)] == ids_b[static_cast<size_t>(shared)]) ++shared;
  EXPECT_GE(shared, 126);
  EXPECT_LT(shared, 140);
  const auto plain = PromptBuilder::create(
      nullptr, {.seed = 1, .salt = 2, .format = PromptFormat::kIds, .vocabulary_size = 32000});
  const auto x = plain->build(entry_of(0, 300), std::vector<int64_t>{0, 1, 2, 3, 4}, 64);
  const auto y = plain->build(entry_of(1, 300), std::vector<int64_t>{0, 1, 9, 8, 7}, 64);
  EXPECT_TRUE(std::equal(x.ids.begin(), x.ids.begin() + 128, y.ids.begin()));
  EXPECT_NE(x.ids[128], y.ids[128]);
}

TEST(PromptTurns, OwnTextWithoutItsHistory) {
  const auto byte = std::make_shared<const token::ByteTokenizer>();
  const auto builder =
      PromptBuilder::create(byte, {.seed = 1, .salt = 2, .reserved_tokens = 4}).value();
  auto entry = entry_of(3, 500);
  entry.history_tokens = 400;
  entry.output_tokens = 33;
  const auto prompt = builder.build(entry);
  EXPECT_EQ(prompt.text.size(), 96u);
  EXPECT_TRUE(prompt.exact);
  EXPECT_EQ(builder.build_answer(entry).size(), 33u);
  EXPECT_NE(builder.build_answer(entry).substr(0, 15), prompt.text.substr(0, 15));
}

}  // namespace
}  // namespace prony::workload
