// The law that makes batching honest: a request gives the same tokens and the same logits, bit by
// bit, whether it runs alone, among 31 others, cut into chunks, preempted and recomputed, or on a
// prefix hit. With the real scheduler, for fp32, bf16 (with fp32 and with bf16 rows) and int8,
// greedy and drawn, on every instruction set.
#include <gtest/gtest.h>

#include "prony/engine/serving_testing.hpp"
#include "prony/engine/specs_testing.hpp"
#include "prony/kernels/test_support.hpp"

namespace prony::engine {
namespace {

using kernels::Dtype;
using kernels::Isa;

struct Variant {
  Isa isa;
  Dtype dtype;
  bool bf16_rows;
  bool draws;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const Isa isa : kernels::supported_isas()) {
    for (const Dtype dtype : {Dtype::kF32, Dtype::kBf16}) {
      for (const bool draws : {false, true}) all.push_back({isa, dtype, false, draws});
    }
    all.push_back({isa, Dtype::kBf16, true, false});
    all.push_back({isa, Dtype::kI8, false, true});
  }
  return all;
}

std::string variant_name(const testing::TestParamInfo<Variant>& param) {
  return std::string(isa_name(param.param.isa)) +
         (param.param.dtype == Dtype::kF32  ? "F32"
          : param.param.dtype == Dtype::kI8 ? "Int8"
          : param.param.bf16_rows           ? "Bf16Rows"
                                            : "Bf16") +
         (param.param.draws ? "Drawn" : "Greedy");
}

catalog::ModelSpec served_spec() {
  catalog::ModelSpec spec = small_spec();
  spec.layers = 2;
  spec.qk_norm = true;
  spec.qkv_bias = true;
  return spec;
}

struct Limits {
  int32_t max_tokens_per_step = 256;
  int32_t block_count = 400;
  bool prefix_caching = false;
  int threads = 1;
  sched::PrefixSharing sharing = sched::PrefixSharing::kCommitted;
};

class EqualityTest : public testing::TestWithParam<Variant> {
 protected:
  static constexpr int32_t kOutputs = 24;

  Server server(const Limits& limits) const {
    CpuExecutorOptions options;
    options.dtype = GetParam().dtype;
    options.bf16_rows = GetParam().bf16_rows;
    options.isa = GetParam().isa;
    options.threads = limits.threads;
    options.max_tokens_per_step = limits.max_tokens_per_step;
    options.max_sequences = std::min(40, limits.max_tokens_per_step);
    options.max_context = 256;
    options.block_count = limits.block_count;
    auto executor = CpuExecutor::create(served_spec(), DummyTensors(3), options).value();
    sched::SchedulerOptions scheduling = sched::options_for(*executor);
    scheduling.prefix_caching = limits.prefix_caching;
    scheduling.prefix_sharing = limits.sharing;
    scheduling.reserve_full_input = false;  // admits more than fits, so that preemption happens
    return Server(std::move(executor), scheduling);
  }

  ServedRequest request(uint64_t id, int32_t prompt_tokens, int32_t max_new_tokens) const {
    ServedRequest request;
    request.prompt = random_tokens(prompt_tokens, served_spec().vocab, 1000 + id);
    request.max_new_tokens = max_new_tokens;
    request.sampling.seed = id;
    if (GetParam().draws) {
      request.sampling.temperature = 1.2f;
      request.sampling.top_p = 0.95f;
    }
    return request;
  }
  ServedRequest target() const { return request(0, 75, kOutputs); }

  ServedOutput alone() const { return server({}).serve({target()})[0]; }

  static void expect_equal(const ServedOutput& expected, const ServedOutput& got) {
    ASSERT_EQ(expected.tokens.size(), static_cast<size_t>(kOutputs));
    EXPECT_EQ(expected.tokens, got.tokens);
    EXPECT_EQ(kernels::first_difference(expected.logits, got.logits), -1);
  }
};
INSTANTIATE_TEST_SUITE_P(Variants, EqualityTest, testing::ValuesIn(variants()), variant_name);

TEST_P(EqualityTest, AmongThirtyOneOthers) {
  const ServedOutput expected = alone();
  for (const int threads : {1, 3}) {
    std::vector<ServedRequest> requests;
    for (uint64_t id = 1; id <= 31; ++id) {
      requests.push_back(
          request(id, 1 + static_cast<int32_t>(id * 13 % 60), 5 + static_cast<int32_t>(id % 30)));
      requests.back().after_step = static_cast<int32_t>(id / 4);
    }
    requests.insert(requests.begin() + 9, target());
    requests[9].after_step = requests[8].after_step;
    Server crowd = server({.max_tokens_per_step = 100, .threads = threads});
    const std::vector<ServedOutput> outputs = crowd.serve(requests);
    expect_equal(expected, outputs[9]);
    // The neighbours, too, are what they are alone; one of them stands for all.
    const ServedOutput neighbour = server({}).serve({requests[20]})[0];
    EXPECT_EQ(neighbour.tokens, outputs[20].tokens);
    EXPECT_EQ(kernels::first_difference(neighbour.logits, outputs[20].logits), -1);
  }
}

TEST_P(EqualityTest, CutIntoChunks) {
  const ServedOutput expected = alone();
  for (const int32_t chunk : {1, 7, 16, 33, 74}) {
    if (GetParam().isa == Isa::kGeneric && chunk == 1) continue;  // slow
    Server chunked = server({.max_tokens_per_step = chunk});
    expect_equal(expected, chunked.serve({target()})[0]);
    EXPECT_GE(chunked.stats().steps, (75 + chunk - 1) / chunk);
  }
}

TEST_P(EqualityTest, PreemptedAndRecomputed) {
  const ServedOutput expected = alone();
  // Four requests of up to 99 tokens in 14 blocks of 16: two fit. The target is admitted last, so
  // it is the one that first-come-first-served preempts.
  Server crowded = server({.max_tokens_per_step = 128, .block_count = 14});
  std::vector<ServedRequest> requests = {request(1, 40, 50), request(2, 50, 40), target()};
  requests[2].after_step = 2;
  const std::vector<ServedOutput> outputs = crowded.serve(requests);
  EXPECT_GE(outputs[2].preemptions, 1);
  expect_equal(expected, outputs[2]);
}

TEST_P(EqualityTest, OnAPrefixHit) {
  const ServedOutput expected = alone();
  Server caching = server({.prefix_caching = true});
  expect_equal(expected, caching.serve({target()})[0]);
  const std::vector<ServedOutput> second = caching.serve({target()});
  EXPECT_EQ(second[0].first_position_max,
            64);  // four of the five blocks: one token must be computed
  EXPECT_EQ(caching.stats().prefix_hit_tokens, 64);
  expect_equal(expected, second[0]);
  // Longer by the first answer: hits blocks that hold generated tokens.
  ServedRequest longer = target();
  longer.prompt.insert(longer.prompt.end(), expected.tokens.begin(), expected.tokens.begin() + 21);
  longer.sampling.seed = 77;
  const ServedOutput cold = server({}).serve({longer})[0];
  const ServedOutput hit = caching.serve({longer})[0];
  EXPECT_GE(hit.first_position_max, 80);
  expect_equal(cold, hit);
}

// Blocks that the same step fills: the hit is computed beside its source.
TEST_P(EqualityTest, OnAPrefixHitInTheSameStep) {
  const ServedOutput expected = alone();
  Server caching = server({.prefix_caching = true, .sharing = sched::PrefixSharing::kPlanned});
  ServedRequest sibling = target();
  sibling.prompt.resize(60);
  const std::vector<ServedOutput> outputs = caching.serve({sibling, target(), target()});
  EXPECT_EQ(outputs[1].first_position_max, 48);
  expect_equal(expected, outputs[1]);
  expect_equal(expected, outputs[2]);
}

}  // namespace
}  // namespace prony::engine
