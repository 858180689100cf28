// Tests of several steps in flight: extra rows, deferred release, abort at any moment, loads.
#include <gtest/gtest.h>

#include "prony/core/check.hpp"
#include "prony/sched/scheduler_testing.hpp"

namespace prony::sched {
namespace {

using testing::family_keys;
using testing::rows_of;
using testing::Stepper;

std::string audit(Stepper& stepper) {
  const Result<void> sound = stepper->check_integrity();
  return sound.ok() ? "" : sound.error().message;
}

TEST(Depth, TheNextStepUsesTheTokenInFlight) {
  Stepper s({.block_count = 10, .max_sequences = 2, .depth = 2});
  s.add(10, 5);
  const StepPlan& first = s->plan();
  EXPECT_EQ(rows_of(first), "0@0+10*");
  const StepPlan& second = s->plan();
  EXPECT_EQ(rows_of(second), "0@10+1*");
  EXPECT_EQ(rows_of(first), "0@0+10*");  // still valid
  EXPECT_EQ(s->output_tokens(0), 0);
  EXPECT_DEATH(s->plan(), "too many steps in flight");
  EXPECT_EQ(s->commit().step, 0U);
  EXPECT_EQ(s->output_tokens(0), 1);
  EXPECT_EQ(rows_of(s->plan()), "0@11+1*");
}

TEST(Depth, TheExtraRowOfAFinishedRequestIsDiscarded) {
  Stepper s({.block_count = 10, .max_sequences = 2, .depth = 2});
  s.add(16, 5);
  s->plan();
  s->plan();
  EXPECT_EQ(s->stats().free_blocks, 8);
  const std::vector<Handle> stops = {0};
  const CommitResult& first = s->commit({.finished = stops});
  ASSERT_EQ(first.finished.size(), 1U);
  EXPECT_EQ(first.finished[0].reason, FinishReason::kStopped);
  EXPECT_TRUE(first.released.empty());
  EXPECT_EQ(s->state(0), RequestState::kLeaving);
  EXPECT_EQ(s->stats().free_blocks, 8);  // step 1 still writes there
  EXPECT_TRUE(s->plan().empty());        // nothing more of it
  EXPECT_EQ(audit(s), "");
  // Whatever the executor sampled for it is of no interest, not even that it would stop.
  const CommitResult& second = s->commit({.finished = stops});
  EXPECT_TRUE(second.finished.empty());
  EXPECT_EQ(second.released, std::vector<Handle>{0});
  EXPECT_EQ(s->stats().free_blocks, 10);
  EXPECT_TRUE(s->idle());
}

TEST(Depth, NoStepIsPlannedPastTheLastOutput) {
  Stepper s({.block_count = 10, .max_sequences = 2, .depth = 3});
  s.add(10, 2);
  EXPECT_EQ(rows_of(s->plan()), "0@0+10*");
  EXPECT_EQ(rows_of(s->plan()), "0@10+1*");
  EXPECT_TRUE(s->plan().empty());
  EXPECT_TRUE(s->commit().finished.empty());
  const CommitResult& last = s->commit();
  ASSERT_EQ(last.finished.size(), 1U);
  EXPECT_EQ(last.finished[0].reason, FinishReason::kLength);
  EXPECT_EQ(last.released, std::vector<Handle>{0});
}

TEST(Depth, WaitsForBlocksThatWillReturnInsteadOfPreempting) {
  Stepper s({.block_count = 4, .max_sequences = 4, .max_context = 60, .depth = 2});
  s.add(16, 2);
  s.add(16, 9);
  s.add(15, 9);
  EXPECT_EQ(rows_of(s->plan()), "0@0+16* 1@0+16* 2@0+15*");
  // The first takes the last block for its last output. The second waits for it; the third needs
  // no block and goes on.
  EXPECT_EQ(rows_of(s->plan()), "0@16+1* 2@15+1*");
  s->commit();
  EXPECT_TRUE(s->plan().empty());
  s->commit();
  EXPECT_EQ(rows_of(s->plan()), "1@16+1* 2@16+1*");
  EXPECT_EQ(s->stats().preemptions, 0);
  EXPECT_EQ(audit(s), "");
}

TEST(Depth, NobodyTakesTheFreeBlocksOfARequestThatWaitsForMore) {
  Stepper s({.block_count = 8,
             .max_sequences = 4,
             .max_context = 128,
             .depth = 2,
             .long_prefill_token_threshold = 48,
             .reserve_full_input = false});
  s.add(16, 2);
  s.add(100, 5);
  s.add(16, 5);
  EXPECT_EQ(rows_of(s->plan()), "0@0+16* 1@0+48 2@0+16*");
  // The second needs 3 blocks, 2 are free and 2 return: the third, which needs one, waits as well.
  EXPECT_EQ(rows_of(s->plan()), "0@16+1*");
  s->commit();
  s->commit();
  EXPECT_EQ(rows_of(s->plan()), "1@48+48 2@16+1*");
  EXPECT_EQ(s->stats().preemptions, 0);
}

TEST(Depth, APreemptedRequestCanFinishByTheStepInFlight) {
  Stepper s({.block_count = 2, .max_sequences = 4, .max_context = 32, .depth = 2});
  s.add(16, 9);
  s.add(16, 9);
  s->plan();
  const StepPlan& plan = s->plan();
  EXPECT_EQ(rows_of(plan), "0@16+1*");
  EXPECT_EQ(plan.preempted, std::vector<Handle>{1});
  EXPECT_EQ(s->state(1), RequestState::kWaiting);
  const std::vector<Handle> stops = {1};
  const CommitResult& result = s->commit({.finished = stops});
  ASSERT_EQ(result.finished.size(), 1U);
  EXPECT_EQ(result.finished[0].handle, 1U);
  EXPECT_EQ(result.released, std::vector<Handle>{1});
  EXPECT_EQ(s->stats().waiting, 0);
  EXPECT_EQ(audit(s), "");
}

// Its table is in a step in flight and its last token is not known yet.
TEST(Depth, APreemptedRequestComesBackOnlyWhenItsStepsAreCommitted) {
  Stepper s({.block_count = 3,
             .max_sequences = 4,
             .max_context = 48,
             .depth = 3,
             .long_prefill_token_threshold = 16,
             .reserve_full_input = false});
  s.add(16, 9);
  s.add(16, 9);
  EXPECT_EQ(rows_of(s->plan()), "0@0+16* 1@0+16*");
  EXPECT_EQ(s->plan().preempted, std::vector<Handle>{1});
  EXPECT_EQ(rows_of(s->plan()), "0@17+1*");  // though a block is free for its first chunk
  s->commit();
  EXPECT_EQ(rows_of(s->plan()), "0@18+1* 1@0+16");
  EXPECT_EQ(audit(s), "");
}

TEST(Depth, AbortReleasesWhenNoStepHoldsTheRequest) {
  Stepper s({.block_count = 10, .max_sequences = 1, .depth = 2});
  const Handle running = s.add(16, 5);
  const Handle waiting = s.add(16, 5);
  s->plan();
  EXPECT_TRUE(s->abort(waiting));
  EXPECT_EQ(s->state(waiting), RequestState::kFree);
  s->plan();
  EXPECT_FALSE(s->abort(running));
  EXPECT_FALSE(s->abort(running));  // leaves already
  EXPECT_EQ(s->stats().aborted, 2);
  EXPECT_EQ(s->stats().leaving, 1);
  // A new request takes the free sequence, but not the handle that is still in use.
  const Handle next = s.add(5, 5);
  EXPECT_EQ(next, waiting);
  EXPECT_TRUE(s->commit().released.empty());
  EXPECT_EQ(rows_of(s->plan()), "1@0+5*");
  EXPECT_EQ(s->commit().released, std::vector<Handle>{running});
  EXPECT_TRUE(s->abort(next) == false);
  EXPECT_EQ(s->commit().released, std::vector<Handle>{next});
  EXPECT_TRUE(s->idle());
  EXPECT_EQ(s->stats().free_blocks, 10);
}

TEST(Depth, ABlockIsSharedOnlyWhenItsStepIsCommitted) {
  for (const bool planned : {false, true}) {
    Stepper s({.block_count = 10,
               .max_sequences = 2,
               .depth = 2,
               .prefix_sharing = planned ? PrefixSharing::kPlanned : PrefixSharing::kCommitted});
    s.add(16, 5, family_keys(1, 1));
    s->plan();
    s.add(20, 5, family_keys(1, 1));
    EXPECT_EQ(rows_of(s->plan()), planned ? "0@16+1* 1@16+4*" : "0@16+1* 1@0+20*");
    EXPECT_EQ(audit(s), "");
  }
}

// A load runs beside the steps. If it got blocks of a preempted request at once, an older step
// could still read or overwrite them.
TEST(Depth, ALoadWaitsForStepsThatUseFreedBlocks) {
  Stepper s({.block_count = 6, .max_sequences = 4, .max_context = 60, .depth = 3});
  s.add(16, 9);
  s.add(32, 9);
  s.add(40, 9);
  EXPECT_EQ(rows_of(s->plan()), "0@0+16* 1@0+32* 2@0+40*");
  EXPECT_EQ(rows_of(s->plan()), "0@16+1* 1@32+1*");  // took two blocks of the third
  EXPECT_FALSE(s->abort(2));                         // its last block is free, and in step 0
  s.add(15, 5, {}, 0, 10);
  const StepPlan& plan = s->plan();
  EXPECT_EQ(rows_of(plan), "0@17+1* 1@33+1*");
  EXPECT_TRUE(plan.loads.empty());
  s->commit();
  EXPECT_EQ(s->plan().loads.size(), 1U);
  EXPECT_EQ(audit(s), "");
}

TEST(Loads, TheOnlyRunningRequestTakesBackBlocksOfALoadThatIsDone) {
  Stepper s({.block_count = 4, .max_sequences = 2, .max_context = 64});
  const Handle loaded = s.add(48, 5, {}, 0, 47);
  const Handle other = s.add(16, 20);
  EXPECT_EQ(s.step(), "1@0+16*");
  EXPECT_EQ(s->state(loaded), RequestState::kRemote);
  EXPECT_EQ(s.step(), "");  // while the load runs it waits, and keeps what it has
  EXPECT_EQ(s->computed_tokens(other), 16);
  s->resume_remote(loaded, 47);
  EXPECT_EQ(s.step(), "1@16+1*");
  EXPECT_EQ(s.preempted, std::vector<Handle>{loaded});
  EXPECT_EQ(s.step({other}), "1@17+1*");
  EXPECT_EQ(s.step(), "0@0+48*");  // computed here, not loaded again
}

// A load holds two blocks, the first request is about to return one, and the second, which needs
// two, is preempted while nobody has a row: the plan is empty. No executor sees that plan, so the
// preemption must be told with the next one, unless the request has left by then.
TEST(Loads, APreemptionInAnEmptyPlanIsToldInTheNext) {
  for (const bool leaves : {false, true}) {
    Stepper s({.block_count = 6,
               .max_tokens_per_step = 31,
               .max_sequences = 4,
               .max_context = 96,
               .depth = 3,
               .reserve_full_input = false});
    s.add(32, 1, {}, 0, 31);
    s.add(15, 2);
    const Handle victim = s.add(76, 1);
    EXPECT_EQ(rows_of(s->plan()), "1@0+15* 2@0+16");
    EXPECT_EQ(rows_of(s->plan()), "1@15+1* 2@16+30");
    for (int i = 0; i < 2; ++i) {
      const StepPlan& empty = s->plan();
      EXPECT_TRUE(empty.empty());
      EXPECT_EQ(empty.preempted, std::vector<Handle>{victim});
      s->commit();
    }
    EXPECT_EQ(s->stats().steps_in_flight, 0);
    if (leaves) {
      EXPECT_TRUE(s->abort(victim));
      EXPECT_EQ(s.add(20, 1), victim);  // the same handle, another request
    }
    const StepPlan& next = s->plan();
    EXPECT_EQ(rows_of(next), leaves ? "2@0+20*" : "2@0+31");
    EXPECT_EQ(next.preempted, leaves ? std::vector<Handle>{} : std::vector<Handle>{victim});
    EXPECT_EQ(audit(s), "");
  }
}

TEST(Loads, AreNotStartedWithoutAFreeSequence) {
  Stepper s({.block_count = 4, .max_sequences = 1, .max_context = 64});
  s.add(16, 20);
  const Handle remote = s.add(32, 5, {}, 0, 31);
  EXPECT_EQ(s.step(), "0@0+16*");
  EXPECT_EQ(s->state(remote), RequestState::kWaiting);
}

TEST(Loads, TheHeadOfTheQueueCanTakeBackBlocksOfALoadBehindIt) {
  Stepper s({.block_count = 4, .max_sequences = 2, .max_context = 64, .policy = Policy::kPriority});
  const Handle loaded = s.add(48, 5, {}, 5, 40);
  EXPECT_EQ(s.step(), "");
  s->resume_remote(loaded, 40);
  const Handle urgent = s.add(30, 5, {}, 1);
  // 2 blocks are needed, 1 is free, nothing runs: without taking them back nobody ever could.
  EXPECT_EQ(s.step(), "1@0+30*");
  EXPECT_EQ(s.preempted, std::vector<Handle>{loaded});
  EXPECT_EQ(s->state(urgent), RequestState::kRunning);
  EXPECT_EQ(s->computed_tokens(loaded), 0);
}

TEST(DepthDeathTest, MisuseIsABug) {
  Stepper s({.block_count = 10, .max_tokens_per_step = 16, .max_sequences = 4});
  EXPECT_DEATH(s->commit(), "no step is in flight");
  EXPECT_DEATH(s->abort(0), "not a live request");
  s.add(20, 5);
  const std::vector<Handle> once = {0};
  s->plan();
  EXPECT_DEATH(s->commit({.finished = once}), "samples nothing");
  s->commit();
  s->plan();
  const std::vector<Handle> twice = {0, 0};
  EXPECT_DEATH(s->commit({.finished = twice}), "named twice");
  s.add(3, 3);
  const std::vector<Handle> stranger = {1};
  EXPECT_DEATH(s->commit({.finished = stranger}), "no row of the step");
  EXPECT_DEATH(s->resume_remote(1, 0), "waits for no remote load");
  EXPECT_DEATH(s->append_key(7, {}), "not a live request");
  EXPECT_DEATH(s->append_key(1, {}), "more keys");  // 3 + 3 tokens have no full block
}

}  // namespace
}  // namespace prony::sched
