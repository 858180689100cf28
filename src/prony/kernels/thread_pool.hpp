// ThreadPool: the threads of the CPU kernels. The caller is worker 0 and works too, so one thread
// means no thread is started. Workers spin for a short while after a job, because the next one of a
// forward pass comes within microseconds, and park on a futex after that, so that an idle engine
// uses no processor. Which worker runs which piece is not fixed; no result may depend on it.
// Thread safety: run() from one thread at a time.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace prony::kernels {

class ThreadPool {
 public:
  /// Requires threads >= 1 (checked).
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int threads() const noexcept { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(begin, end) over disjoint ranges that cover [0, count), each of at most `grain`
  /// items (all at once if there is one thread), and returns when all are done. Requires
  /// grain >= 1; body must not throw and must not call run().
  template <class Body>
  void run(int64_t count, int64_t grain, Body&& body) {
    if (workers_.empty() || count <= grain) {
      if (count > 0) body(int64_t{0}, count);
      return;
    }
    using Plain = std::remove_reference_t<Body>;
    run_job({[](void* context, int64_t begin, int64_t end) {
               (*static_cast<Plain*>(context))(begin, end);
             },
             const_cast<void*>(static_cast<const void*>(std::addressof(body))), count, grain});
  }

 private:
  struct Job {
    void (*call)(void* context, int64_t begin, int64_t end) = nullptr;
    void* context = nullptr;
    int64_t count = 0;
    int64_t grain = 1;
  };
  void run_job(const Job& job);
  void work();
  void worker_loop(int index);
  void wait_for_workers();
  bool join_job(uint32_t* seen_epoch);
  void leave_job();
  void park(uint32_t seen_epoch);

  Job job_;                       // written only while the gate is closed and nobody is inside
  std::atomic<int64_t> next_{0};  // first item nobody has taken
  // One word, so that joining and closing cannot cross: epoch << 32 | open << 31 | workers inside.
  std::atomic<uint64_t> gate_{0};
  std::atomic<uint32_t> wake_{0};  // futex word: changes when parked workers must look again
  std::atomic<uint32_t> left_{0};  // futex word: changes when the last leaves a closed gate
  std::atomic<uint32_t> parked_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace prony::kernels
