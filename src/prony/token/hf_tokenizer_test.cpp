// tokenizer.json against Hugging Face's library: six small tokenizers in the shapes of published
// ones, 300 random strings each (tests/data/tokenizer, made by scripts/make_tokenizer_goldens.mjs);
// with PRONY_TOKENIZER_DIR, every folder of it that has a golden.jsonl. And broken files.
#include "prony/token/hf_tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "prony/core/file.hpp"
#include "prony/core/rng.hpp"
#include "prony/core/system.hpp"
#include "prony/token/byte_alphabet.hpp"
#include "prony/token/detokenizer.hpp"
#include "prony/token/regex.hpp"

namespace prony::token {
namespace {

namespace fs = std::filesystem;
using core::Json;
using testing::HasSubstr;

const fs::path kFolder = fs::path(PRONY_SOURCE_DIR) / "tests/data/tokenizer";

std::shared_ptr<const HfTokenizer> open_small(const std::string& name) {
  auto opened = HfTokenizer::open((kFolder / name).string());
  EXPECT_TRUE(opened.ok()) << opened.error().message;
  return opened.value();
}

void compare_with_goldens(const fs::path& folder) {
  const auto opened = HfTokenizer::open(folder.string());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  std::istringstream lines(core::read_file((folder / "golden.jsonl").string()).value());
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) {
    const Json golden = Json::parse(line);
    const auto text = golden["text"].get<std::string>();
    const auto ids = (*opened)->encode(text, {.add_bos = false, .parse_special = true});
    ASSERT_EQ(ids, golden["ids"].get<std::vector<int32_t>>()) << golden["text"];
    const DecodeOptions options{.skip_special = false, .at_text_start = true};
    ASSERT_EQ((*opened)->decode(ids, options), golden["decoded"].get<std::string>())
        << golden["text"];
    std::string streamed;
    Detokenizer detokenizer(**opened, options);
    for (const TokenId id : ids) {
      detokenizer.push(id, streamed);
      ASSERT_TRUE(is_valid_utf8(streamed));
    }
    detokenizer.flush(streamed);
    ASSERT_EQ(streamed, (*opened)->decode(ids, options));
    ++count;
  }
  EXPECT_GE(count, 100);
}

class GoldenTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Shapes, GoldenTest,
                         testing::Values("llama-3", "qwen", "llama-2", "gemma", "metaspace",
                                         "gpt-2"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(GoldenTest, TokensAndTextAreThoseOfTheReference) {
  compare_with_goldens(kFolder / GetParam());
}

// What goes in comes out, where every byte has a token and nothing rewrites the text.
TEST(HfTokenizer, DecodingGivesTheTextBack) {
  for (const char* name : {"llama-3", "llama-2", "gemma"}) {
    const auto tokenizer = open_small(name);
    core::Rng rng(4);
    for (int i = 0; i < 500; ++i) {
      std::string bytes, text;
      for (uint64_t n = rng.below(40); n-- > 0;) bytes += static_cast<char>(rng.below(256));
      Utf8Stream stream;
      stream.push(bytes, text);
      stream.flush(text);
      ASSERT_EQ(tokenizer->decode(tokenizer->encode(bytes), {.at_text_start = true}), text) << name;
    }
  }
}

TEST(HfTokenizer, PublishedOnesIfTheyAreHere) {
  const auto folder = core::environment_variable("PRONY_TOKENIZER_DIR");
  if (!folder) GTEST_SKIP() << "PRONY_TOKENIZER_DIR names no folder of tokenizers";
  int count = 0;
  for (const auto& entry : fs::directory_iterator(*folder)) {
    if (!fs::exists(entry.path() / "golden.jsonl")) continue;
    compare_with_goldens(entry.path());
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(HfTokenizer, ControlTokensOfUsersStayText) {
  const auto tokenizer = open_small("llama-3");
  const auto eot = tokenizer->special_id("<|eot_id|>");
  ASSERT_TRUE(eot.has_value());
  const auto as_text = tokenizer->encode("a<|eot_id|>b");
  EXPECT_EQ(std::count(as_text.begin(), as_text.end(), *eot), 0);
  EXPECT_EQ(tokenizer->decode(as_text), "a<|eot_id|>b");
  const auto parsed = tokenizer->encode("a<|eot_id|>b", {.add_bos = true, .parse_special = true});
  EXPECT_EQ(std::count(parsed.begin(), parsed.end(), *eot), 1);
  EXPECT_EQ(parsed.front(), *tokenizer->bos_id());
  EXPECT_EQ(tokenizer->decode(parsed), "ab");
}

TEST(HfTokenizer, ALineOfEqualCharactersTakesNoTime) {
  for (const char* name : {"llama-3", "llama-2"}) {
    const auto tokenizer = open_small(name);
    const std::string text(300'000, 'a');
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text), {.at_text_start = true}), text);
  }
}

Json small_json() {
  return Json::parse(core::read_file((kFolder / "llama-2/tokenizer.json").string()).value());
}

std::string error_of(const Json& json, std::vector<TokenId> eos = {}) {
  const auto parsed = HfTokenizer::parse(json, {}, std::move(eos), "t.json");
  return parsed.ok() ? "no error" : parsed.error().message;
}

TEST(HfTokenizer, NamesWhatItDoesNotUnderstand) {
  const auto with = [](const char* pointer, const Json& value) {
    Json json = small_json();
    json[Json::json_pointer(pointer)] = value;
    return error_of(json);
  };
  EXPECT_EQ(error_of(small_json()), "no error");
  EXPECT_THAT(error_of(Json::array()), HasSubstr("no model"));
  EXPECT_THAT(with("/normalizer", {{"type", "BertNormalizer"}}),
              HasSubstr("normalizer 'BertNormalizer'"));
  EXPECT_THAT(with("/pre_tokenizer", {{"type", "Whitespace"}}),
              HasSubstr("pre-tokenizer 'Whitespace'"));
  EXPECT_THAT(with("/pre_tokenizer", {{"type", "Split"}, {"behavior", "Isolated"}}),
              HasSubstr("no pattern"));
  EXPECT_THAT(with("/pre_tokenizer",
                   {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}}),
              HasSubstr("pattern '(': missing closing parenthesis at byte 1"));
  EXPECT_THAT(with("/pre_tokenizer",
                   {{"type", "Split"}, {"pattern", {{"String", "x"}}}, {"behavior", "Sideways"}}),
              HasSubstr("split behavior 'Sideways'"));
  EXPECT_THAT(with("/decoder", {{"type", "WordPiece"}}), HasSubstr("decoder"));
  EXPECT_THAT(with("/post_processor", {{"type", "BertProcessing"}}),
              HasSubstr("post-processor 'BertProcessing'"));
  EXPECT_THAT(with("/model/type", "Unigram"), HasSubstr("of type 'Unigram', expected BPE"));
  EXPECT_THAT(with("/model/dropout", 0.1), HasSubstr("dropout"));
  EXPECT_THAT(with("/model/end_of_word_suffix", "</w>"), HasSubstr("end_of_word_suffix"));
  EXPECT_THAT(with("/model/unk_token", "<nope>"), HasSubstr("unk_token '<nope>'"));
  EXPECT_THAT(with("/model/vocab/x", -1), HasSubstr("vocab 'x': found id -1"));
  EXPECT_THAT(with("/model/vocab/zz", 3'000'000), HasSubstr("found id 3000000 among"));
  EXPECT_THAT(with("/model/vocab/zz", 5), HasSubstr("have the same id 5"));
  EXPECT_THAT(with("/model/merges/3", "a b c"), HasSubstr("merges[3]: found no pair"));
  EXPECT_THAT(with("/model/merges/3", "zz qq"),
              HasSubstr("merges[3]: 'zz' is not in the vocabulary"));
  EXPECT_THAT(with("/added_tokens/0", {{"id", 1}}),
              HasSubstr("added_tokens[0]: expected a content"));
  EXPECT_THAT(error_of(small_json(), {1 << 20}), HasSubstr("eos token 1048576 is outside"));
}

TEST(HfTokenizer, EveryEndTokenOfTheFolderCounts) {
  const fs::path folder = fs::path(testing::TempDir()) / "prony_tokenizer_eos";
  fs::create_directories(folder);
  fs::copy_file(kFolder / "llama-3/tokenizer.json", folder / "tokenizer.json",
                fs::copy_options::overwrite_existing);
  const auto write = [&](const char* name, const char* text) {
    ASSERT_TRUE(core::write_file_atomic((folder / name).string(), text).ok());
  };
  write("generation_config.json", R"({"eos_token_id":[5,6]})");
  write("config.json", R"({"eos_token_id":6})");
  write("tokenizer_config.json",
        R"({"eos_token":{"content":"<|eot_id|>"},"bos_token":"<|begin_of_text|>",
            "chat_template":[{"name":"tool","template":"T"},{"name":"default","template":"D"}]})");
  const auto opened = HfTokenizer::open(folder.string());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const TokenId eot = *(*opened)->special_id("<|eot_id|>");
  EXPECT_EQ(std::vector((*opened)->eos_ids().begin(), (*opened)->eos_ids().end()),
            (std::vector<TokenId>{5, 6, eot}));
  EXPECT_EQ((*opened)->chat_template(), "D");
  EXPECT_EQ((*opened)->bos_text(), "<|begin_of_text|>");
  write("chat_template.jinja", "J");
  EXPECT_EQ(HfTokenizer::open(folder.string()).value()->chat_template(), "J");
  fs::remove_all(folder);
}

TEST(HfTokenizer, SurvivesFlippedBytes) {
  const std::string good = core::read_file((kFolder / "metaspace/tokenizer.json").string()).value();
  core::Rng rng(9);
  int parsed = 0;
  for (int i = 0; i < 300; ++i) {
    std::string text = good;
    for (uint64_t flips = 1 + rng.below(3); flips-- > 0;) {
      text[rng.below(text.size())] = static_cast<char>(rng.below(128));
    }
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) continue;
    const auto tokenizer = HfTokenizer::parse(json, {}, {}, "t");
    if (!tokenizer.ok()) continue;
    ++parsed;
    for (const TokenId id : (*tokenizer)->encode("Hello world <s> \u00e9")) {
      ASSERT_TRUE((*tokenizer)->is_valid(id));
    }
  }
  EXPECT_GT(parsed, 0);
}

TEST(ByteAlphabet, EveryByteComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string text = to_byte_alphabet(all);
  EXPECT_TRUE(is_valid_utf8(text));
  EXPECT_EQ(from_byte_alphabet(text), all);
  EXPECT_EQ(to_byte_alphabet(" "), "\u0120");
  EXPECT_EQ(from_byte_alphabet("\u2581"), std::nullopt);
  EXPECT_EQ(from_byte_alphabet(" "), std::nullopt);
}

TEST(Regex, SpacesAreUnicodesWhiteSpace) {
  const auto spaces = Regex::compile(R"(\s+)", "p").value();
  const auto others = Regex::compile(R"([^\s]+|\S)", "p").value();
  for (const char* space : {" ", "\t", "\u0085", "\u00a0", "\u2003", "\u2028", "\u3000"}) {
    EXPECT_TRUE(spaces.match(space, 0).has_value()) << space;
    EXPECT_FALSE(others.match(space, 0).has_value()) << space;
  }
  for (const char* other : {"a", "\u180e", "\u200b", "\ufeff"}) {
    EXPECT_FALSE(spaces.match(other, 0).has_value()) << other;
    EXPECT_TRUE(others.match(other, 0).has_value()) << other;
  }
  EXPECT_EQ(to_pcre2(R"([]\s]\\s)"), R"([\]\t\n\x0B\f\r\x{85}\p{Z}]\\s)");
}

TEST(Regex, AHostilePatternGivesUp) {
  const auto regex = Regex::compile("(a|a)*b", "p").value();
  EXPECT_FALSE(regex.match(std::string(10'000, 'a'), 0).has_value());
}

}  // namespace
}  // namespace prony::token
