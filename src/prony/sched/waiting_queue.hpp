// WaitingQueue: requests that wait for admission, in the order of the policy: first come first
// served with a front door for preempted requests, or smallest (priority, arrival). A binary heap
// that knows where each request lies, so that an abort costs O(log n) wherever it is.
// Allocates only when it grows beyond anything seen before.
// Thread safety: none.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "prony/sched/step_plan.hpp"

namespace prony::sched {

class WaitingQueue {
 public:
  /// Sorts before another if smaller, field by field; all three equal only for the same request.
  struct Rank {
    int64_t priority = 0;
    int64_t arrival = 0;
    uint64_t sequence = 0;  // order of add()
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };

  /// `by_rank` false: order of push(), and push_front() goes before everything present.
  explicit WaitingQueue(bool by_rank) : by_rank_(by_rank) {}

  /// Makes room for `count` requests with handles below `count`.
  void reserve(size_t count) {
    heap_.reserve(count);
    positions_.reserve(count);
  }
  bool empty() const noexcept { return heap_.empty(); }
  size_t size() const noexcept { return heap_.size(); }
  bool contains(Handle handle) const noexcept;
  Handle front() const { return heap_.front().handle; }

  /// Requires that `handle` is not in the queue (checked).
  void push(Handle handle, const Rank& rank);
  /// As push(), but to the front; ordered by rank the rank decides.
  void push_front(Handle handle, const Rank& rank);
  void pop() { remove(heap_.front().handle); }
  /// Requires that `handle` is in the queue (checked).
  void remove(Handle handle);

  /// The last request in order for which `accept` holds; false if there is none. O(n).
  template <typename Accept>
  bool last_where(const Accept& accept, Handle& found) const {
    const Entry* last = nullptr;
    for (const Entry& entry : heap_) {
      if (accept(entry.handle) && (last == nullptr || last->rank < entry.rank)) last = &entry;
    }
    if (last != nullptr) found = last->handle;
    return last != nullptr;
  }

  /// True if the heap is ordered and every position is right; for tests.
  bool consistent() const;

 private:
  static constexpr uint32_t kAbsent = UINT32_MAX;
  struct Entry {
    Rank rank;
    Handle handle = 0;
  };
  void insert(Handle handle, const Rank& rank);
  void place(size_t index, const Entry& entry);
  void sift_up(size_t index, const Entry& entry);
  void sift_down(size_t index, const Entry& entry);

  bool by_rank_;
  int64_t front_ticket_ = 0;  // FCFS: the next ticket before, and after, all given out so far
  int64_t back_ticket_ = 1;
  std::vector<Entry> heap_;
  std::vector<uint32_t> positions_;  // [handle] index into heap_, or kAbsent
};

}  // namespace prony::sched
