// Time of operators, collectives and steps: by hand on ideal hardware, and in the limits.
#include "prony/perfmodel/step_cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "prony/perfmodel/cost_testing.hpp"
#include "prony/perfmodel/parameters.hpp"

namespace prony::perfmodel {
namespace {

using catalog::AllReduceKind;

double line(const StepCost& cost, std::string_view name) {
  for (const CostLine& each : cost.lines) {
    if (each.name == name) return each.seconds;
  }
  return 0;
}

StepShape decodes(int64_t count, int64_t context) {
  StepShape shape;
  shape.add({.context = context, .new_tokens = 1}, count);
  return shape;
}

TEST(GemmTime, IsTheRooflineOnPerfectHardware) {
  const catalog::GemmCurve perfect{.sharpness = 100, .fill = 0, .wave = 0};
  // 4096 x 4096 x 4096: 137.4 GFLOP at 1 TFLOP/s; its 100 MB need only 0.1 ms.
  const auto large = gemm_time(perfect, 1e12, 1e12, 100, 4096, 4096, 4096, 1, 100e6);
  EXPECT_NEAR(large.seconds, 2.0 * 4096 * 4096 * 4096 / 1e12, 1e-6);
  EXPECT_EQ(large.bound, Bound::kCompute);
  // One row is padded to a tile of 64, and still waits for the weights.
  const auto row = gemm_time(perfect, 1e15, 1e12, 100, 1, 4096, 4096, 1, 2.0 * 4096 * 4096);
  EXPECT_NEAR(row.seconds, 2.0 * 4096 * 4096 / 1e12, 1e-9);
  EXPECT_EQ(row.bound, Bound::kMemory);
}

TEST(GemmTime, FloorAndWaveQuantisation) {
  const catalog::GemmCurve curve{.floor_s = 5e-6, .sharpness = 100, .fill = 1, .wave = 1};
  EXPECT_EQ(gemm_time(curve, 1e15, 1e15, 100, 64, 128, 128, 1, 1).bound, Bound::kLatency);
  // 100 tiles fill 100 units once; 101 need two waves, so twice the time for 1 % more work.
  const double one = gemm_time(curve, 1e12, 1e15, 100, 128, 12800, 1024, 1, 1).seconds - 5e-6;
  const double two = gemm_time(curve, 1e12, 1e15, 100, 128, 12928, 1024, 1, 1).seconds - 5e-6;
  EXPECT_NEAR(two / one, 2, 0.01);
  // Half of the units with a tile each take as long as all of them.
  const double half = gemm_time(curve, 1e12, 1e15, 100, 128, 6400, 1024, 1, 1).seconds - 5e-6;
  EXPECT_NEAR(half / one, 1, 0.01);
}

TEST(GemmTime, NeverFallsWithMoreRows) {
  const catalog::GemmCurve curve{
      .floor_s = 3e-6, .compute = 0.8, .memory = 0.9, .sharpness = 3.5, .fill = 0.43, .wave = 0};
  double last = 0;
  for (double m = 1; m <= 8192; m *= 2) {
    const double bytes = 2 * (4096.0 * 4096 + m * 8192);
    const double now = gemm_time(curve, 989e12, 3.35e12, 132, m, 4096, 4096, 1, bytes).seconds;
    EXPECT_GE(now, last * (1 - 1e-9)) << m;
    last = now;
  }
}

TEST(AttentionTime, DecodeIsFloorPlusBytesOverBandwidth) {
  catalog::HardwareSpec hardware = ideal_hardware();
  hardware.attention.decode_floor_s = 10e-6;
  hardware.attention.decode_memory = 0.5;
  EXPECT_NEAR(decode_attention_time(hardware, 0, 1e9, false).seconds, 10e-6 + 2e-3, 1e-9);
  EXPECT_NEAR(decode_attention_time(hardware, 0, 1e9, true).seconds, 10e-6 + 1e-3, 1e-9);
  EXPECT_EQ(decode_attention_time(hardware, 0, 1e3, false).bound, Bound::kLatency);
}

TEST(AttentionTime, PrefillSaturatesWithLength) {
  catalog::HardwareSpec hardware = ideal_hardware();
  hardware.attention.plateau = 0.7;
  hardware.attention.half_tokens = 1000;
  const auto rate = [&](double tokens) {
    const double flops = 4 * 32 * 128 * tokens * tokens / 2;
    return flops / prefill_attention_time(hardware, flops, 0, 1, 32, tokens).seconds / 1e12;
  };
  EXPECT_NEAR(rate(1000), 0.35, 0.01) << "half of the plateau at half_tokens";
  EXPECT_GT(rate(32000), 0.67);
  EXPECT_LT(rate(32000), 0.7);
}

TEST(AllReduce, RingByHandAndNothingForOneRank) {
  catalog::HardwareSpec hardware = ideal_hardware();
  EXPECT_EQ(all_reduce(hardware, AllReduceKind::kLibrary, 1, 1e6).seconds, 0);
  // 2 (n-1)/n bytes at 100 GB/s.
  const auto eight = all_reduce(hardware, AllReduceKind::kLibrary, 8, 800e6);
  EXPECT_NEAR(eight.seconds, 2 * 7.0 / 8 * 800e6 / 100e9, 1e-9);
  EXPECT_EQ(eight.algorithm, CollectiveAlgorithm::kRing);
}

TEST(AllReduce, TheLeastAlgorithmWins) {
  catalog::HardwareSpec hardware = ideal_hardware();
  hardware.link.library_base_s = 10e-6;
  hardware.link.library_hop_s = 2e-6;
  hardware.link.custom_s = 4e-6;
  const auto small = all_reduce(hardware, AllReduceKind::kCustom, 8, 1024);
  EXPECT_EQ(small.algorithm, CollectiveAlgorithm::kOneShot);
  EXPECT_LT(small.seconds, 5e-6);
  EXPECT_EQ(all_reduce(hardware, AllReduceKind::kCustom, 8, 8e6).algorithm,
            CollectiveAlgorithm::kTwoShot);
  hardware.link.in_switch = 1.3;
  EXPECT_EQ(all_reduce(hardware, AllReduceKind::kLibrary, 8, 800e6).algorithm,
            CollectiveAlgorithm::kInSwitch);
  EXPECT_EQ(all_reduce(hardware, AllReduceKind::kLibrary, 16, 800e6).algorithm,
            CollectiveAlgorithm::kHierarchical);
  for (double bytes = 256; bytes < 1e9; bytes *= 4) {
    EXPECT_LE(all_reduce(hardware, AllReduceKind::kCustom, 8, bytes).seconds,
              all_reduce(hardware, AllReduceKind::kLibrary, 8, bytes).seconds);
  }
}

TEST(AllReduce, WithoutLinksItCrossesTheHost) {
  catalog::HardwareSpec hardware = ideal_hardware();
  const double linked = all_reduce(hardware, AllReduceKind::kCustom, 4, 8e6).seconds;
  hardware.topology = catalog::LinkTopology::kNone;
  EXPECT_GT(all_reduce(hardware, AllReduceKind::kCustom, 4, 8e6).seconds, 3 * linked);
  EXPECT_FALSE(link_path(hardware, 2).peer);
  // Bridges join pairs; more ranks of the node go through the host, never through the network.
  hardware.topology = catalog::LinkTopology::kBridge;
  hardware.link_devices = 2;
  EXPECT_TRUE(link_path(hardware, 2).peer);
  EXPECT_EQ(all_reduce(hardware, AllReduceKind::kCustom, 8, 8e6).algorithm,
            CollectiveAlgorithm::kRing);
  hardware.link_devices = 8;
  // A mesh rank has one link a peer: two ranks use one of seven.
  hardware.topology = catalog::LinkTopology::kMesh;
  EXPECT_NEAR(link_path(hardware, 2).bandwidth, 100e9 / 7, 1);
  EXPECT_NEAR(link_path(hardware, 8).bandwidth, 100e9, 1);
}

TEST(StepCost, OneTokenReadsEveryWeightOnce) {
  const Deployment deployment = ideal_deployment();
  StepCoster coster(deployment);
  const StepCost cost = coster.cost(decodes(1, 0));
  const ParameterCount count = parameter_count(deployment.model);
  // The embedding is looked up, not read; everything else is, in 16 bits at 1 TB/s. Activations of
  // one token are below 1 %.
  const double weights = 2.0 * static_cast<double>(count.total() - count.embedding) / 1e12;
  // The padded tile of 64 rows costs 64 times the products of one: more than the weights here.
  EXPECT_GT(cost.seconds, weights);
  EXPECT_NEAR(cost.device_s, cost.seconds, 1e-12) << "no links, no engine";
  double sum = 0;
  for (const CostLine& each : cost.lines) sum += each.seconds;
  EXPECT_NEAR(sum, cost.seconds, 1e-12);
}

TEST(StepCost, AnEmptyStepIsFree) {
  StepCoster coster(ideal_deployment());
  EXPECT_EQ(coster.seconds(StepShape()), 0);
}

TEST(StepCost, TensorParallelismSplitsWeightsAndAddsTwoSumsALayer) {
  Deployment deployment = ideal_deployment();
  StepCoster one(deployment);
  deployment.parallel.tp = 4;
  StepCoster four(deployment);
  EXPECT_NEAR(four.rank().weight_bytes() / one.rank().weight_bytes(), 0.25, 0.01);
  EXPECT_DOUBLE_EQ(four.rank().kv_bytes_per_token(), one.rank().kv_bytes_per_token() / 4);
  StepShape shape;
  shape.add({.context = 0, .new_tokens = 2048});
  const StepCost cost = four.cost(shape);
  const double each =
      all_reduce(deployment.hardware, AllReduceKind::kLibrary, 4, 2048.0 * 1024 * 2).seconds;
  EXPECT_NEAR(line(cost, "all-reduce"), (2 * 4 + 1) * each, 1e-12);
  EXPECT_NEAR(cost.device_s / one.cost(shape).device_s, 0.25, 0.06) << "norms are not split";
}

TEST(StepCost, BeyondTheKvHeadsTheCacheIsReplicated) {
  Deployment deployment = ideal_deployment();
  deployment.parallel.tp = 4;
  const double at_heads = RankModel(deployment).kv_bytes_per_token();
  for (const int32_t tp : {8, 16}) {
    deployment.parallel.tp = tp;
    const RankModel rank(deployment);
    EXPECT_EQ(rank.shard().kv_heads, 1);
    EXPECT_DOUBLE_EQ(rank.kv_bytes_per_token(), at_heads);
  }
}

TEST(StepCost, LatentCacheIsNotDivided) {
  Deployment deployment = ideal_deployment();
  deployment.model.kv_heads = deployment.model.heads;
  deployment.model.head_dim = 96;
  deployment.model.mla = catalog::Mla{.q_lora_rank = 0,
                                      .kv_lora_rank = 256,
                                      .qk_nope_head_dim = 64,
                                      .qk_rope_head_dim = 32,
                                      .v_head_dim = 64};
  const double one = RankModel(deployment).kv_bytes_per_token();
  EXPECT_DOUBLE_EQ(one, 4.0 * (256 + 32) * 2);
  deployment.parallel.tp = 8;
  EXPECT_DOUBLE_EQ(RankModel(deployment).kv_bytes_per_token(), one);
}

TEST(StepCost, ExpertParallelismSpreadsExpertsAndExchangesTokens) {
  Deployment deployment = ideal_deployment();
  deployment.model = small_mixture();
  const double whole = RankModel(deployment).weight_bytes();
  deployment.parallel = {.tp = 1, .pp = 1, .ep = 4, .dp = 4};
  deployment.expert_skew = 1;
  StepCoster coster(deployment);
  const ParameterCount count = parameter_count(deployment.model);
  EXPECT_NEAR(whole - coster.rank().weight_bytes(), 2 * 0.75 * static_cast<double>(count.experts),
              1);
  const StepCost cost = coster.cost(decodes(64, 100));
  EXPECT_GT(line(cost, "all-to-all"), 0);
  EXPECT_EQ(line(cost, "all-reduce"), 0);
  deployment.expert_skew = 2;
  StepShape large;
  large.add({.context = 0, .new_tokens = 4096});
  StepCoster skewed(deployment);
  EXPECT_NEAR(
      line(skewed.cost(large), "expert-gate-up") / line(coster.cost(large), "expert-gate-up"), 2,
      0.05);
}

TEST(StepCost, EveryTokenOfTheExpertsIsComputedOnceOverAllRanks) {
  Deployment deployment = ideal_deployment();
  deployment.model = small_mixture();
  const auto expert_flops = [&](const StepShape& shape) {
    std::vector<Operator> list;
    RankModel(deployment).operators(shape, &list);
    double sum = 0;
    for (const Operator& op : list) {
      if (op.kind == OperatorKind::kExpertGateUp || op.kind == OperatorKind::kExpertDown) {
        sum += op.count * op.flops;
      }
    }
    return sum;
  };
  const double all = expert_flops(decodes(256, 10));
  deployment.parallel = {.tp = 2, .pp = 1, .ep = 4, .dp = 2};
  deployment.expert_skew = 1;
  // Two groups of 128 rows on four ranks.
  EXPECT_NEAR(4 * expert_flops(decodes(128, 10)), all, all * 1e-9);
}

TEST(StepCost, HostTimeShowsOnlyWhereTheDeviceIsFaster) {
  Deployment deployment = ideal_deployment();
  deployment.engine.eager_kernel_s = 1e-3;  // 1 ms a kernel: the host is the bottleneck
  StepCoster graphs(deployment);
  EXPECT_EQ(line(graphs.cost(decodes(4, 10)), "engine-launch"), 0);
  deployment.cuda_graphs = false;
  StepCoster eager(deployment);
  const StepCost slow = eager.cost(decodes(4, 10));
  EXPECT_GT(line(slow, "engine-launch"), 0.01);
  deployment.engine.eager_kernel_s = 1e-12;
  StepCoster quick(deployment);
  EXPECT_EQ(line(quick.cost(decodes(4, 10)), "engine-launch"), 0);
}

TEST(StepCost, EightBitWeightsHalveTheReading) {
  Deployment deployment = ideal_deployment();
  deployment.hardware.peak_bf16 = deployment.hardware.peak_fp8 = 1e18;
  StepCoster wide(deployment);
  deployment.weights = WeightDtype::kFp8;
  StepCoster narrow(deployment);
  EXPECT_NEAR(
      line(narrow.cost(decodes(1, 0)), "gate-up") / line(wide.cost(decodes(1, 0)), "gate-up"), 0.5,
      0.01);
}

TEST(StepCost, SplitStagesSendActivations) {
  Deployment deployment = ideal_deployment();
  deployment.parallel.pp = 2;
  StepCoster coster(deployment);
  EXPECT_EQ(coster.rank().stage_layers(), 2);
  EXPECT_GT(line(coster.cost(decodes(8, 10)), "stage-send"), 0);
  EXPECT_DOUBLE_EQ(coster.rank().kv_bytes_per_token(), 2.0 * 2 * 4 * 64 * 2);
}

TEST(CheckDeployment, NamesTheFlag) {
  const auto refusal = [](auto change) {
    Deployment deployment = ideal_deployment();
    change(deployment);
    const auto result = check_deployment(deployment);
    EXPECT_FALSE(result.ok());
    return result.ok() ? "" : result.error().message;
  };
  using testing::StartsWith;
  EXPECT_THAT(refusal([](Deployment& d) { d.parallel.tp = 3; }), StartsWith("--tp: found 3"));
  EXPECT_THAT(refusal([](Deployment& d) { d.parallel.pp = 5; }), StartsWith("--pp: found 5"));
  EXPECT_THAT(refusal([](Deployment& d) { d.parallel.ep = 2; }), StartsWith("--ep, --dp: small"));
  EXPECT_THAT(refusal([](Deployment& d) { d.parallel.tp = 0; }), StartsWith("--tp, --pp"));
  EXPECT_THAT(refusal([](Deployment& d) {
                d.hardware.peak_fp8 = 0;
                d.weights = WeightDtype::kFp8;
              }),
              StartsWith("--weight-dtype: ideal has no fp8"));
  EXPECT_TRUE(check_deployment(ideal_deployment()).ok());
}

TEST(Speculation, TokensOfAVerification) {
  EXPECT_DOUBLE_EQ(accepted_tokens({.draft_tokens = 0}), 1);
  EXPECT_DOUBLE_EQ(accepted_tokens({.draft_tokens = 3, .acceptance = 1}), 4);
  EXPECT_DOUBLE_EQ(accepted_tokens({.draft_tokens = 3, .acceptance = 0}), 1);
  EXPECT_DOUBLE_EQ(accepted_tokens({.draft_tokens = 2, .acceptance = 0.5}), 1.75);
}

}  // namespace
}  // namespace prony::perfmodel
