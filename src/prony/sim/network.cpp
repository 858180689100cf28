#include "prony/sim/network.hpp"

#include <algorithm>
#include <functional>

#include "prony/core/check.hpp"

namespace prony::sim {
namespace {

std::vector<int64_t> capacities_of(const Topology& topology) {
  std::vector<int64_t> capacities;
  for (int32_t id = 0; id < topology.link_count(); ++id) {
    capacities.push_back(topology.capacity(id));
  }
  return capacities;
}

}  // namespace

Network::Network(Topology& topology)
    : topology_(topology), routes_(topology), flows_(capacities_of(topology)) {}

int64_t Network::latency_of(const std::vector<int32_t>& path) const {
  int64_t sum = 0;
  for (const int32_t id : path) sum += topology_.link(id).latency_ns;
  return sum;
}

TransferId Network::send(const Transfer& transfer) {
  PRONY_CHECK(transfer.sink && transfer.bytes >= 0);
  PRONY_CHECK(std::max(transfer.from, transfer.to) < topology_.device_count() &&
              std::min(transfer.from, transfer.to) >= 0);
  uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(messages_.size());
    messages_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Message& message = messages_[slot];
  message.transfer = transfer;
  message.used = true;
  bytes_sent_ += transfer.bytes;
  ++in_flight_;
  message.lost = !routes_.find(transfer.from, transfer.to, transfer.salt, path_);
  message.flowing = !message.lost && !path_.empty();
  if (message.flowing) {
    message.latency_ns = latency_of(path_);
    message.flow =
        flows_.start({.bytes = transfer.bytes, .weight = transfer.weight, .tag = slot}, path_);
  } else {
    arrive_at(now_ns(), slot);
  }
  return {slot, message.generation};
}

bool Network::pending(TransferId id) const {
  return id.slot < messages_.size() && messages_[id.slot].used &&
         messages_[id.slot].generation == id.generation;
}

void Network::cancel(TransferId id) {
  PRONY_CHECK(pending(id));
  if (messages_[id.slot].flowing) flows_.cancel(messages_[id.slot].flow);
  release(id.slot);
}

void Network::arrive_at(int64_t ns, uint32_t slot) {
  arrivals_.push_back({ns, sequence_++, slot, messages_[slot].generation});
  std::push_heap(arrivals_.begin(), arrivals_.end(), std::greater<>());
}

void Network::release(uint32_t slot) {
  Message& message = messages_[slot];
  message.used = message.flowing = false;
  ++message.generation;
  free_.push_back(slot);
  --in_flight_;
}

int64_t Network::next_event_ns() {
  while (!arrivals_.empty() &&
         messages_[arrivals_.front().slot].generation != arrivals_.front().generation) {
    std::pop_heap(arrivals_.begin(), arrivals_.end(), std::greater<>());
    arrivals_.pop_back();
  }
  const int64_t arrival = arrivals_.empty() ? kNeverNs : arrivals_.front().at_ns;
  return std::min(arrival, flows_.next_end_ns());
}

void Network::advance_to(int64_t ns) {
  PRONY_CHECK(ns >= now_ns());
  for (int64_t next = next_event_ns(); next <= ns && next != kNeverNs; next = next_event_ns()) {
    ended_.clear();
    flows_.advance_to(next, ended_);
    for (const FlowEnd& end : ended_) {
      Message& message = messages_[end.tag];
      message.flowing = false;
      arrive_at(next + message.latency_ns, static_cast<uint32_t>(end.tag));
    }
    // A sink may send, which may arrive at once: only those that were due before it are handled
    // here, the loop comes back for the rest.
    const uint64_t until = sequence_;
    while (!arrivals_.empty() && arrivals_.front().at_ns <= next &&
           arrivals_.front().sequence < until) {
      const Arrival arrival = arrivals_.front();
      std::pop_heap(arrivals_.begin(), arrivals_.end(), std::greater<>());
      arrivals_.pop_back();
      const Message& message = messages_[arrival.slot];
      if (message.generation != arrival.generation) continue;
      const Transfer transfer = message.transfer;
      const bool lost = message.lost;
      release(arrival.slot);
      if (!lost) bytes_delivered_ += transfer.bytes;
      lost ? transfer.sink->on_lost(transfer.tag, next)
           : transfer.sink->on_delivered(transfer.tag, next);
    }
  }
  if (ns != kNeverNs) flows_.advance_to(ns, ended_);
}

int64_t Network::run_until(int64_t ns) {
  for (int64_t next = next_event_ns(); next <= ns && next != kNeverNs; next = next_event_ns()) {
    advance_to(next);
  }
  if (ns != kNeverNs) advance_to(ns);
  return now_ns();
}

// Gives the network the link's new state and moves what a dead link carried.
void Network::apply(int32_t link) {
  flows_.set_capacity(link, topology_.capacity(link));
  if (topology_.link(link).up) return;
  moved_.clear();
  flows_.flows_on(link, moved_);
  // The list's order comes from its history; by slot it is easier to reason about.
  std::sort(moved_.begin(), moved_.end(),
            [](const FlowId& a, const FlowId& b) { return a.slot < b.slot; });
  for (const FlowId flow : moved_) {
    const auto slot = static_cast<uint32_t>(flows_.tag(flow));
    Message& message = messages_[slot];
    const Transfer& transfer = message.transfer;
    if (routes_.find(transfer.from, transfer.to, transfer.salt, path_)) {
      flows_.reroute(flow, path_);
      message.latency_ns = latency_of(path_);
    } else {
      flows_.cancel(flow);
      message.flowing = false;
      message.lost = true;
      arrive_at(now_ns(), slot);
    }
  }
}

void Network::set_link_up(int32_t link, bool up) {
  topology_.set_up(link, up);
  apply(link);
  apply(Topology::reverse(link));
}

void Network::set_vertex_up(int32_t vertex, bool up) {
  topology_.set_vertex_up(vertex, up);  // all at once: no message moves to a link that dies too
  for (const int32_t link : topology_.links_from(vertex)) {
    apply(link);
    apply(Topology::reverse(link));
  }
}

void Network::set_bandwidth(int32_t link, int64_t bytes_per_s) {
  topology_.set_bandwidth(link, bytes_per_s);
  flows_.set_capacity(link, topology_.capacity(link));
}

void Network::set_observer(TrafficObserver* observer) {
  flows_.flush_observer();
  observer_ = observer;
  flows_.set_observer(observer ? this : nullptr);
}

void Network::on_stretch(uint64_t tag, int64_t from_ns, int64_t to_ns, int64_t bytes_per_s,
                         NanoBytes moved) {
  const Transfer& transfer = messages_[tag].transfer;
  observer_->on_traffic(transfer.from, transfer.to, from_ns, to_ns, bytes_per_s, moved);
}

}  // namespace prony::sim
