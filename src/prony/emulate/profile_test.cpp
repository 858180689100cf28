// Durations from measured tables: exact at the points that were measured, straight between them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "prony/catalog/catalog.hpp"
#include "prony/core/file.hpp"
#include "prony/emulate/profile_fuzz.hpp"
#include "prony/emulate/profile_step_time.hpp"

namespace prony::emulate {
namespace {

using ::testing::HasSubstr;

ProfileTexts small_profile() {
  ProfileTexts texts;
  texts.folder = "p";
  texts.dense = "layer,tokens,time_us\n";
  for (const char* layer : {"embedding", "layernorm", "qkv_proj", "rotary_emb", "o_proj",
                            "gate_up_proj", "act_fn", "down_proj", "final_layernorm"}) {
    for (const char* point : {",1,10", ",2,12", ",10,20"}) {
      texts.dense += std::string(layer) + point + "\n";
    }
  }
  texts.per_sequence = "layer,sequences,time_us\nlm_head,1,100\nlm_head,2,110\nsampler,1,7\n";
  texts.attention =
      "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"
      "0,0,1,16,5\n0,0,1,32,9\n0,0,2,16,6\n0,0,2,32,10\n"
      "16,0,0,0,20\n16,16,0,0,22\n32,0,0,0,40\n32,16,0,0,44\n"
      "16,0,1,16,50\n16,0,2,16,52\n32,0,1,16,90\n32,0,2,16,92\n";
  return texts;
}

TEST(Line, IsStraightBetweenPointsAndKeepsItsLastSlope) {
  Line line;
  line.add(1, 10);
  line.add(3, 20);
  line.add(4, 20);
  line.add(8, 40);
  for (const auto& [x, y] :
       {std::pair{0.0, 10.0}, {1, 10}, {2, 15}, {3.5, 20}, {6, 30}, {10, 50}}) {
    EXPECT_DOUBLE_EQ(line.at(x), y) << x;
  }
}

TEST(Profile, MixedAttentionIsWhatWasMeasured) {
  const auto tables = parse_profile(small_profile());
  ASSERT_TRUE(tables.ok()) << tables.error().message;
  const auto& attention = tables->attention;
  EXPECT_DOUBLE_EQ(attention.decode.at(1, 24), 7);
  EXPECT_DOUBLE_EQ(attention.decode.at(2, 16), 6);
  EXPECT_DOUBLE_EQ(attention.prefill.at(24, 0), 30);
  for (const auto& [chunk, rows, us] : {std::tuple{16.0, 1.0, 50.0}, {16, 2, 52}, {32, 2, 92}}) {
    const double alone = attention.decode.at(rows, 16) + attention.prefill.at(chunk, 0);
    EXPECT_NEAR(alone * attention.ratio({chunk, 0, rows, 16}), us, 1e-4);
  }
  // Beyond the grid, its edge.
  EXPECT_DOUBLE_EQ(attention.ratio({4096, 0, 64, 16}), attention.ratio({32, 0, 2, 16}));
}

TEST(Profile, RefusesWhatIsNoTableByFileAndLine) {
  const auto refusal = [](auto&& damage) {
    auto texts = small_profile();
    damage(texts);
    const auto tables = parse_profile(texts);
    return tables.ok() ? std::string("ok") : tables.error().message;
  };
  EXPECT_EQ(refusal([](auto&) {}), "ok");
  EXPECT_EQ(refusal([](auto& t) { t.dense = "layer;tokens"; }),
            "p/dense.csv:1: found 'layer;tokens', expected layer,tokens,time_us");
  EXPECT_EQ(refusal([](auto& t) { t.dense += "o_proj,4\n"; }),
            "p/dense.csv:29: found 'o_proj,4', expected 3 fields");
  EXPECT_EQ(refusal([](auto& t) { t.attention += "0,0,1,x,5\n"; }),
            "p/attention.csv:14: found 'x', expected a number >= 0");
  EXPECT_EQ(refusal([](auto& t) { t.attention += "0,0,1,64,0\n"; }),
            "p/attention.csv:14: found '0', expected microseconds > 0");
  EXPECT_EQ(refusal([](auto& t) { t.per_sequence += "sampler,-1,4\n"; }),
            "p/per_sequence.csv:5: found '-1', expected a number >= 0");
  EXPECT_EQ(refusal([](auto& t) { t.moe = "tokens,activated_experts,time_us\n"; }),
            "p/moe.csv: found no rows");
  EXPECT_THAT(read_profile("/no/such/folder").error().message, HasSubstr("no such file or folder"));
}

TEST(Profile, TheFuzzersCorpusIsKeptOrRefused) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(PRONY_SOURCE_DIR "/tests/fuzz/profile")) {
    check_any_profile(core::read_file(entry.path().string()).value());
    ++files;
  }
  EXPECT_GE(files, 3);
}

TEST(ProfileStepTime, IsTheSumOfTheLayersOfTheModel) {
  const auto folder = std::string(PRONY_SOURCE_DIR "/tests/data/step-profile");
  auto model = catalog::resolve_model("llama-3.1-8b").value();
  auto time = ProfileStepTime::load(folder, model, 0.001, 0.00001);
  ASSERT_TRUE(time.ok()) << time.error().message;
  // Two decodes: 2 norms and 7 others a layer of 12 us, 10 us of attention for contexts of 32; 2
  // once.
  const double layers = model.layers;
  const double two = layers * (8 * 12 + 10) + 2 * 12 + 110 + 7 + 1000 + 20;
  EXPECT_NEAR(static_cast<double>((*time)->step_ns({2, 64, 2, {}})), two * 1e3, 1);
  EXPECT_EQ((*time)->step_ns({}), 0);
  EXPECT_GT((*time)->step_ns({2, 64, 2, {{0, 16}}}), (*time)->step_ns({2, 64, 2, {}}));
  model.moe = catalog::Moe{.experts = 8, .experts_per_token = 2, .intermediate = 64};
  EXPECT_THAT(ProfileStepTime::load(folder, model, 0, 0).error().message,
              HasSubstr("found no moe.csv"));
}

}  // namespace
}  // namespace prony::emulate
