// TimerHeap: the armed timers of one EventLoop, a binary heap by (deadline, order of arming) that
// knows each timer's place, so that arm and cancel are O(log n) and allocate nothing: room is made
// when a Timer is constructed. Thread safety: loop thread only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/net/event_loop.hpp"

namespace prony::net {

class TimerHeap {
 public:
  TimerHeap() = default;
  ~TimerHeap();
  TimerHeap(const TimerHeap&) = delete;
  TimerHeap& operator=(const TimerHeap&) = delete;

  void add_timer();     // a Timer was constructed: makes room for it
  void remove_timer();  // a Timer was destroyed
  size_t timers() const { return timers_; }

  void arm(Timer::Impl& timer, core::Nanos deadline_ns);
  void cancel(Timer::Impl& timer);

  /// Earliest deadline; INT64_MAX if none is armed.
  core::Nanos next_ns() const;
  /// Runs the callbacks that are due at `now_ns`, in order; those armed meanwhile wait for the next
  /// call, so that a timer that re-arms itself in the past cannot starve the sockets. Returns how
  /// many ran; ends early when `stop` says so.
  template <class Stop>
  size_t fire_due(core::Nanos now_ns, Stop stop);

 private:
  void place(size_t index, Timer::Impl* timer);
  void sift_up(size_t index);
  void sift_down(size_t index);

  std::vector<Timer::Impl*> heap_;
  size_t timers_ = 0;
  uint64_t next_order_ = 0;
};

struct Timer::Impl : std::enable_shared_from_this<Timer::Impl> {
  static constexpr size_t kIdle = SIZE_MAX;

  Impl(TimerHeap& heap_in, std::function<void()> callback_in)
      : heap(heap_in), callback(std::move(callback_in)) {}

  TimerHeap& heap;
  std::function<void()> callback;
  core::Nanos deadline_ns = 0;
  uint64_t order = 0;
  size_t index = kIdle;  // place in the heap
};

template <class Stop>
size_t TimerHeap::fire_due(core::Nanos now_ns, Stop stop) {
  const uint64_t first_new = next_order_;
  size_t fired = 0;
  while (!heap_.empty() && heap_.front()->deadline_ns <= now_ns &&
         heap_.front()->order < first_new && !stop()) {
    // The callback may destroy its own Timer.
    const std::shared_ptr<Timer::Impl> timer = heap_.front()->shared_from_this();
    cancel(*timer);
    timer->callback();
    ++fired;
  }
  return fired;
}

}  // namespace prony::net
