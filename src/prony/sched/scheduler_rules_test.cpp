// Tests of the scheduling rules 1 to 5, one group a rule, numbered as in docs/scheduler.md. A plan
// is written as "handle@first_position+token_count", with * if the row samples.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "prony/sched/scheduler_testing.hpp"

namespace prony::sched {
namespace {

using testing::family_keys;
using testing::rows_of;
using testing::Stepper;

TEST(Rule1, OneBudgetForDecodeAndPrefill) {
  Stepper bench({.block_count = 100, .max_tokens_per_step = 32, .max_sequences = 4});
  bench.add(10, 50);
  EXPECT_EQ(bench.step(), "0@0+10*");
  bench.add(50, 50);
  EXPECT_EQ(bench.step(), "0@10+1* 1@0+31");
  EXPECT_EQ(bench.step(), "0@11+1* 1@31+19*");
  EXPECT_EQ(bench.step(), "0@12+1* 1@50+1*");
}

TEST(Rule1, APromptLongerThanTheBudgetTakesSeveralSteps) {
  Stepper bench({.block_count = 100, .max_tokens_per_step = 16, .max_sequences = 4});
  bench.add(40, 2);
  EXPECT_EQ(bench.step(), "0@0+16");
  EXPECT_EQ(bench.step(), "0@16+16");
  EXPECT_EQ(bench.step(), "0@32+8*");
}

TEST(Rule1, WithoutChunkingAPromptWaitsForAStepThatHoldsIt) {
  Stepper bench({.block_count = 100,
                 .max_tokens_per_step = 100,
                 .max_sequences = 4,
                 .max_context = 100,
                 .chunked_prefill = false});
  bench.add(60, 5);
  bench.add(50, 5);
  bench.add(10, 5);  // would fit, but nobody overtakes
  EXPECT_EQ(bench.step(), "0@0+60*");
  EXPECT_EQ(bench.step(), "0@60+1* 1@0+50* 2@0+10*");
}

TEST(Rule2, RunningFirstInOrderOfAdmission) {
  Stepper bench({.block_count = 100,
                 .max_tokens_per_step = 40,
                 .max_sequences = 3,
                 .long_prefill_token_threshold = 16});
  bench.add(40, 5);
  bench.add(20, 5);
  bench.add(100, 5);
  bench.add(1, 5);
  // The threshold leaves room for others; the budget cuts the third; sequences stop the fourth.
  EXPECT_EQ(bench.step(), "0@0+16 1@0+16 2@0+8");
  EXPECT_EQ(bench.step(), "0@16+16 1@16+4* 2@8+16");
  EXPECT_EQ(bench.step(), "0@32+8* 1@20+1* 2@24+16");
  EXPECT_EQ(bench.step({1}), "0@40+1* 1@21+1* 2@40+16");
  EXPECT_EQ(bench.step(), "0@41+1* 2@56+16 3@0+1*");
}

TEST(Rule2, NothingIsComputedPastTheLastOutput) {
  Stepper bench({.block_count = 2, .max_sequences = 1, .max_context = 33});
  bench.add(17, 16);  // 33 tokens; the last is never fed back, so 2 blocks are enough
  EXPECT_EQ(bench.step(), "0@0+17*");
  for (int32_t position = 17; position < 32; ++position) {
    EXPECT_EQ(bench.step(), fmt::format("0@{}+1*", position));
  }
  ASSERT_EQ(bench.result->finished.size(), 1U);
  EXPECT_EQ(bench.result->finished[0].reason, FinishReason::kLength);
  EXPECT_TRUE(bench->idle());
}

TEST(Rule3, FcfsPreemptsTheLatestAndKeepsItsOutputs) {
  Stepper bench({.block_count = 4, .max_sequences = 4, .max_context = 60});
  for (int i = 0; i < 3; ++i) bench.add(16, 10);
  EXPECT_EQ(bench.step(), "0@0+16* 1@0+16* 2@0+16*");
  // Position 16 needs a second block each: one is free, one comes from the latest.
  EXPECT_EQ(bench.step(), "0@16+1* 1@16+1*");
  EXPECT_EQ(bench.preempted, std::vector<Handle>{2});
  EXPECT_EQ(bench->output_tokens(2), 1);
  EXPECT_EQ(bench->computed_tokens(2), 0);
  bench.add(1, 1);  // must not overtake the preempted one
  EXPECT_EQ(bench.step({1}), "0@17+1* 1@17+1*");
  // Prompt and the output it had are computed again, and the next output follows.
  EXPECT_EQ(bench.step(), "0@18+1* 2@0+17*");
  EXPECT_EQ(bench->output_tokens(2), 2);
  EXPECT_EQ(bench->preemptions(2), 1);
  EXPECT_EQ(bench->stats().preemptions, 1);
}

TEST(Rule3, FcfsPreemptsItselfWhenItIsTheLatest) {
  Stepper bench({.block_count = 3, .max_sequences = 4, .max_context = 48});
  bench.add(20, 10);
  bench.add(16, 10);
  EXPECT_EQ(bench.step(), "0@0+20* 1@0+16*");
  EXPECT_EQ(bench.step(), "0@20+1*");
  EXPECT_EQ(bench.preempted, std::vector<Handle>{1});
}

TEST(Rule3, SeveralPreemptedKeepTheirOrder) {
  Stepper bench({.block_count = 4,
                 .max_tokens_per_step = 48,
                 .max_sequences = 4,
                 .max_context = 65,
                 .long_prefill_token_threshold = 32,
                 .reserve_full_input = false});
  bench.add(64, 1);
  bench.add(8, 5);
  bench.add(8, 5);
  EXPECT_EQ(bench.step(), "0@0+32 1@0+8* 2@0+8*");
  EXPECT_EQ(bench.step(), "0@32+32*");
  EXPECT_EQ(bench.preempted, (std::vector<Handle>{2, 1}));
  EXPECT_EQ(bench.step(), "1@0+9* 2@0+9*");
}

TEST(Rule3, PriorityPreemptsTheLargestEvenIfItHasItsRowAlready) {
  Stepper bench({.block_count = 4,
                 .max_tokens_per_step = 64,
                 .max_sequences = 4,
                 .max_context = 60,
                 .policy = Policy::kPriority});
  bench.add(16, 10, {}, 5);
  EXPECT_EQ(bench.step(), "0@0+16*");
  bench.add(15, 10, {}, 1);
  bench.add(15, 10, {}, 2);
  // The first decodes into the last free block.
  EXPECT_EQ(bench.step(), "0@16+1* 1@0+15* 2@0+15*");
  EXPECT_EQ(bench.step(), "0@17+1* 1@15+1* 2@15+1*");
  // The second needs a block: the first has a row by then, and loses it.
  EXPECT_EQ(bench.step(), "1@16+1* 2@16+1*");
  EXPECT_EQ(bench.preempted, std::vector<Handle>{0});
  EXPECT_EQ(bench->output_tokens(0), 3);
  EXPECT_EQ(bench->stats().scheduled_tokens, 16 + 31 + 3 + 2);
}

TEST(Rule3, ARowThatIsTakenOutGivesItsTokensBack) {
  Stepper bench({.block_count = 6,
                 .max_tokens_per_step = 12,
                 .max_sequences = 3,
                 .max_context = 100,
                 .policy = Policy::kPriority,
                 .long_prefill_token_threshold = 8,
                 .reserve_full_input = false});
  bench.add(60, 5, {}, 5);
  EXPECT_EQ(bench.step(), "0@0+8");
  bench.add(15, 5, {}, 1);
  bench.add(60, 5, {}, 2);
  for (int i = 0; i < 4; ++i) bench.step();
  EXPECT_EQ(bench.step(), "0@40+8 1@15+1* 2@1+3");
  // The first takes the last block and 8 tokens, and loses both to the second; the third gains.
  EXPECT_EQ(bench.step(), "1@16+1* 2@4+8");
  EXPECT_EQ(bench.preempted, std::vector<Handle>{0});
}

TEST(Rule3, PriorityPreemptsItselfAndTheOthersGoOn) {
  Stepper bench(
      {.block_count = 4, .max_sequences = 4, .max_context = 60, .policy = Policy::kPriority});
  bench.add(15, 10, {}, 9);
  EXPECT_EQ(bench.step(), "0@0+15*");
  bench.add(33, 10, {}, 1);
  EXPECT_EQ(bench.step(), "0@15+1* 1@0+33*");
  EXPECT_EQ(bench.step(), "1@33+1*");
  EXPECT_EQ(bench.preempted, std::vector<Handle>{0});
}

TEST(Rule4, NobodyIsAdmittedInAStepThatPreempts) {
  Stepper bench({.block_count = 4, .max_sequences = 4, .max_context = 60});
  for (int i = 0; i < 3; ++i) bench.add(16, 10);
  bench.step();
  bench.add(1, 1);
  EXPECT_EQ(bench.step(), "0@16+1* 1@16+1*");
  EXPECT_EQ(bench->stats().waiting, 2);
}

TEST(Rule4, APrefixHitLeavesAtLeastOneTokenToCompute) {
  Stepper bench({.block_count = 100, .max_sequences = 4});
  bench.add(33, 1, family_keys(1, 2));
  EXPECT_EQ(bench.step(), "0@0+33*");
  EXPECT_EQ(bench->stats().cached_blocks, 2);
  bench.add(33, 1, family_keys(1, 2));
  EXPECT_EQ(bench.step(), "0@32+1*");
  bench.add(32, 1,
            family_keys(1, 2));  // both blocks are there, and it would have nothing to compute
  EXPECT_EQ(bench.step(), "0@16+16*");
  bench.add(40, 1, family_keys(2, 2));
  EXPECT_EQ(bench.step(), "0@0+40*");
  EXPECT_EQ(bench->stats().prefix_query_tokens, 33 + 33 + 32 + 40);
  EXPECT_EQ(bench->stats().prefix_hit_tokens, 32 + 16);
}

TEST(Rule4, AHitStopsAtTheFirstGap) {
  Stepper bench({.block_count = 100, .max_sequences = 4});
  bench.add(64, 1, family_keys(1, 4));
  bench.step();
  std::vector<BlockKey> changed = family_keys(1, 4);
  changed[1] = {.low = 7, .high = 7};
  bench.add(65, 1, changed);
  EXPECT_EQ(bench.step(), "0@16+49*");
}

TEST(Rule4, GeneratedBlocksAreFoundByTheNextTurn) {
  Stepper bench({.block_count = 100, .max_sequences = 4});
  const Handle first = bench.add(20, 30, family_keys(1, 1));
  for (int i = 0; i < 12; ++i) bench.step();  // 12 outputs: position 31 is sampled, not computed
  bench->append_key(first, family_keys(1, 2)[1]);
  bench.add(40, 1, family_keys(1, 2));
  EXPECT_EQ(bench.step(), "0@31+1* 1@16+24*");
  bench.add(40, 1, family_keys(1, 2));  // now it is
  EXPECT_EQ(bench.step(), "0@32+1* 1@32+8*");
  // A key that comes late, after its block was computed, works as well.
  for (int i = 0; i < 20; ++i) bench.step();
  bench.add(20, 30, family_keys(2, 1));
  for (int i = 0; i < 14; ++i) bench.step();
  const Handle late = 0;
  bench->append_key(late, family_keys(2, 2)[1]);
  bench.add(40, 1, family_keys(2, 2));
  EXPECT_EQ(bench.step(), "0@33+1* 1@32+8*");
}

TEST(Rule4, CommittedSharingWaitsForTheCommitPlannedSharingDoesNot) {
  for (const bool planned : {false, true}) {
    Stepper bench(
        {.block_count = 100,
         .max_sequences = 4,
         .prefix_sharing = planned ? PrefixSharing::kPlanned : PrefixSharing::kCommitted});
    bench.add(40, 2, family_keys(1, 2));
    bench.add(40, 2, family_keys(1, 2));
    EXPECT_EQ(bench.step(), planned ? "0@0+40* 1@32+8*" : "0@0+40* 1@0+40*");
  }
}

TEST(Rule4, WithoutPrefixCachingKeysAreIgnored) {
  Stepper bench({.block_count = 100, .max_sequences = 4, .prefix_caching = false});
  bench.add(33, 2, family_keys(1, 2));
  bench.step();
  bench->append_key(0, {});
  bench.add(33, 2, family_keys(1, 2));
  EXPECT_EQ(bench.step(), "0@33+1* 1@0+33*");
  EXPECT_EQ(bench->stats().prefix_query_tokens, 0);
  EXPECT_EQ(bench->stats().cached_blocks, 0);
}

TEST(Rule5, NobodyOvertakesTheHead) {
  Stepper bench({.block_count = 4, .max_sequences = 4, .max_context = 60});
  bench.add(20, 30);
  bench.add(40, 10);  // 3 blocks, 2 are free
  bench.add(1, 1);
  EXPECT_EQ(bench.step(), "0@0+20*");
  EXPECT_EQ(bench.step({0}), "0@20+1*");
  EXPECT_EQ(bench.step(), "1@0+40* 2@0+1*");
}

TEST(Rule5, ARequestThatWaitsForRemoteKvIsSetAside) {
  Stepper bench({.block_count = 10, .max_sequences = 1, .max_context = 100});
  const Handle remote = bench.add(40, 5, {}, 0, 39);
  bench.add(8, 3);
  {
    const StepPlan& plan = bench->plan();
    EXPECT_EQ(rows_of(plan), "1@0+8*");
    ASSERT_EQ(plan.loads.size(), 1U);
    EXPECT_EQ(plan.loads[0].handle, remote);
    EXPECT_EQ(plan.loads[0].first_position, 0);
    EXPECT_EQ(plan.loads[0].token_count, 39);
    EXPECT_EQ(plan.loads[0].blocks.size(), 3U);
    EXPECT_EQ(bench->state(remote), RequestState::kRemote);
    EXPECT_EQ(bench->stats().remote, 1);
    bench->commit();
  }
  bench->resume_remote(remote, 39);
  EXPECT_EQ(bench->state(remote), RequestState::kWaiting);
  EXPECT_EQ(bench.step({1}), "1@8+1*");  // one sequence at a time
  EXPECT_EQ(bench.step(), "0@39+1*");
}

TEST(Rule5, ARemoteLoadThatFailsIsComputedHere) {
  Stepper bench({.block_count = 10, .max_sequences = 4, .max_context = 100});
  bench.add(33, 1, family_keys(1, 2));
  bench.step();
  // The first 32 tokens are in the cache: only the rest is asked for.
  const Handle remote = bench.add(64, 5, family_keys(1, 4), 0, 60);
  const StepPlan& plan = bench->plan();
  EXPECT_TRUE(plan.empty());
  ASSERT_EQ(plan.loads.size(), 1U);
  EXPECT_EQ(plan.loads[0].first_position, 32);
  EXPECT_EQ(plan.loads[0].token_count, 28);
  bench->resume_remote(remote, 0);
  EXPECT_EQ(bench.step(), "0@32+32*");
  // What arrives can be shared, and a load that the cache makes needless does not happen.
  bench.add(64, 5, family_keys(1, 4), 0, 40);
  EXPECT_EQ(bench.step(), "0@64+1* 1@48+16*");
  EXPECT_EQ(bench->plan().loads.size(), 0U);
}

}  // namespace
}  // namespace prony::sched
