// DeadlineHeap: which of many streams is due first. Deadlines of streams move with every event,
// nearly always later, so only moves to an earlier time touch the heap at once; a later one is
// found when the old time comes up. That keeps the token path free of heap work.
// Thread safety: none. Source: an indexed binary heap.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/core/clock.hpp"

namespace prony::load {

/// Node of one stream, kept by its owner, which must stay at its address while it is in the heap.
struct DeadlineNode {
  static constexpr size_t kOutside = static_cast<size_t>(-1);
  core::Nanos at_ns = 0;    // as the heap has it
  size_t place = kOutside;  // in the heap
  void* owner = nullptr;
  bool queued() const { return place != kOutside; }
};

class DeadlineHeap {
 public:
  bool empty() const { return nodes_.empty(); }
  DeadlineNode& top() { return *nodes_.front(); }

  /// Puts the node at `at_ns`, wherever it was.
  void set(DeadlineNode& node, core::Nanos at_ns) {
    if (!node.queued()) {
      node.place = nodes_.size();
      nodes_.push_back(&node);
    }
    node.at_ns = at_ns;
    sift_up(node.place);
    sift_down(node.place);
  }

  void remove(DeadlineNode& node) {
    if (!node.queued()) return;
    const size_t place = node.place;
    PRONY_CHECK(place < nodes_.size() && nodes_[place] == &node);
    swap(place, nodes_.size() - 1);
    nodes_.pop_back();
    node.place = DeadlineNode::kOutside;
    if (place < nodes_.size()) {
      sift_up(place);
      sift_down(place);
    }
  }

 private:
  void swap(size_t a, size_t b) {
    std::swap(nodes_[a], nodes_[b]);
    nodes_[a]->place = a;
    nodes_[b]->place = b;
  }
  void sift_up(size_t place) {
    while (place > 0) {
      const size_t parent = (place - 1) / 2;
      if (nodes_[parent]->at_ns <= nodes_[place]->at_ns) return;
      swap(parent, place);
      place = parent;
    }
  }
  void sift_down(size_t place) {
    while (true) {
      size_t least = place;
      for (size_t child = 2 * place + 1; child <= 2 * place + 2; ++child) {
        if (child < nodes_.size() && nodes_[child]->at_ns < nodes_[least]->at_ns) least = child;
      }
      if (least == place) return;
      swap(least, place);
      place = least;
    }
  }

  std::vector<DeadlineNode*> nodes_;
};

}  // namespace prony::load
