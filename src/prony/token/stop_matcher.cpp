#include "prony/token/stop_matcher.hpp"

#include <fmt/format.h>

#include "prony/core/check.hpp"
#include "prony/token/detokenizer.hpp"

namespace prony::token {

Result<StopMatcher> StopMatcher::create(const std::vector<std::string>& stops, bool include_stop) {
  StopMatcher matcher;
  matcher.include_stop_ = include_stop;
  if (stops.empty()) return matcher;
  matcher.nodes_.emplace_back();
  for (size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty()) {
      return invalid_argument(fmt::format("stop[{}]: found an empty string, expected text", i));
    }
    if (!is_valid_utf8(stops[i])) {
      return invalid_argument(fmt::format("stop[{}]: found bytes that are not UTF-8", i));
    }
    matcher.insert(stops[i], static_cast<int32_t>(i));
    matcher.stop_bytes_.push_back(stops[i].size());
  }
  matcher.link();
  return matcher;
}

int32_t StopMatcher::child(int32_t node, uint8_t byte) const {
  int32_t at = nodes_[static_cast<size_t>(node)].first_child;
  while (at >= 0 && nodes_[static_cast<size_t>(at)].byte != byte) {
    at = nodes_[static_cast<size_t>(at)].next_sibling;
  }
  return at;
}

void StopMatcher::insert(std::string_view stop, int32_t index) {
  int32_t at = 0;
  for (const char c : stop) {
    const auto byte = static_cast<uint8_t>(c);
    int32_t next = child(at, byte);
    if (next < 0) {
      next = static_cast<int32_t>(nodes_.size());
      Node node;
      node.parent = at;
      node.byte = byte;
      node.depth = nodes_[static_cast<size_t>(at)].depth + 1;
      node.next_sibling = nodes_[static_cast<size_t>(at)].first_child;
      nodes_.push_back(node);
      nodes_[static_cast<size_t>(at)].first_child = next;
    }
    at = next;
  }
  // Of equal stops the first in the list counts.
  Node& end = nodes_[static_cast<size_t>(at)];
  if (end.stop < 0) end.stop = index;
}

void StopMatcher::link() {
  // Breadth first, so that the failure node, which is shallower, is linked before it is needed.
  std::vector<int32_t> order{0};
  for (size_t i = 0; i < order.size(); ++i) {
    for (int32_t at = nodes_[static_cast<size_t>(order[i])].first_child; at >= 0;
         at = nodes_[static_cast<size_t>(at)].next_sibling) {
      order.push_back(at);
    }
  }
  for (size_t i = 1; i < order.size(); ++i) {
    Node& node = nodes_[static_cast<size_t>(order[i])];
    if (node.parent != 0) {
      int32_t at = nodes_[static_cast<size_t>(node.parent)].fail;
      int32_t next = child(at, node.byte);
      while (next < 0 && at != 0) {
        at = nodes_[static_cast<size_t>(at)].fail;
        next = child(at, node.byte);
      }
      node.fail = next < 0 ? 0 : next;
    }
    // A node's own stop is longer than any that ends at its failure node.
    if (node.stop < 0) node.stop = nodes_[static_cast<size_t>(node.fail)].stop;
  }
}

bool StopMatcher::push(std::string_view text, std::string& out) {
  PRONY_CHECK(!stopped(), "text after the stop");
  if (nodes_.empty()) {
    out += text;
    return false;
  }
  held_ += text;
  const size_t first = held_.size() - text.size();
  for (size_t i = first; i < held_.size(); ++i) {
    const auto byte = static_cast<uint8_t>(held_[i]);
    int32_t next = child(state_, byte);
    while (next < 0 && state_ != 0) {
      state_ = nodes_[static_cast<size_t>(state_)].fail;
      next = child(state_, byte);
    }
    state_ = next < 0 ? 0 : next;
    const int32_t stop = nodes_[static_cast<size_t>(state_)].stop;
    if (stop < 0) continue;
    matched_ = static_cast<size_t>(stop);
    const size_t end = i + 1;
    out.append(held_, 0, include_stop_ ? end : end - stop_bytes_[*matched_]);
    held_.clear();
    state_ = 0;
    return true;
  }
  const auto keep = static_cast<size_t>(nodes_[static_cast<size_t>(state_)].depth);
  out.append(held_, 0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return false;
}

void StopMatcher::flush(std::string& out) {
  out += held_;
  held_.clear();
  state_ = 0;
}

}  // namespace prony::token
