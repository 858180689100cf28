// Tests of sizes against published totals and against counts done by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <string>

#include "prony/catalog/catalog.hpp"
#include "prony/perfmodel/parameters.hpp"

namespace prony::perfmodel {
namespace {

using catalog::ModelSpec;

// The tests' own data folder, wherever the build folder is; for every test of this program.
const bool kUsesSourceData = ::setenv("PRONY_DATA", PRONY_SOURCE_DIR "/data", 1) == 0;

ModelSpec model(const std::string& id) {
  auto spec = catalog::resolve_model(id);
  PRONY_CHECK(spec.ok(), spec.ok() ? "" : spec.error().message);
  return *std::move(spec);
}

TEST(Parameters, EveryCatalogueEntryIsWithinAHundredthOfAPercentOfItsPublishedTotal) {
  ASSERT_TRUE(kUsesSourceData);
  const auto ids = catalog::model_ids();
  ASSERT_TRUE(ids.ok());
  for (const std::string& id : *ids) {
    const ModelSpec spec = model(id);
    ASSERT_TRUE(spec.published_parameters.has_value()) << id;
    const double counted = static_cast<double>(parameter_count(spec).total());
    EXPECT_LE(std::abs(counted / *spec.published_parameters - 1), 1e-4)
        << id << ": counted " << counted << ", published " << *spec.published_parameters;
  }
}

// Totals and active counts computed elsewhere from the same shapes (data/models' references), and
// KV bytes of a token with 16-bit elements.
TEST(Parameters, ExactCounts) {
  struct Expected {
    int64_t total, active;
    double kv_bytes;
  };
  const std::map<std::string, Expected> oracle = {
      {"llama-2-7b", {6738415616, 6738415616, 524288}},
      {"llama-2-70b", {68976648192, 68976648192, 327680}},
      {"llama-3-8b", {8030261248, 8030261248, 131072}},     // 128 KiB
      {"llama-3-70b", {70553706496, 70553706496, 327680}},  // 320 KiB
      {"llama-3.1-8b", {8030261248, 8030261248, 131072}},
      {"llama-3.1-70b", {70553706496, 70553706496, 327680}},
      {"qwen2.5-7b", {7615616512, 7615616512, 57344}},
      {"qwen2.5-72b", {72706203648, 72706203648, 327680}},
      {"qwen3-8b", {8190735360, 8190735360, 147456}},
      {"qwen3-32b", {32762123264, 32762123264, 262144}},
      {"qwen3-30b-a3b", {30532122624, 3353032704, 98304}},
      {"mixtral-8x7b", {46702792704, 12879925248, 131072}},
      {"deepseek-v2-lite", {15706484224, 2661150208, 31104}},
      {"deepseek-v3", {671026419200, 37552297472, 70272}},  // 61 * 576 * 2
      {"deepseek-r1", {671026419200, 37552297472, 70272}},
      {"gpt-oss-120b", {116829156672, 5711982912, 73728}},
      {"gemma-2-9b", {9241705984, 9241705984, 344064}},
  };
  for (const auto& [id, expected] : oracle) {
    const ModelSpec spec = model(id);
    EXPECT_EQ(parameter_count(spec).total(), expected.total) << id;
    EXPECT_EQ(parameter_count(spec).active(), expected.active) << id;
    EXPECT_EQ(kv_bytes_per_token(spec, 2), expected.kv_bytes) << id;
  }
}

TEST(Parameters, ClassesOfATinyModelByHand) {
  ModelSpec spec;
  spec.layers = 3;
  spec.hidden = 8;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 6;
  spec.intermediate = 10;
  spec.vocab = 32;
  spec.qkv_bias = spec.qk_norm = spec.o_bias = spec.mlp_bias = true;
  const ParameterCount count = parameter_count(spec);
  EXPECT_EQ(count.embedding, 32 * 8);
  EXPECT_EQ(count.head, 32 * 8);
  // qkv 8 x (4 + 2*2)*6 = 8 x 48, output 24 x 8
  EXPECT_EQ(count.attention, 3 * (8 * 48 + 24 * 8));
  EXPECT_EQ(count.mlp, 3 * 3 * 8 * 10);
  // per layer: qkv bias 48, o bias 8, q and k norms 2*6, two norms 16, MLP biases 10+10+8
  EXPECT_EQ(count.other, 3 * (48 + 8 + 12 + 16 + 28) + 8);
  spec.tied_embeddings = true;
  EXPECT_EQ(parameter_count(spec).head, 0);
  EXPECT_EQ(parameter_count(spec).total(), count.total() - 32 * 8);
  spec.sandwich_norms = true;
  EXPECT_EQ(parameter_count(spec).other, count.other + 3 * 16);
}

TEST(Parameters, PresetsHaveTheSizeTheyPromise) {
  EXPECT_EQ(parameter_count(model("dummy:test")).total(), 94528);
  EXPECT_EQ(parameter_count(model("dummy:demo")).total(), 9565056);
  EXPECT_EQ(parameter_count(model("dummy:small")).total(), 119999232);
}

TEST(Parameters, WeightBytesFollowThePublishedFormat) {
  EXPECT_EQ(weight_bytes(model("llama-3.1-8b"), uniform_precision(2)), 2.0 * 8030261248);
  // DeepSeek-V3: fp8 with a scale a block for linear layers and experts, 16 bits for the rest.
  const ModelSpec v3 = model("deepseek-v3");
  const ParameterCount count = parameter_count(v3);
  const double expected =
      (1 + 4.0 / 16384) * static_cast<double>(count.attention + count.mlp + count.experts) +
      2.0 * static_cast<double>(count.embedding + count.head + count.other);
  EXPECT_DOUBLE_EQ(weight_bytes(v3, published_precision(v3)), expected);
  EXPECT_NEAR(expected, 673.1e9, 0.5e9);
  // gpt-oss-120b's safetensors hold 65,248,815,744 bytes by their index.
  const ModelSpec oss = model("gpt-oss-120b");
  EXPECT_NEAR(weight_bytes(oss, published_precision(oss)), 65248815744.0, 1e-6 * 65e9);
  EXPECT_EQ(published_precision(model("llama-2-7b")).activation, 2);
}

TEST(Parameters, KvBytesOfAContextStopGrowingInsideTheWindow) {
  const ModelSpec gemma = model("gemma-2-9b");  // 42 layers, 21 of them see 4096 tokens
  const double per_layer = 2.0 * 8 * 256 * 2;
  EXPECT_EQ(kv_bytes(gemma, 2, 1000), 42 * 1000 * per_layer);
  EXPECT_EQ(kv_bytes(gemma, 2, 8000), (21 * 8000 + 21 * 4096) * per_layer);
  EXPECT_EQ(kv_bytes(gemma, 2, 0), 0);
  const ModelSpec llama = model("llama-3.1-8b");
  EXPECT_EQ(kv_bytes(llama, 1, 8192), 8192 * kv_bytes_per_token(llama, 1));
}

}  // namespace
}  // namespace prony::perfmodel
