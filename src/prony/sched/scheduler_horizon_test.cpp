// Tests of horizon() and commit_many(): a twin that commits step by step is the truth.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>

#include "prony/sched/scheduler_testing.hpp"

namespace prony::sched {
namespace {

using testing::describe;
using testing::equal_plans;

std::unique_ptr<Scheduler> make(const SchedulerOptions& options) {
  auto scheduler = Scheduler::create(options);
  PRONY_CHECK(scheduler.ok());
  return std::move(*scheduler);
}

bool is_decode(const StepPlan& plan) {
  return std::all_of(plan.rows.begin(), plan.rows.end(),
                     [](const StepRow& row) { return row.token_count == 1 && row.samples; });
}

struct Shape {
  std::vector<std::pair<Handle, int32_t>> rows;  // handle, first position
  bool decode = false;
  explicit Shape(const StepPlan& plan) : decode(is_decode(plan)) {
    for (const StepRow& row : plan.rows) rows.emplace_back(row.handle, row.first_position);
  }
  bool repeated_by(const StepPlan& next) const {
    if (!decode || !is_decode(next) || rows.size() != next.rows.size()) return false;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].first != next.rows[i].handle) return false;
      if (rows[i].second + 1 != next.rows[i].first_position) return false;
    }
    return true;
  }
};

TEST(Horizon, EndsWhereARequestReachesItsLength) {
  auto scheduler = make({.block_count = 100, .max_sequences = 8});
  ASSERT_TRUE(scheduler->add({.prompt_tokens = 5, .max_new_tokens = 40}).ok());
  ASSERT_TRUE(scheduler->add({.prompt_tokens = 9, .max_new_tokens = 30}).ok());
  EXPECT_EQ(scheduler->horizon(), 0);  // nothing planned yet
  scheduler->plan();
  EXPECT_EQ(scheduler->horizon(), 0);  // prefill
  scheduler->commit();
  EXPECT_EQ(scheduler->horizon(), 0);  // nothing in flight
  scheduler->plan();                   // second output of both
  EXPECT_EQ(scheduler->horizon(), 28);
  const CommitResult& result = scheduler->commit_many(29);
  ASSERT_EQ(result.finished.size(), 1U);
  EXPECT_EQ(result.finished[0].handle, 1U);
  EXPECT_EQ(result.finished[0].reason, FinishReason::kLength);
  EXPECT_EQ(result.step, 29U);
  EXPECT_EQ(scheduler->output_tokens(0), 30);
  EXPECT_EQ(scheduler->plan().step, 30U);
  EXPECT_EQ(scheduler->horizon(), 9);
}

TEST(Horizon, EndsWhereBlocksRunOut) {
  // Two requests of 1 block each; 3 more blocks are free. Both need one at position 16, and the
  // third is not enough for both at position 32.
  auto scheduler = make({.block_count = 5, .max_sequences = 8, .max_context = 100});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(scheduler->add({.prompt_tokens = 10, .max_new_tokens = 60}).ok());
  }
  scheduler->plan();
  scheduler->commit();
  const StepPlan& plan = scheduler->plan();
  EXPECT_EQ(plan.rows[0].first_position, 10);
  EXPECT_EQ(scheduler->horizon(), 21);  // positions 11 to 31
  scheduler->commit_many(22);
  EXPECT_EQ(scheduler->plan().preempted, std::vector<Handle>{1});
}

TEST(Horizon, IsZeroWhileTheHeadOfTheQueueCanBeAdmitted) {
  auto scheduler = make({.block_count = 100, .max_tokens_per_step = 2, .max_sequences = 2});
  ASSERT_TRUE(scheduler->add({.prompt_tokens = 1, .max_new_tokens = 50}).ok());
  scheduler->plan();
  scheduler->commit();
  scheduler->plan();
  EXPECT_EQ(scheduler->horizon(), 48);
  ASSERT_TRUE(scheduler->add({.prompt_tokens = 1, .max_new_tokens = 50}).ok());
  EXPECT_EQ(scheduler->horizon(), 0);
  scheduler->commit();
  scheduler->plan();
  scheduler->commit();
  scheduler->plan();
  EXPECT_EQ(scheduler->horizon(), 46);
  // Now all sequences are taken: a third request changes nothing.
  ASSERT_TRUE(scheduler->add({.prompt_tokens = 1, .max_new_tokens = 50}).ok());
  EXPECT_EQ(scheduler->horizon(), 46);
}

// A head that lacks blocks may become admissible when a running request publishes a block that is
// part of its prefix: the horizon stops short of that.
TEST(Horizon, EndsBeforeAPublicationThatMayHelpTheHead) {
  auto scheduler = make({.block_count = 4,
                         .max_sequences = 4,
                         .max_context = 64,
                         .batching = Batching::kPrefillFirst});
  const std::vector<BlockKey> keys = {{1, 1}, {2, 1}, {3, 1}};
  ASSERT_TRUE(scheduler->add({.prompt_tokens = 20, .max_new_tokens = 30, .block_keys = keys}).ok());
  scheduler->plan();
  scheduler->commit();
  scheduler->plan();
  EXPECT_EQ(scheduler->horizon(), 28);
  // 49 tokens: 4 blocks, of which only the first is found, and 2 are free.
  ASSERT_TRUE(scheduler->add({.prompt_tokens = 49, .max_new_tokens = 1, .block_keys = keys}).ok());
  // Position 31 is computed by step 12 (step 1 computes position 20); until its commit nothing can
  // change, and the plan after it, step 13, admits the head by a hit of two blocks.
  EXPECT_EQ(scheduler->horizon(), 11);
  scheduler->commit_many(11);
  EXPECT_EQ(scheduler->plan().rows[0].first_position, 31);
  EXPECT_EQ(scheduler->horizon(), 0);
  scheduler->commit();
  const StepPlan& plan = scheduler->plan();
  ASSERT_EQ(plan.rows.size(), 1U);
  EXPECT_EQ(plan.rows[0].handle, 1U);
  EXPECT_EQ(plan.rows[0].first_position, 32);
}

TEST(HorizonDeathTest, CommitManyRefusesMore) {
  auto scheduler = make({.block_count = 10, .max_sequences = 1});
  ASSERT_TRUE(scheduler->add({.prompt_tokens = 5, .max_new_tokens = 10}).ok());
  scheduler->plan();
  EXPECT_DEATH(scheduler->commit_many(2), "beyond the horizon");
  EXPECT_DEATH(scheduler->commit_many(0), "beyond the horizon");
}

SchedulerOptions random_options(core::Rng& rng) {
  const auto pick = [&](int32_t low, int32_t high) {
    return low + static_cast<int32_t>(rng.below(static_cast<uint64_t>(high - low + 1)));
  };
  SchedulerOptions options;
  options.block_count = pick(12, 150);
  options.max_sequences = pick(1, 12);
  options.max_tokens_per_step = options.max_sequences + pick(0, 100);
  options.max_context = 180;
  options.depth = pick(1, 3);
  options.policy = rng.below(2) == 0 ? Policy::kFcfs : Policy::kPriority;
  options.batching = rng.below(2) == 0   ? Batching::kContinuous
                     : rng.below(2) == 0 ? Batching::kPrefillFirst
                                         : Batching::kStatic;
  options.prefix_sharing = rng.below(2) == 0 ? PrefixSharing::kCommitted : PrefixSharing::kPlanned;
  options.reserve_full_input = rng.below(2) == 0;
  options.watermark = rng.below(3) == 0 ? 0.1 : 0;
  options.long_prefill_token_threshold = rng.below(3) == 0 ? pick(1, 30) : 0;
  return options;
}

// Two schedulers get the same calls, but one jumps.
class Twins {
 public:
  Twins(const SchedulerOptions& options, uint64_t seed)
      : options_(options), rng_(seed), single_(make(options)), jumping_(make(options)) {
    slots_.resize(static_cast<size_t>(options.depth), nullptr);
  }

  void run(int rounds) {
    for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
      if (rng_.below(100) < 12 && live_.size() < 20) add();
      if (rng_.below(100) < 2 && !live_.empty()) abort();
      if (rng_.below(100) < 30 && !loads_.empty()) resume();
      while (single_->steps_in_flight() < options_.depth && plan()) {
      }
      if (single_->steps_in_flight() > 0) commit();
      compare();
    }
  }

  int64_t steps() const { return single_->stats().steps; }
  int64_t jumped = 0;  // steps the jumping twin did not plan

 private:
  void add() {
    RequestSpec spec;
    spec.prompt_tokens = 1 + static_cast<int32_t>(rng_.below(60));
    spec.max_new_tokens = 1 + static_cast<int32_t>(rng_.below(110));
    spec.priority = static_cast<int32_t>(rng_.below(3));
    // Prompts and outputs of three families; keys up to a random length.
    const uint64_t family = rng_.below(3);
    std::vector<BlockKey> keys(rng_.below(
        static_cast<uint64_t>(spec.prompt_tokens + spec.max_new_tokens) / kBlockTokens + 1));
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = {.low = family, .high = i};
    spec.block_keys = keys;
    if (spec.prompt_tokens > 1 && rng_.below(4) == 0) {
      spec.remote_tokens =
          1 + static_cast<int32_t>(rng_.below(static_cast<uint64_t>(spec.prompt_tokens) - 1));
    }
    const Result<Handle> a = single_->add(spec);
    const Result<Handle> b = jumping_->add(spec);
    ASSERT_EQ(a.ok(), b.ok());
    if (!a.ok()) return;
    ASSERT_EQ(*a, *b);
    live_.push_back(*a);
  }

  void abort() {
    const Handle handle = live_[rng_.below(live_.size())];
    const bool released = single_->abort(handle);
    ASSERT_EQ(released, jumping_->abort(handle));
    if (released) std::erase(live_, handle);
    std::erase_if(loads_, [&](const auto& load) { return load.first == handle; });
  }

  void resume() {
    const auto [handle, last] = loads_.back();
    loads_.pop_back();
    const auto ready = static_cast<int32_t>(rng_.below(static_cast<uint64_t>(last) + 1));
    single_->resume_remote(handle, ready);
    jumping_->resume_remote(handle, ready);
  }

  bool plan() {
    const StepPlan& a = single_->plan();
    const StepPlan& b = jumping_->plan();
    EXPECT_TRUE(equal_plans(a, b)) << describe(a) << "\n" << describe(b);
    for (const StepRow& load : a.loads) {
      loads_.emplace_back(load.handle, load.first_position + load.token_count);
    }
    if (a.empty()) return false;
    planned_.push_back(&a);
    slots_[b.step % slots_.size()] = &b;
    return true;
  }

  std::vector<Handle> random_stops(const StepPlan& plan) {
    std::vector<Handle> stops;
    for (const StepRow& row : plan.rows) {
      if (row.samples && rng_.below(100) < 2) stops.push_back(row.handle);
    }
    return stops;
  }

  void commit() {
    const int32_t horizon = single_->horizon();
    ASSERT_EQ(horizon, jumping_->horizon());
    const int32_t n =
        horizon > 0 ? 1 + static_cast<int32_t>(rng_.below(static_cast<uint64_t>(horizon) + 1)) : 1;
    for (int32_t i = 1; i < n; ++i) {
      const Shape newest(*planned_.back());
      single_->commit();
      planned_.pop_front();
      const StepPlan& next = single_->plan();
      ASSERT_TRUE(newest.repeated_by(next)) << "horizon " << horizon << ", " << describe(next);
      planned_.push_back(&next);
    }
    const std::vector<Handle> stops = random_stops(*planned_.front());
    const CommitResult& a = single_->commit({.finished = stops});
    planned_.pop_front();
    const CommitResult& b = jumping_->commit_many(n, {.finished = stops});
    jumped += n - 1;
    ASSERT_EQ(a.step, b.step);
    ASSERT_EQ(a.released, b.released);
    ASSERT_EQ(a.finished.size(), b.finished.size());
    for (size_t i = 0; i < a.finished.size(); ++i) {
      ASSERT_EQ(a.finished[i].handle, b.finished[i].handle);
      ASSERT_EQ(a.finished[i].reason, b.finished[i].reason);
    }
    for (const Handle handle : a.released) std::erase(live_, handle);
    // Plans still in flight were moved on in place.
    for (const StepPlan* plan : planned_) {
      const StepPlan* moved = slots_[plan->step % slots_.size()];
      ASSERT_TRUE(equal_plans(*plan, *moved)) << describe(*plan) << "\n" << describe(*moved);
    }
  }

  void compare() {
    ASSERT_EQ(single_->stats(), jumping_->stats());
    for (const Handle handle : live_) {
      ASSERT_EQ(single_->state(handle), jumping_->state(handle));
      ASSERT_EQ(single_->output_tokens(handle), jumping_->output_tokens(handle));
      ASSERT_EQ(single_->computed_tokens(handle), jumping_->computed_tokens(handle));
      const auto a = single_->blocks(handle);
      const auto b = jumping_->blocks(handle);
      ASSERT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    }
    const Result<void> sound = jumping_->check_integrity();
    ASSERT_TRUE(sound.ok()) << sound.error().message;
  }

  SchedulerOptions options_;
  core::Rng rng_;
  std::unique_ptr<Scheduler> single_, jumping_;
  std::deque<const StepPlan*> planned_;  // in flight, of single_
  std::vector<const StepPlan*> slots_;   // [step % depth] of jumping_
  std::vector<Handle> live_;
  std::vector<std::pair<Handle, int32_t>> loads_;  // handle, tokens when done
};

TEST(Horizon, CommitManyEqualsSingleCommits) {
  int64_t steps = 0;
  int64_t jumped = 0;
  constexpr int64_t kTwins = PRONY_SANITIZED ? 150 : 800;
  for (int64_t i = 0; i < kTwins; ++i) {
    const auto seed = static_cast<uint64_t>(i);
    core::Rng rng(seed, 2);
    const SchedulerOptions options = random_options(rng);
    Twins twins(options, seed);
    twins.run(400);
    ASSERT_FALSE(HasFailure()) << "twins " << seed << ", depth " << options.depth << ", sharing "
                               << static_cast<int>(options.prefix_sharing);
    steps += twins.steps();
    jumped += twins.jumped;
  }
  EXPECT_GT(steps, 600 * kTwins);
  // Long enough to be useful: most steps need not be planned one by one.
  EXPECT_GT(jumped, steps / 2) << steps;
}

// Where nothing waits for blocks and no table has spare blocks, the horizon is the exact number.
TEST(Horizon, IsExact) {
  int64_t checked = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    core::Rng rng(seed, 3);
    SchedulerOptions options = random_options(rng);
    options.depth = 1;
    const auto scheduler = make(options);
    for (int round = 0; round < 150; ++round) {
      if (rng.below(100) < 40) {
        const Result<Handle> added =
            scheduler->add({.prompt_tokens = 1 + static_cast<int32_t>(rng.below(60)),
                            .max_new_tokens = 1 + static_cast<int32_t>(rng.below(110))});
        ASSERT_TRUE(added.ok() || options.block_count < 12);
      }
      const StepPlan* newest = &scheduler->plan();
      if (newest->empty()) continue;
      const SchedulerStats stats = scheduler->stats();
      const int32_t horizon = scheduler->horizon();
      // Exact unless a request runs without a row, or the queue's head waits for blocks.
      if (!is_decode(*newest) || newest->rows.size() < static_cast<size_t>(stats.running) ||
          (stats.waiting > 0 && stats.running < options.max_sequences)) {
        ASSERT_TRUE(horizon == 0 || is_decode(*newest));
        scheduler->commit();
        continue;
      }
      for (int32_t i = 0; i <= horizon; ++i) {
        const Shape shape(*newest);
        scheduler->commit();
        newest = &scheduler->plan();
        ASSERT_EQ(shape.repeated_by(*newest), i < horizon) << "seed " << seed << " step " << i;
      }
      if (!newest->empty()) scheduler->commit();
      ++checked;
    }
  }
  EXPECT_GT(checked, 5'000);
}

}  // namespace
}  // namespace prony::sched
