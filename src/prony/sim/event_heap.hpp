// EventHeap: what happens next on virtual time, ordered by (time, sequence): of two events at one
// instant the one that was pushed first comes first, so a run is a function of its inputs and its
// seed alone. Allocates only while more events are pending than ever before. Thread safety: none.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "prony/core/clock.hpp"

namespace prony::sim {

struct Event {
  core::Nanos t_ns = 0;
  uint64_t sequence = 0;  // set by push()
  int32_t kind = 0;       // the caller's
  int32_t target = 0;     // whom it is for: a replica, a component
  int64_t value = 0;      // what comes with it: a request, a generation
};

class EventHeap {
 public:
  void push(Event event) {
    event.sequence = next_++;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  const Event& top() const { return heap_.front(); }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }
  uint64_t pushed() const { return next_; }

 private:
  static bool later(const Event& a, const Event& b) {
    if (a.t_ns != b.t_ns) return a.t_ns > b.t_ns;
    if (a.kind != b.kind) return a.kind > b.kind;
    return a.target != b.target ? a.target > b.target : a.sequence > b.sequence;
  }
  std::vector<Event> heap_;
  uint64_t next_ = 0;
};

}  // namespace prony::sim
