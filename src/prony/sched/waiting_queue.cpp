#include "prony/sched/waiting_queue.hpp"

#include "prony/core/check.hpp"

namespace prony::sched {

bool WaitingQueue::contains(Handle handle) const noexcept {
  return handle < positions_.size() && positions_[handle] != kAbsent;
}

void WaitingQueue::push(Handle handle, const Rank& rank) {
  insert(handle, by_rank_ ? rank : Rank{.priority = 0, .arrival = back_ticket_++, .sequence = 0});
}

void WaitingQueue::push_front(Handle handle, const Rank& rank) {
  insert(handle, by_rank_ ? rank : Rank{.priority = 0, .arrival = front_ticket_--, .sequence = 0});
}

void WaitingQueue::insert(Handle handle, const Rank& rank) {
  PRONY_CHECK(!contains(handle), "request waits already");
  if (handle >= positions_.size()) positions_.resize(handle + 1, kAbsent);
  heap_.emplace_back();
  sift_up(heap_.size() - 1, {.rank = rank, .handle = handle});
}

void WaitingQueue::remove(Handle handle) {
  PRONY_CHECK(contains(handle), "request does not wait");
  const size_t hole = positions_[handle];
  positions_[handle] = kAbsent;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (hole == heap_.size()) return;
  if (hole > 0 && last.rank < heap_[(hole - 1) / 2].rank) {
    sift_up(hole, last);
  } else {
    sift_down(hole, last);
  }
}

void WaitingQueue::place(size_t index, const Entry& entry) {
  heap_[index] = entry;
  positions_[entry.handle] = static_cast<uint32_t>(index);
}

void WaitingQueue::sift_up(size_t index, const Entry& entry) {
  while (index > 0 && entry.rank < heap_[(index - 1) / 2].rank) {
    place(index, heap_[(index - 1) / 2]);
    index = (index - 1) / 2;
  }
  place(index, entry);
}

void WaitingQueue::sift_down(size_t index, const Entry& entry) {
  for (size_t child = 2 * index + 1; child < heap_.size(); child = 2 * index + 1) {
    if (child + 1 < heap_.size() && heap_[child + 1].rank < heap_[child].rank) ++child;
    if (entry.rank < heap_[child].rank) break;
    place(index, heap_[child]);
    index = child;
  }
  place(index, entry);
}

bool WaitingQueue::consistent() const {
  size_t present = 0;
  for (const uint32_t position : positions_) present += position != kAbsent ? 1 : 0;
  if (present != heap_.size()) return false;
  for (size_t i = 0; i < heap_.size(); ++i) {
    if (positions_[heap_[i].handle] != i) return false;
    if (i > 0 && heap_[i].rank < heap_[(i - 1) / 2].rank) return false;
  }
  return true;
}

}  // namespace prony::sched
