// Test that the steady state allocates nothing: operator new of the test program counts.
// Sanitizers bring their own operator new; there the test is left out.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "prony/core/rng.hpp"
#include "prony/sched/scheduler_testing.hpp"

#if !PRONY_SANITIZED

namespace {
std::atomic<int64_t> news = 0;

void* counted(size_t size) {
  news.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) std::abort();
  return memory;
}
}  // namespace

void* operator new(size_t size) {
  return counted(size);
}
void* operator new[](size_t size) {
  return counted(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  std::free(memory);
}

namespace prony::sched {
namespace {

// Everything that happens in service: arrival with prefix keys, chunks, decode, generated keys,
// preemption, eviction, jumps, ends and aborts.
class Service {
 public:
  explicit Service(const SchedulerOptions& options)
      : options_(options), scheduler_(std::move(*Scheduler::create(options))) {
    live_.reserve(64);
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      while (live_.size() < 48) add();
      if (rng_.below(50) == 0) abort();
      while (scheduler_->steps_in_flight() < options_.depth && !scheduler_->plan().empty()) {
      }
      const int32_t horizon = rng_.below(4) == 0 ? scheduler_->horizon() : 0;
      const CommitResult& result = scheduler_->commit_many(1 + horizon);
      for (const Handle handle : result.released) std::erase(live_, handle);
    }
  }
  SchedulerStats stats() const { return scheduler_->stats(); }

 private:
  void add() {
    const uint64_t family = rng_.below(40);
    for (size_t i = 0; i < kKeys; ++i) keys_[i] = {.low = family, .high = i};
    const Result<Handle> handle =
        scheduler_->add({.prompt_tokens = 16 * kKeys + static_cast<int32_t>(rng_.below(100)),
                         .max_new_tokens = 20 + static_cast<int32_t>(rng_.below(200)),
                         .priority = static_cast<int32_t>(rng_.below(3)),
                         .block_keys = keys_});
    live_.push_back(*handle);
    scheduler_->append_key(*handle, {.low = rng_.next_u64(), .high = 0});
  }
  void abort() {
    const Handle handle = live_[rng_.below(live_.size())];
    if (scheduler_->abort(handle)) std::erase(live_, handle);
  }

  static constexpr int32_t kKeys = 6;
  SchedulerOptions options_;
  std::unique_ptr<Scheduler> scheduler_;
  core::Rng rng_{7};
  BlockKey keys_[kKeys];
  std::vector<Handle> live_;
};

TEST(Allocation, NoneInSteadyState) {
  for (const Policy policy : {Policy::kFcfs, Policy::kPriority}) {
    for (const int32_t depth : {1, 2}) {
      Service service({.block_count = 220,
                       .max_tokens_per_step = 128,
                       .max_sequences = 24,
                       .max_context = 512,
                       .depth = depth,
                       .policy = policy});
      service.run(5'000);
      const SchedulerStats before = service.stats();
      const int64_t news_before = news.load();
      service.run(20'000);
      EXPECT_EQ(news.load() - news_before, 0) << "depth " << depth;
      const SchedulerStats after = service.stats();
      EXPECT_GT(after.preemptions, before.preemptions + 100);
      EXPECT_GT(after.evictions, before.evictions + 1'000);
      EXPECT_GT(after.prefix_hit_tokens, before.prefix_hit_tokens + 1'000);
      EXPECT_GT(after.finished, before.finished + 500);
      EXPECT_GT(after.aborted, before.aborted + 100);
    }
  }
}

}  // namespace
}  // namespace prony::sched

#else

TEST(Allocation, NoneInSteadyState) {
  GTEST_SKIP() << "a sanitizer owns operator new";
}

#endif
