#include "prony/kernels/thread_pool.hpp"

#include <fmt/format.h>

#include "prony/core/check.hpp"
#include "prony/core/system.hpp"

namespace prony::kernels {
namespace {

constexpr uint64_t kOpen = uint64_t{1} << 31;
constexpr uint64_t kInside = kOpen - 1;
// Spins before parking, of workers and of the caller. A pause takes 40 to 140 cycles, so this is 20
// to 50 us: longer than the gap between two jobs of one step, shorter than anybody would call busy.
constexpr int kSpins = 1000;

uint32_t epoch_of(uint64_t gate) {
  return static_cast<uint32_t>(gate >> 32);
}

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  PRONY_CHECK(threads >= 1 && threads <= 1024, "thread count out of range");
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { worker_loop(i); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  wake_.fetch_add(1);
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_job(const Job& job) {
  job_ = job;
  next_.store(0, std::memory_order_relaxed);
  const uint32_t epoch = epoch_of(gate_.load(std::memory_order_relaxed)) + 1;
  // Sequentially consistent with park(): either the worker sees the open gate or we see it parked.
  gate_.store(uint64_t{epoch} << 32 | kOpen);
  if (parked_.load() > 0) {
    wake_.fetch_add(1);
    wake_.notify_all();
  }
  work();
  gate_.fetch_and(~kOpen);
  wait_for_workers();
}

// Workers inside finish the piece they hold; who wakes only now finds the gate closed. A worker
// that holds a piece may have lost its core to another process: then sleeping until it is done
// costs one wake-up, where yielding would give away a time slice again and again.
void ThreadPool::wait_for_workers() {
  for (int spins = 0; spins < kSpins; ++spins) {
    if ((gate_.load(std::memory_order_acquire) & kInside) == 0) return;
    pause_cpu();
  }
  while (true) {
    const uint32_t before = left_.load();
    if ((gate_.load() & kInside) == 0) return;
    left_.wait(before);
  }
}

void ThreadPool::leave_job() {
  const uint64_t before = gate_.fetch_sub(1);
  if ((before & kOpen) == 0 && (before & kInside) == 1) {  // the last, and the caller may sleep
    left_.fetch_add(1);
    left_.notify_one();
  }
}

void ThreadPool::work() {
  const Job job = job_;
  while (true) {
    const int64_t begin = next_.fetch_add(job.grain, std::memory_order_relaxed);
    if (begin >= job.count) return;
    const int64_t end = job.count - begin < job.grain ? job.count : begin + job.grain;
    job.call(job.context, begin, end);
  }
}

// Enters the open gate of an epoch this worker has not worked in; false if there is none.
bool ThreadPool::join_job(uint32_t* seen_epoch) {
  uint64_t gate = gate_.load(std::memory_order_acquire);
  while ((gate & kOpen) != 0 && epoch_of(gate) != *seen_epoch) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire)) {
      *seen_epoch = epoch_of(gate);
      return true;
    }
  }
  return false;
}

void ThreadPool::park(uint32_t seen_epoch) {
  const uint32_t before = wake_.load();
  parked_.fetch_add(1);
  const uint64_t gate = gate_.load();
  const bool job_waits = (gate & kOpen) != 0 && epoch_of(gate) != seen_epoch;
  if (!job_waits && !stop_.load()) wake_.wait(before);
  parked_.fetch_sub(1);
}

void ThreadPool::worker_loop(int index) {
  core::name_thread(fmt::format("kernel-{}", index));
  uint32_t seen_epoch = 0;
  int idle_spins = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    if (join_job(&seen_epoch)) {
      work();
      leave_job();
      idle_spins = 0;
    } else if (++idle_spins < kSpins) {
      pause_cpu();
    } else {
      park(seen_epoch);
    }
  }
}

}  // namespace prony::kernels
