// Tests of the Hugging Face config reader: the semantics of each architecture, and equality with
// the catalogue's own files, which were written independently of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "prony/catalog/catalog.hpp"
#include "prony/catalog/hf_config.hpp"
#include "prony/core/file.hpp"
#include "prony/core/json.hpp"

namespace prony::catalog {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

core::Json sample(const std::string& id) {
  const fs::path path = fs::path(PRONY_SOURCE_DIR) / "tests/data/catalog/hf" / (id + ".json");
  return core::parse_json(core::read_file(path.string()).value(), id).value();
}

Result<ModelSpec> parse(const core::Json& json) {
  return parse_hf_config(json.dump(), "c.json");
}

TEST(HfConfig, AgreesWithTheCatalogueForEverySample) {
  int samples = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(PRONY_SOURCE_DIR) / "tests/data/catalog/hf")) {
    const std::string id = entry.path().stem().string();
    auto from_config = parse(sample(id));
    ASSERT_TRUE(from_config.ok()) << id << ": " << from_config.error().message;
    const auto from_catalogue = load_model(id);
    ASSERT_TRUE(from_catalogue.ok()) << from_catalogue.error().message;
    // What config.json does not say.
    from_config->id = from_catalogue->id;
    from_config->ref = from_catalogue->ref;
    from_config->huggingface_id = from_catalogue->huggingface_id;
    from_config->published_parameters = from_catalogue->published_parameters;
    from_config->published_active_parameters = from_catalogue->published_active_parameters;
    EXPECT_TRUE(*from_config == *from_catalogue) << id;
    ++samples;
  }
  EXPECT_EQ(samples, 14);
}

TEST(HfConfig, HeadDimIsReadBeforeItIsDerived) {
  auto json = sample("qwen3-0.6b");
  EXPECT_EQ(parse(json)->head_dim, 128);  // not 1024 / 16 = 64
  json["head_dim"] = nullptr;
  EXPECT_EQ(parse(json)->head_dim, 64);
}

TEST(HfConfig, MissingKvHeadsMeansMultiHead) {
  auto json = sample("llama-2-7b");
  json.erase("num_key_value_heads");
  EXPECT_EQ(parse(json)->kv_heads, 32);
}

TEST(HfConfig, EosIsANumberOrAList) {
  auto json = sample("llama-3.1-8b");
  EXPECT_THAT(parse(json)->eos_ids, ElementsAre(128001));
  json["eos_token_id"] = {128001, 128008, 128009};
  EXPECT_THAT(parse(json)->eos_ids, ElementsAre(128001, 128008, 128009));
  json["eos_token_id"] = nullptr;
  EXPECT_TRUE(parse(json)->eos_ids.empty());
}

TEST(HfConfig, GenerationConfigAddsItsEosIds) {
  auto spec = parse(sample("llama-3.1-8b")).value();
  const auto added = add_generation_config(R"({"eos_token_id": [128001, 128008, 128009]})",
                                           "generation_config.json", spec);
  ASSERT_TRUE(added.ok());
  EXPECT_THAT(spec.eos_ids, ElementsAre(128001, 128008, 128009));
  const auto refused = add_generation_config(R"({"eos_token_id": 999999})", "g.json", spec);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "g.json: eos_token_id is 999999, expected a whole number from 0 to 128255");
}

TEST(HfConfig, RopeParametersOfTransformers5) {
  auto json = sample("llama-3.1-8b");
  const auto old_style = parse(json).value();
  json["rope_parameters"] = json["rope_scaling"];
  json["rope_parameters"]["rope_theta"] = json["rope_theta"];
  json.erase("rope_scaling");
  json.erase("rope_theta");
  EXPECT_TRUE(parse(json)->rope == old_style.rope);
  json["rope_parameters"] = {{"rope_theta", 10000.0}};  // type left out: default
  EXPECT_EQ(parse(json)->rope.type, RopeType::kDefault);
}

TEST(HfConfig, RopeTypeUnderItsOldName) {
  auto json = sample("llama-2-7b");
  json["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  const auto spec = parse(json).value();
  EXPECT_EQ(spec.rope.type, RopeType::kLinear);
  EXPECT_EQ(spec.rope.factor, 4.0);
}

TEST(HfConfig, SlidingWindowOfQwenNeedsItsSwitchAndStartsLate) {
  auto json = sample("qwen2.5-0.5b");
  EXPECT_FALSE(parse(json)->sliding_window.has_value());  // a window is given, the switch is off
  json["use_sliding_window"] = true;
  json["sliding_window"] = 4096;
  EXPECT_FALSE(parse(json)->sliding_window.has_value());  // max_window_layers is all 24 layers
  json["max_window_layers"] = 21;
  const auto spec = parse(json).value();
  EXPECT_EQ(sliding_layers(spec), 3);
  EXPECT_FALSE(attention_window(spec, 20).has_value());
  EXPECT_EQ(attention_window(spec, 21), 4096);
}

TEST(HfConfig, SlidingWindowOfMistral) {
  auto json = sample("mistral-7b-v0.3");
  EXPECT_FALSE(parse(json)->sliding_window.has_value());
  json["sliding_window"] = 1024;
  EXPECT_EQ(sliding_layers(parse(json).value()), 32);
  json.erase("sliding_window");  // MistralConfig's own default
  EXPECT_EQ(parse(json)->sliding_window, 4096);
}

TEST(HfConfig, SlidingWindowOfGemmaAndGptOssAlternates) {
  const auto gemma = parse(sample("gemma-2-9b")).value();
  EXPECT_EQ(attention_window(gemma, 0), 4096);
  EXPECT_FALSE(attention_window(gemma, 1).has_value());
  EXPECT_EQ(sliding_layers(gemma), 21);
  auto json = sample("gpt-oss-120b");
  EXPECT_EQ(sliding_layers(parse(json).value()), 18);
  json.erase("layer_types");  // the class's default is the same pattern
  EXPECT_EQ(sliding_layers(parse(json).value()), 18);
}

TEST(HfConfig, LayerTypesOverrideTheRest) {
  auto json = sample("qwen3-8b");
  std::vector<std::string> types(36, "full_attention");
  types[34] = types[35] = "sliding_attention";
  json["layer_types"] = types;
  EXPECT_THAT(parse(json).error().message, HasSubstr("because no sliding window is set"));
  json["use_sliding_window"] = true;
  json["sliding_window"] = 512;
  const auto spec = parse(json).value();
  EXPECT_EQ(sliding_layers(spec), 2);
  EXPECT_EQ(spec.sliding_first_layer, 34);
  json["layer_types"] = std::vector<std::string>(36, "full_attention");
  EXPECT_FALSE(parse(json)->sliding_window.has_value());
}

TEST(HfConfig, AttentionBiasOfLlamaIsOnFourProjectionsAndOfQwen2OnThree) {
  auto json = sample("llama-3.1-8b");
  json["attention_bias"] = true;
  EXPECT_TRUE(parse(json)->qkv_bias);
  EXPECT_TRUE(parse(json)->o_bias);
  const auto qwen = parse(sample("qwen2.5-0.5b")).value();
  EXPECT_TRUE(qwen.qkv_bias);
  EXPECT_FALSE(qwen.o_bias);
}

TEST(HfConfig, GemmaTiesItsHeadWithoutSayingSo) {
  auto json = sample("gemma-2-9b");
  ASSERT_FALSE(json.contains("tie_word_embeddings"));
  const auto spec = parse(json).value();
  EXPECT_TRUE(spec.tied_embeddings);
  EXPECT_EQ(spec.attention_scale, 0.0625);
  json["attn_logit_softcapping"] = nullptr;
  EXPECT_FALSE(parse(json)->attention_softcap.has_value());
}

TEST(HfConfig, DeepSeekHeadDimIsNopePlusRope) {
  auto json = sample("deepseek-v3");
  json["head_dim"] = 64;  // what transformers 5 writes: the rotated part only
  EXPECT_EQ(parse(json)->head_dim, 192);
  EXPECT_EQ(parse(json)->mtp_layers, 1);
  // The native class of transformers leaves these two out.
  json.erase("scoring_func");
  json.erase("topk_method");
  EXPECT_EQ(parse(json)->moe->scoring, RouterScoring::kSigmoid);
  EXPECT_TRUE(parse(json)->moe->router_bias);
}

TEST(HfConfig, Qwen2MoeHasAGatedSharedExpert) {
  // Shape of Qwen/Qwen1.5-MoE-A2.7B.
  const auto spec =
      parse_hf_config(R"({"architectures": ["Qwen2MoeForCausalLM"], "hidden_size": 2048,
        "intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16,
        "num_key_value_heads": 16, "vocab_size": 151936, "max_position_embeddings": 8192,
        "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632, "norm_topk_prob": false,
        "rope_theta": 1000000.0, "hidden_act": "silu"})",
                      "c.json");
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_TRUE(spec->moe->shared_gate);
  EXPECT_FALSE(spec->moe->normalize_top_k);
  EXPECT_EQ(spec->moe->shared_intermediate, 5632);
}

TEST(HfConfig, WeightFormats) {
  EXPECT_EQ(parse(sample("llama-2-7b"))->weight_format, WeightFormat::kF16);
  EXPECT_EQ(parse(sample("deepseek-v3"))->weight_format, WeightFormat::kFp8Block128);
  EXPECT_EQ(parse(sample("gpt-oss-120b"))->weight_format, WeightFormat::kMxfp4Experts);
  auto json = sample("llama-2-7b");
  json.erase("torch_dtype");
  json["dtype"] = "float32";  // transformers 5
  EXPECT_EQ(parse(json)->weight_format, WeightFormat::kF32);
}

TEST(HfConfig, EveryTruncationIsRefused) {
  const std::string text = sample("gpt-oss-120b").dump();
  for (size_t size = 0; size < text.size(); ++size) {
    ASSERT_FALSE(parse_hf_config(text.substr(0, size), "cut.json").ok()) << size;
  }
}

}  // namespace
}  // namespace prony::catalog
