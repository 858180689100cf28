#include "prony/net/timer_heap.hpp"

#include <algorithm>
#include <tuple>

#include "prony/core/check.hpp"

namespace prony::net {
namespace {

bool before(const Timer::Impl& a, const Timer::Impl& b) {
  return std::tie(a.deadline_ns, a.order) < std::tie(b.deadline_ns, b.order);
}

}  // namespace

TimerHeap::~TimerHeap() {
  PRONY_CHECK(timers_ == 0, "a timer outlives its event loop");
}

void TimerHeap::add_timer() {
  ++timers_;
  if (heap_.capacity() < timers_) heap_.reserve(std::max<size_t>(64, 2 * timers_));
}

void TimerHeap::remove_timer() {
  --timers_;
}

void TimerHeap::place(size_t index, Timer::Impl* timer) {
  heap_[index] = timer;
  timer->index = index;
}

void TimerHeap::sift_up(size_t index) {
  Timer::Impl* timer = heap_[index];
  while (index > 0) {
    const size_t parent = (index - 1) / 2;
    if (!before(*timer, *heap_[parent])) break;
    place(index, heap_[parent]);
    index = parent;
  }
  place(index, timer);
}

void TimerHeap::sift_down(size_t index) {
  Timer::Impl* timer = heap_[index];
  while (true) {
    size_t child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child])) ++child;
    if (!before(*heap_[child], *timer)) break;
    place(index, heap_[child]);
    index = child;
  }
  place(index, timer);
}

void TimerHeap::arm(Timer::Impl& timer, core::Nanos deadline_ns) {
  timer.deadline_ns = deadline_ns;
  timer.order = next_order_++;
  if (timer.index == Timer::Impl::kIdle) {
    heap_.push_back(&timer);
    timer.index = heap_.size() - 1;
  }
  sift_up(timer.index);
  sift_down(timer.index);
}

void TimerHeap::cancel(Timer::Impl& timer) {
  const size_t index = timer.index;
  if (index == Timer::Impl::kIdle) return;
  timer.index = Timer::Impl::kIdle;
  Timer::Impl* last = heap_.back();
  heap_.pop_back();
  if (last == &timer) return;
  place(index, last);
  sift_up(index);
  sift_down(last->index);
}

core::Nanos TimerHeap::next_ns() const {
  return heap_.empty() ? INT64_MAX : heap_.front()->deadline_ns;
}

}  // namespace prony::net
