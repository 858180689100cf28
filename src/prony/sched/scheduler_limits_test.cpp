// Tests of the scheduling rules 6 to 9, of the batching modes, and of what is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "prony/sched/scheduler_testing.hpp"

namespace prony::sched {
namespace {

using testing::family_keys;
using testing::Stepper;

TEST(Rule6, TheWholeInputMustFit) {
  for (const bool reserve : {true, false}) {
    Stepper bench({.block_count = 4,
                   .max_tokens_per_step = 24,
                   .max_sequences = 4,
                   .max_context = 64,
                   .reserve_full_input = reserve});
    bench.add(20, 3);
    bench.add(40, 3);  // 3 blocks; 2 are free, enough for a chunk
    bench.step();
    // Reserved: it waits. Else: it starts, is in the way, and is preempted.
    EXPECT_EQ(bench.step(), reserve ? "0@20+1*" : "0@20+1* 1@4+23");
  }
}

TEST(Rule6, TheWatermarkKeepsBlocksFreeButNotInAnEmptyStep) {
  Stepper bench({.block_count = 10, .max_sequences = 4, .max_context = 160, .watermark = 0.5});
  bench.add(100, 5);  // 7 blocks: more than half, but the step is empty
  EXPECT_EQ(bench.step(), "0@0+100*");
  bench.add(10, 5);
  EXPECT_EQ(bench.step({0}), "0@100+1*");
  EXPECT_EQ(bench.step(), "1@0+10*");
  bench.add(60, 5);  // 4 blocks of the 9 free: 5 remain
  EXPECT_EQ(bench.step(), "1@10+1* 0@0+60*");
}

TEST(Rule7, TailsAreEvictedFirst) {
  Stepper bench({.block_count = 4, .max_sequences = 4, .max_context = 64});
  bench.add(48, 1, family_keys(1, 3));
  bench.step();  // ends; blocks 3 (never used), then its tail, middle and head are the free queue
  bench.add(17, 1);
  EXPECT_EQ(bench.step(), "0@0+17*");  // takes the unused one and the tail
  EXPECT_EQ(bench->stats().evictions, 1);
  bench.add(48, 1, family_keys(1, 3));
  EXPECT_EQ(bench.step(), "0@32+16*");
}

TEST(Rule7, AHitMakesABlockYoungAgain) {
  Stepper bench({.block_count = 4, .max_sequences = 1, .max_context = 64});
  bench.add(17, 1, family_keys(1, 1));
  bench.step();
  bench.add(17, 1, family_keys(2, 1));
  bench.step();
  bench.add(17, 1, family_keys(1, 1));
  EXPECT_EQ(bench.step(), "0@16+1*");
  bench.add(33, 1);  // three blocks: everything but the youngest
  bench.step();
  bench.add(17, 1, family_keys(1, 1));
  EXPECT_EQ(bench.step(), "0@16+1*");
  bench.add(17, 1, family_keys(2, 1));
  EXPECT_EQ(bench.step(), "0@0+17*");
}

TEST(Rule8, DefaultsAreThoseOfTheOriginal) {
  const SchedulerOptions options;
  EXPECT_EQ(kBlockTokens, 16);
  EXPECT_TRUE(options.chunked_prefill);
  EXPECT_TRUE(options.prefix_caching);
  EXPECT_TRUE(options.reserve_full_input);
  EXPECT_EQ(options.watermark, 0);
  EXPECT_EQ(options.long_prefill_token_threshold, 0);
  EXPECT_EQ(options.max_tokens_per_step, 2048);
  EXPECT_EQ(options.max_sequences, 256);
  EXPECT_EQ(options.policy, Policy::kFcfs);
}

TEST(Rule9, TheStepThatEndsThePromptGivesTheFirstToken) {
  Stepper bench({.block_count = 10, .max_tokens_per_step = 16, .max_sequences = 1});
  bench.add(32, 1);
  EXPECT_EQ(bench.step(), "0@0+16");
  EXPECT_EQ(bench->output_tokens(0), 0);
  EXPECT_EQ(bench.step(), "0@16+16*");
  ASSERT_EQ(bench.result->finished.size(), 1U);
  EXPECT_EQ(bench.result->released, std::vector<Handle>{0});
}

// vllm-project/vllm issue 39734: a request within max_context, but larger than the whole pool, was
// accepted and blocked the queue for ever.
TEST(Rule9, WhatCanNeverFitIsRefusedWithAReason) {
  Stepper bench({.block_count = 4, .max_sequences = 4, .max_context = 1000});
  EXPECT_EQ(bench.error({.prompt_tokens = 60, .max_new_tokens = 6}),
            "request of 60 prompt and 6 new tokens needs 5 KV blocks, the whole pool has 4");
  EXPECT_EQ(bench.error({.prompt_tokens = 60, .max_new_tokens = 5}), "");
  EXPECT_EQ(bench.error({.prompt_tokens = 900, .max_new_tokens = 101}),
            "request of 900 prompt and 101 new tokens is longer than max_context, which is 1000");
  EXPECT_EQ(bench.error({.prompt_tokens = INT32_MAX, .max_new_tokens = INT32_MAX}),
            "request of 2147483647 prompt and 2147483647 new tokens is longer than max_context, "
            "which is 1000");
  EXPECT_EQ(bench.error({.prompt_tokens = 0, .max_new_tokens = 1}),
            "prompt_tokens: found 0, expected at least 1");
  EXPECT_EQ(bench.error({.prompt_tokens = 1, .max_new_tokens = 0}),
            "max_new_tokens: found 0, expected at least 1");
  EXPECT_EQ(bench.error({.prompt_tokens = 5, .max_new_tokens = 1, .remote_tokens = 5}),
            "remote_tokens: found 5, expected less than prompt_tokens, which is 5, because one "
            "token must be computed");
  const std::vector<BlockKey> three = family_keys(1, 3);
  EXPECT_EQ(bench.error({.prompt_tokens = 40, .max_new_tokens = 7, .block_keys = three}),
            "block_keys: found 3, expected at most 2, the full blocks of 47 tokens");
  EXPECT_EQ(bench->stats().added, 1);
}

// inference-sim issue 963, vllm PR 21809: under pressure, requests took turns in preempting each
// other and hardly anything got done. The oldest request must move on in every step.
TEST(Rule9, PreemptionDoesNotThrash) {
  for (const bool reserve : {true, false}) {
    Stepper bench({.block_count = 20,
                   .max_tokens_per_step = 64,
                   .max_sequences = 16,
                   .max_context = 200,
                   .prefix_caching = false,
                   .reserve_full_input = reserve});
    for (int i = 0; i < 16; ++i) bench.add(60, 60);  // each ends with 8 blocks
    int64_t steps = 0;
    while (!bench->idle()) {
      const Handle oldest = static_cast<Handle>(bench->stats().finished);
      const int32_t before = bench->computed_tokens(oldest);
      bench.step();
      ++steps;
      if (bench->state(oldest) == RequestState::kRunning) {
        ASSERT_GT(bench->computed_tokens(oldest), before) << "step " << steps;
      }
      ASSERT_LT(steps, 16 * 62);
    }
    // At least two run at a time all along.
    EXPECT_LT(steps, 16 * 62 / 2 + 60) << reserve;
    EXPECT_LT(bench->stats().preemptions, reserve ? 40 : 200);
  }
}

// vllm-project/vllm issue 25780: what a preempted request finds of its own blocks is no success of
// the prefix cache.
TEST(Rule9, HitsOnOwnBlocksAfterPreemptionAreCountedApart) {
  Stepper bench({.block_count = 7, .max_sequences = 2, .max_context = 100});
  bench.add(32, 30, family_keys(1, 2));
  bench.add(48, 30, family_keys(2, 3));
  EXPECT_EQ(bench.step(), "0@0+32* 1@0+48*");
  for (int i = 0; i < 16; ++i) bench.step();
  EXPECT_EQ(bench.preempted, std::vector<Handle>{});
  EXPECT_EQ(bench.step(), "0@48+1*");
  EXPECT_EQ(bench.preempted, std::vector<Handle>{1});
  while (bench->state(0) == RequestState::kRunning) bench.step();
  EXPECT_EQ(bench.step(), "1@48+17*");  // all three prompt blocks survived
  const SchedulerStats stats = bench->stats();
  EXPECT_EQ(stats.prefix_query_tokens, 80);
  EXPECT_EQ(stats.prefix_hit_tokens, 0);
  EXPECT_EQ(stats.recompute_query_tokens, 65);
  EXPECT_EQ(stats.recompute_hit_tokens, 48);
}

TEST(Batching, PrefillFirstKeepsDecodeOutOfPrefillSteps) {
  Stepper bench({.block_count = 100,
                 .max_tokens_per_step = 32,
                 .max_sequences = 4,
                 .batching = Batching::kPrefillFirst});
  bench.add(10, 50);
  EXPECT_EQ(bench.step(), "0@0+10*");
  EXPECT_EQ(bench.step(), "0@10+1*");
  bench.add(50, 50);
  EXPECT_EQ(bench.step(), "1@0+32");
  EXPECT_EQ(bench.step(), "1@32+18*");
  EXPECT_EQ(bench.step(), "0@11+1* 1@50+1*");
}

TEST(Batching, StaticAdmitsOnlyWhenNothingRuns) {
  Stepper bench({.block_count = 100, .max_sequences = 2, .batching = Batching::kStatic});
  for (int i = 0; i < 3; ++i) bench.add(10, 3 + i);
  EXPECT_EQ(bench.step(), "0@0+10* 1@0+10*");
  EXPECT_EQ(bench.step(), "0@10+1* 1@10+1*");
  EXPECT_EQ(bench.step(), "0@11+1* 1@11+1*");
  EXPECT_EQ(bench.step(), "1@12+1*");
  EXPECT_EQ(bench.step(), "2@0+10*");
}

TEST(Priority, TheMostUrgentWaitingIsAdmittedFirst) {
  Stepper bench({.block_count = 100, .max_sequences = 1, .policy = Policy::kPriority});
  bench.add(1, 1, {}, 3);
  bench.add(1, 1, {}, 1);
  bench.add(1, 1, {}, 2);
  EXPECT_EQ(bench.step(), "1@0+1*");
  EXPECT_EQ(bench.step(), "2@0+1*");
  EXPECT_EQ(bench.step(), "0@0+1*");
}

TEST(Options, ErrorsNameTheOptionAndWhatIsExpected) {
  const auto error = [](const SchedulerOptions& options) {
    const auto created = Scheduler::create(options);
    return created.ok() ? "" : created.error().message;
  };
  EXPECT_EQ(error({}), "block_count: found 0, expected at least 1");
  EXPECT_EQ(error({.block_count = 1, .max_sequences = 0}),
            "max_sequences: found 0, expected at least 1");
  EXPECT_EQ(error({.block_count = 1, .max_tokens_per_step = 100, .max_sequences = 101}),
            "max_tokens_per_step: found 100, expected at least max_sequences, which is 101");
  EXPECT_EQ(error({.block_count = 1, .max_context = 1}),
            "max_context: found 1, expected at least 2");
  EXPECT_EQ(error({.block_count = 1, .depth = 0}), "depth: found 0, expected at least 1");
  EXPECT_EQ(error({.block_count = 1, .depth = 65}), "depth: found 65, expected at most 64");
  EXPECT_EQ(
      error({.block_count = 1, .chunked_prefill = false}),
      "max_tokens_per_step: found 2048, expected at least max_context, which is 4096, because "
      "chunked_prefill is off");
  EXPECT_EQ(error({.block_count = 1,
                   .max_context = 100,
                   .chunked_prefill = false,
                   .long_prefill_token_threshold = 7}),
            "long_prefill_token_threshold: found 7, expected 0, because chunked_prefill is off");
  EXPECT_EQ(error({.block_count = 1, .watermark = 1}),
            "watermark: found 1, expected 0 <= watermark < 1");
  EXPECT_EQ(error({.block_count = 1, .watermark = std::numeric_limits<double>::quiet_NaN()}),
            "watermark: found nan, expected 0 <= watermark < 1");
  EXPECT_EQ(error({.block_count = 1}), "");
}

}  // namespace
}  // namespace prony::sched
