// Hand-computed work of every operator. Precision gives each class of tensor its own prime number
// of bytes, so that a byte counted in the wrong class changes the sum.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "prony/catalog/catalog.hpp"
#include "prony/perfmodel/parameters.hpp"
#include "prony/perfmodel/step_model.hpp"

namespace prony::perfmodel {
namespace {

using catalog::ModelSpec;
using Kind = OperatorKind;

constexpr Precision kPrimes = {
    .linear = 2, .expert = 3, .embedding = 5, .head = 7, .other = 11, .activation = 13, .kv = 17};

ModelSpec tiny() {
  ModelSpec spec;
  spec.layers = 3;
  spec.hidden = 8;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 6;  // not hidden / heads
  spec.intermediate = 10;
  spec.vocab = 32;
  spec.max_context = 4096;
  return spec;
}

// Two decodes at contexts 9 and 4, and a prefill chunk of 3 behind a prefix of 5 without logits.
// 5 tokens, 2 samples. Keys: decode 10 + 5, prefill 8. Pairs: decode 10 + 5,
// prefill 6 + 7 + 8 = 21.
StepShape mixed() {
  StepShape shape;
  shape.add({9, 1, true});
  shape.add({4, 1, true});
  shape.add({5, 3, false});
  return shape;
}

const Operator& find(const std::vector<Operator>& list, Kind kind) {
  for (const Operator& op : list) {
    if (op.kind == kind) return op;
  }
  PRONY_CHECK(false, operator_name(kind));
}

bool has(const std::vector<Operator>& list, Kind kind) {
  for (const Operator& op : list) {
    if (op.kind == kind) return true;
  }
  return false;
}

void expect_work(const Operator& op, double flops, double vector_flops, double weight_bytes,
                 double activation_bytes, double kv_read_bytes = 0, double kv_write_bytes = 0) {
  SCOPED_TRACE(operator_name(op.kind));
  EXPECT_DOUBLE_EQ(op.flops, flops);
  EXPECT_DOUBLE_EQ(op.vector_flops, vector_flops);
  EXPECT_DOUBLE_EQ(op.weight_bytes, weight_bytes);
  EXPECT_DOUBLE_EQ(op.activation_bytes, activation_bytes);
  EXPECT_DOUBLE_EQ(op.kv_read_bytes, kv_read_bytes);
  EXPECT_DOUBLE_EQ(op.kv_write_bytes, kv_write_bytes);
}

TEST(StepModel, DenseOperatorsByHand) {
  const auto ops = StepModel(tiny(), kPrimes).operators(mixed());
  // 5 rows of 8 looked up and written.
  expect_work(find(ops, Kind::kEmbed), 0, 0, 40 * 5, 40 * 13);
  // 40 elements: 5 operations each; branch and residual in, sum and norm out: 160 elements.
  expect_work(find(ops, Kind::kAttentionNorm), 0, 200, 8 * 11, 160 * 13);
  // [5, 8] x [8, (4 + 2 + 2) * 6 = 48]: 2*5*8*48 = 3840; in 40, out 240.
  expect_work(find(ops, Kind::kQkv), 3840, 0, 8 * 48 * 2, 280 * 13);
  // Rotates (4 + 2) * 6 = 36 of 48 elements of 5 tokens; reads 240, writes queries 120 back and
  // 5 * 2 * 2 * 6 = 120 elements to the cache.
  expect_work(find(ops, Kind::kRopeStore), 0, 3 * 180, 0, 360 * 13, 0, 120 * 17);
  // 21 pairs: 4 * 6 * 4 heads * 21 = 2016, 5 * 4 * 21 softmax; q and result 3 * 24 each;
  // 8 keys * 24 elements.
  expect_work(find(ops, Kind::kAttentionPrefill), 2016, 420, 0, 144 * 13, 192 * 17);
  // 15 pairs: 96 * 15; q and result 2 * 24 each; 15 keys * 24 elements.
  expect_work(find(ops, Kind::kAttentionDecode), 1440, 300, 0, 96 * 13, 360 * 17);
  // [5, 24] x [24, 8].
  expect_work(find(ops, Kind::kOutput), 2 * 5 * 24 * 8, 0, 192 * 2, (120 + 40) * 13);
  expect_work(find(ops, Kind::kMlpNorm), 0, 200, 8 * 11, 160 * 13);
  // [5, 8] x [8, 20], 5 * 10 activations of 4 operations, [5, 10] x [10, 8].
  expect_work(find(ops, Kind::kGateUp), 1600, 0, 160 * 2, 140 * 13);
  expect_work(find(ops, Kind::kActivation), 0, 200, 0, 150 * 13);
  expect_work(find(ops, Kind::kDown), 800, 0, 80 * 2, 90 * 13);
  expect_work(find(ops, Kind::kFinalNorm), 0, 200, 8 * 11, 160 * 13);
  // Two rows that sample: [2, 8] x [8, 32].
  expect_work(find(ops, Kind::kHead), 1024, 0, 256 * 7, (16 + 64) * 13);
  EXPECT_EQ(ops.size(), 13U);
  for (const Operator& op : ops) {
    EXPECT_EQ(op.count, op.group == kNoGroup ? 1 : 3) << operator_name(op.kind);
  }
  const Operator& qkv = find(ops, Kind::kQkv);
  EXPECT_EQ(qkv.m, 5);
  EXPECT_EQ(qkv.n, 48);
  EXPECT_EQ(qkv.k, 8);
}

TEST(StepModel, BiasesNormsAndSinksByHand) {
  ModelSpec spec = tiny();
  spec.qkv_bias = spec.o_bias = spec.mlp_bias = spec.qk_norm = spec.attention_sinks = true;
  spec.sandwich_norms = spec.scaled_embedding = true;
  spec.attention_softcap = spec.logit_softcap = 30;
  spec.activation = catalog::Activation::kGeluTanh;
  spec.tied_embeddings = true;
  const auto ops = StepModel(spec, kPrimes).operators(mixed());
  expect_work(find(ops, Kind::kEmbed), 0, 40, 40 * 5, 40 * 13);
  expect_work(find(ops, Kind::kQkv), 3840, 240, 8 * 48 * 2 + 48 * 11, 280 * 13);
  // 36 elements of 5 tokens in and out; weights 6 for queries and 6 for keys.
  expect_work(find(ops, Kind::kQkNorm), 0, 720, 12 * 11, 360 * 13);
  expect_work(find(ops, Kind::kAttentionDecode), 1440, 15 * 4 * 8, 4 * 11, 96 * 13, 360 * 17);
  expect_work(find(ops, Kind::kOutput), 1920, 40, 192 * 2 + 8 * 11, 160 * 13);
  expect_work(find(ops, Kind::kPostAttentionNorm), 0, 160, 8 * 11, 80 * 13);
  expect_work(find(ops, Kind::kGateUp), 1600, 100, 160 * 2 + 20 * 11, 140 * 13);
  expect_work(find(ops, Kind::kActivation), 0, 50 * 9, 0, 150 * 13);
  expect_work(find(ops, Kind::kDown), 800, 40, 80 * 2 + 8 * 11, 90 * 13);
  expect_work(find(ops, Kind::kPostMlpNorm), 0, 160, 8 * 11, 80 * 13);
  // The tied head is read at the embedding's precision; softcap 3 * 64 logits.
  expect_work(find(ops, Kind::kHead), 1024, 192, 256 * 5, 80 * 13);
}

TEST(StepModel, SlidingLayersAreAGroupOfTheirOwn) {
  ModelSpec spec = tiny();
  spec.layers = 5;
  spec.sliding_window = 4;
  spec.sliding_alternates = true;  // layers 0, 2, 4
  const StepModel model(spec, kPrimes);
  ASSERT_EQ(model.groups().size(), 2U);
  EXPECT_EQ(model.groups()[0].count, 3);
  EXPECT_EQ(model.groups()[0].window, 4);
  EXPECT_EQ(model.groups()[1].first_layer, 1);
  EXPECT_EQ(model.groups()[1].count, 2);
  for (const Operator& op : model.operators(mixed())) {
    const bool slides = op.group == 0;
    if (op.kind == Kind::kAttentionDecode) {  // 4 + 4 pairs and keys instead of 10 + 5
      expect_work(op, 96 * (slides ? 8 : 15), 20 * (slides ? 8 : 15), 0, 96 * 13,
                  24 * (slides ? 8 : 15) * 17);
      EXPECT_EQ(op.count, slides ? 3 : 2);
    } else if (op.kind == Kind::kAttentionPrefill) {
      // 3 queries of 4 pairs; positions 2..7, 6 keys: min(8, 3 + 4 - 1)
      expect_work(op, 96 * (slides ? 12 : 21), 20 * (slides ? 12 : 21), 0, 144 * 13,
                  24 * (slides ? 6 : 8) * 17);
    }
  }
}

TEST(StepModel, MixtureByHand) {
  ModelSpec spec = tiny();
  spec.moe = catalog::Moe{.experts = 4, .experts_per_token = 2, .intermediate = 6};
  spec.moe->dense_layers = 1;
  spec.moe->shared_intermediate = 5;
  spec.moe->shared_gate = spec.moe->router_bias = spec.moe->expert_bias = true;
  const StepModel model(spec, kPrimes);
  ASSERT_EQ(model.groups().size(), 2U);
  EXPECT_FALSE(model.groups()[0].moe);
  EXPECT_EQ(model.groups()[1].count, 2);
  const auto ops = model.operators(mixed());
  EXPECT_EQ(find(ops, Kind::kGateUp).count, 1);
  // [5, 8] x [8, 4], weights and bias in "other" precision; 5 operations a score, 1 for the bias.
  expect_work(find(ops, Kind::kRouter), 320, 100 + 20, (32 + 4) * 11, 60 * 13);
  // Expected experts 4 (1 - 0.5^5) = 3.875; 10 routed rows. Weights 3.875 * 8 * 12.
  const double reached = 3.875;
  const Operator& up = find(ops, Kind::kExpertGateUp);
  expect_work(up, 2 * 10 * 8 * 12, 120, reached * (96 * 3 + 12 * 11), (80 + 120) * 13);
  EXPECT_DOUBLE_EQ(up.batch, reached);
  EXPECT_DOUBLE_EQ(up.m, 10 / reached);
  expect_work(find(ops, Kind::kExpertActivation), 0, 240, 0, 180 * 13);
  expect_work(find(ops, Kind::kExpertDown), 2 * 10 * 6 * 8, 80, reached * (48 * 3 + 8 * 11),
              (60 + 80) * 13);
  expect_work(find(ops, Kind::kExpertCombine), 0, 160, 0, (80 + 40) * 13);
  // Shared expert of width 5: [5, 8] x [8, 10], then [5, 5] x [5, 8] with the gate of 8 weights.
  expect_work(find(ops, Kind::kSharedGateUp), 800, 0, 80 * 2, 90 * 13);
  expect_work(find(ops, Kind::kSharedActivation), 0, 100, 0, 75 * 13);
  expect_work(find(ops, Kind::kSharedDown), 400 + 80, 50, 40 * 2 + 8 * 11, (65 + 40) * 13);
}

TEST(StepModel, LatentAttentionByHand) {
  ModelSpec spec = tiny();
  spec.kv_heads = 4;
  spec.head_dim = 6;  // 4 + 2
  spec.mla = catalog::Mla{.q_lora_rank = 5,
                          .kv_lora_rank = 7,
                          .qk_nope_head_dim = 4,
                          .qk_rope_head_dim = 2,
                          .v_head_dim = 3};
  const auto ops = StepModel(spec, kPrimes).operators(mixed());
  EXPECT_FALSE(has(ops, Kind::kQkv));
  // [5, 8] x [8, 5]; norm of 5; [5, 5] x [5, 24]; [5, 8] x [8, 9]; norm of 7.
  expect_work(find(ops, Kind::kMlaQueryDown), 400, 0, 40 * 2, 65 * 13);
  expect_work(find(ops, Kind::kMlaQueryNorm), 0, 100, 5 * 11, 50 * 13);
  expect_work(find(ops, Kind::kMlaQueryUp), 1200, 0, 120 * 2, 145 * 13);
  expect_work(find(ops, Kind::kMlaKvDown), 720, 0, 72 * 2, 85 * 13);
  expect_work(find(ops, Kind::kMlaKvNorm), 0, 140, 7 * 11, 70 * 13);
  // Rotates 4 query parts and 1 key part of 2; reads 8 + 9, writes 8; 9 elements to the cache.
  expect_work(find(ops, Kind::kRopeStore), 0, 3 * 50, 0, (85 + 40) * 13, 0, 45 * 17);
  // Prefill row: 8 positions expanded, [8, 7] x [7, 4 * (4 + 3) = 28].
  expect_work(find(ops, Kind::kMlaKvUp), 2 * 8 * 7 * 28, 0, 196 * 2, 224 * 13, 56 * 17);
  // 21 pairs * 4 heads * 2 * (6 + 3); queries 3 * 24, expanded 224, results 3 * 12; 8 * 2 shared
  // rotated keys from the cache.
  expect_work(find(ops, Kind::kAttentionPrefill), 1512, 420, 0, (72 + 224 + 36) * 13, 16 * 17);
  // Decode rows: 4 heads of [2, 4] x [4, 7].
  expect_work(find(ops, Kind::kMlaAbsorbQuery), 448, 0, 112 * 2, (32 + 56) * 13);
  // 15 pairs * 4 heads * 2 * (9 + 7); queries 2 * 4 * 9, results 2 * 4 * 7; 15 keys of 9.
  expect_work(find(ops, Kind::kAttentionDecode), 1920, 300, 0, (72 + 56) * 13, 135 * 17);
  // 4 heads of [2, 7] x [7, 3].
  expect_work(find(ops, Kind::kMlaAbsorbValue), 336, 0, 84 * 2, (56 + 24) * 13);
  // [5, 12] x [12, 8].
  expect_work(find(ops, Kind::kOutput), 960, 0, 96 * 2, 100 * 13);

  spec.mla->q_lora_rank = 0;  // DeepSeek-V2-Lite: queries straight from the hidden state
  const auto direct = StepModel(spec, kPrimes).operators(mixed());
  EXPECT_FALSE(has(direct, Kind::kMlaQueryDown));
  expect_work(find(direct, Kind::kMlaQueryUp), 2 * 5 * 8 * 24, 0, 192 * 2, 160 * 13);
}

TEST(StepModel, LimitsOfABatch) {
  const StepModel model(tiny(), kPrimes);
  StepShape shape;
  EXPECT_TRUE(model.operators(shape).empty());

  shape.add({0, 1, true});  // the first token of an empty sequence attends to itself
  auto ops = model.operators(shape);
  EXPECT_FALSE(has(ops, Kind::kAttentionPrefill));
  EXPECT_DOUBLE_EQ(find(ops, Kind::kAttentionDecode).flops, 96);

  shape.clear();
  shape.add({0, 7, false});  // a chunk that is not the prompt's last: no head at all
  ops = model.operators(shape);
  EXPECT_FALSE(has(ops, Kind::kHead));
  EXPECT_FALSE(has(ops, Kind::kAttentionDecode));

  shape.clear();
  shape.add({100, 1, true}, 64);  // zero prefill
  ops = model.operators(shape);
  EXPECT_FALSE(has(ops, Kind::kAttentionPrefill));
  EXPECT_DOUBLE_EQ(find(ops, Kind::kAttentionDecode).kv_read_bytes, 64.0 * 101 * 24 * 17);
}

TEST(StepModel, NoRopeNeedsNoRotation) {
  ModelSpec spec = tiny();
  spec.rope.type = catalog::RopeType::kNone;
  const auto ops = StepModel(spec, kPrimes).operators(mixed());
  expect_work(find(ops, Kind::kRopeStore), 0, 0, 0, 360 * 13, 0, 120 * 17);
}

// For every kind of model: what depends on tokens adds up over rows, and what is read once does
// not.
TEST(StepModel, AStepIsTheSumOfItsRowsButForTheWeights) {
  const std::vector<StepRow> rows = {{9, 1, true},    {4, 1, true},   {5000, 1, true},
                                     {5, 3, false},   {0, 300, true}, {6000, 120, true},
                                     {100, 1, false}, {0, 1, true}};
  for (const char* id : {"llama-3.1-8b", "gemma-2-9b", "gpt-oss-120b", "qwen3-30b-a3b",
                         "deepseek-v3", "deepseek-v2-lite", "qwen2.5-0.5b"}) {
    const auto spec = catalog::resolve_model(id);
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    const StepModel model(*spec, published_precision(*spec));
    StepShape all;
    StepTotals sum;
    for (const StepRow& row : rows) {
      all.add(row);
      StepShape one;
      one.add(row);
      const StepTotals single = totals(model.operators(one));
      sum.flops += single.flops;
      sum.vector_flops += single.vector_flops;
      sum.activation_bytes += single.activation_bytes;
      sum.kv_read_bytes += single.kv_read_bytes;
      sum.kv_write_bytes += single.kv_write_bytes;
      sum.weight_bytes += single.weight_bytes;
    }
    const StepTotals whole = totals(model.operators(all));
    EXPECT_NEAR(whole.flops / sum.flops, 1, 1e-12) << id;
    EXPECT_NEAR(whole.vector_flops / sum.vector_flops, 1, 1e-12) << id;
    EXPECT_NEAR(whole.activation_bytes / sum.activation_bytes, 1, 1e-12) << id;
    EXPECT_NEAR(whole.kv_read_bytes / sum.kv_read_bytes, 1, 1e-12) << id;
    EXPECT_NEAR(whole.kv_write_bytes / sum.kv_write_bytes, 1, 1e-12) << id;
    EXPECT_LT(whole.weight_bytes, sum.weight_bytes) << id;
  }
}

// Weights read by a step so large that every expert is reached are the weights in memory, but for
// the embedding table, of which only looked-up rows are read, and the two parts of MLA's kv_b that
// prefill (whole) and decode (absorbed) rows read separately.
TEST(StepModel, ALargeStepReadsEveryWeightOnce) {
  const auto ids = catalog::model_ids();
  ASSERT_TRUE(ids.ok());
  for (const std::string& id : *ids) {
    const auto spec = catalog::load_model(id);
    ASSERT_TRUE(spec.ok());
    const Precision precision = published_precision(*spec);
    StepShape shape;
    shape.add({0, 8192, true}, 4);
    const StepTotals step = totals(StepModel(*spec, precision).operators(shape));
    const double table = static_cast<double>(spec->vocab) * spec->hidden * precision.embedding;
    const double looked_up = 4.0 * 8192 * spec->hidden * precision.embedding;
    // A tied table is still read by the head.
    const double expected =
        weight_bytes(*spec, precision) + looked_up - (spec->tied_embeddings ? 0 : table);
    EXPECT_NEAR(step.weight_bytes / expected, 1, 1e-9) << id;
  }
}

// 2 FLOP per active parameter and token, apart from attention's pairs and the embedding: the rule
// of thumb every sizing starts from.
TEST(StepModel, FlopsPerTokenAreTwicePerActiveParameter) {
  for (const char* id : {"llama-3.1-8b", "qwen3-30b-a3b", "mixtral-8x7b"}) {
    const auto spec = catalog::resolve_model(id);
    ASSERT_TRUE(spec.ok());
    const ParameterCount count = parameter_count(*spec);
    StepShape shape;
    shape.add({0, 1, true});
    const StepTotals step = totals(StepModel(*spec, uniform_precision(2)).operators(shape));
    const double pairs = 4.0 * spec->head_dim * spec->heads * spec->layers;
    const double used =
        static_cast<double>(count.active() - count.embedding - count.other) +
        (spec->moe ? static_cast<double>(spec->layers) * spec->hidden * spec->moe->experts : 0);
    EXPECT_NEAR((step.flops - pairs) / (2 * used), 1, 1e-12) << id;
  }
}

TEST(ExpectedExperts, AgreesWithEnumerationAndItsLimits) {
  EXPECT_EQ(expected_experts(8, 2, 0), 0);
  EXPECT_DOUBLE_EQ(expected_experts(8, 2, 1), 2);
  EXPECT_DOUBLE_EQ(expected_experts(8, 8, 3), 8);
  EXPECT_DOUBLE_EQ(expected_experts(128, 8, 1e6), 128);
  // Two tokens with k = 2 of E = 4: of the 6 x 6 pairs of choices, count the distinct experts.
  double sum = 0;
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < 16; ++b) {
      if (__builtin_popcount(static_cast<unsigned>(a)) != 2) continue;
      if (__builtin_popcount(static_cast<unsigned>(b)) != 2) continue;
      sum += __builtin_popcount(static_cast<unsigned>(a | b));
    }
  }
  EXPECT_DOUBLE_EQ(expected_experts(4, 2, 2), sum / 36);
  EXPECT_DEATH(static_cast<void>(expected_experts(4, 5, 1)), "experts per token");
}

TEST(Operators, NamesAreUniqueAndKnown) {
  std::vector<std::string_view> names;
  for (int i = 0; i < kOperatorKinds; ++i) {
    const std::string_view name = operator_name(static_cast<OperatorKind>(i));
    EXPECT_NE(name, "unknown") << i;
    for (const std::string_view other : names) EXPECT_NE(name, other);
    names.push_back(name);
  }
}

TEST(StepModel, NothingIsAllocatedInSteadyState) {
  const auto spec = catalog::resolve_model("deepseek-v3");
  ASSERT_TRUE(spec.ok());
  const StepModel model(*spec, published_precision(*spec));
  std::vector<Operator> ops;
  StepShape shape = mixed();
  model.operators(shape, &ops);
  const Operator* const memory = ops.data();
  for (int i = 0; i < 100; ++i) {
    shape.clear();
    shape.add({i, 1, true});
    shape.add({i, 3, true});
    model.operators(shape, &ops);
    ASSERT_EQ(ops.data(), memory);
  }
}

}  // namespace
}  // namespace prony::perfmodel
