#include "prony/sim/flow_network.hpp"

#include <algorithm>

#include "prony/core/check.hpp"

namespace prony::sim {
namespace {

int64_t end_of(int64_t now_ns, NanoBytes remaining, int64_t rate) {
  if (remaining == 0) return now_ns;
  if (rate == 0) return kNeverNs;
  const NanoBytes ns = (remaining + rate - 1) / rate;
  return ns >= kNeverNs - now_ns ? kNeverNs : now_ns + static_cast<int64_t>(ns);
}

}  // namespace

FlowNetwork::FlowNetwork(std::span<const int64_t> capacities) : links_(capacities.size()) {
  for (size_t i = 0; i < capacities.size(); ++i) {
    PRONY_CHECK(capacities[i] >= 0);
    links_[i].capacity = capacities[i];
  }
}

FlowNetwork::Flow& FlowNetwork::flow_of(FlowId id) {
  PRONY_CHECK(alive(id), "a flow that has ended");
  return flows_[id.slot];
}

const FlowNetwork::Flow& FlowNetwork::flow_of(FlowId id) const {
  PRONY_CHECK(alive(id), "a flow that has ended");
  return flows_[id.slot];
}

bool FlowNetwork::alive(FlowId id) const {
  return id.slot < flows_.size() && flows_[id.slot].alive &&
         flows_[id.slot].generation == id.generation;
}

std::span<int32_t> FlowNetwork::links_of(uint32_t slot) {
  return std::span(path_links_).subspan(slot * stride_, static_cast<size_t>(flows_[slot].links));
}

void FlowNetwork::attach(uint32_t slot, std::span<const int32_t> path) {
  if (path.size() > stride_) {
    const size_t wide = std::max(path.size(), 2 * stride_);
    for (std::vector<int32_t>* table : {&path_links_, &path_at_}) {
      std::vector<int32_t> grown(flows_.size() * wide);
      for (size_t s = 0; s < flows_.size(); ++s) {
        std::copy_n(table->begin() + static_cast<ptrdiff_t>(s * stride_), stride_,
                    grown.begin() + static_cast<ptrdiff_t>(s * wide));
      }
      *table = std::move(grown);
    }
    stride_ = wide;
  }
  flows_[slot].links = static_cast<int32_t>(path.size());
  for (size_t step = 0; step < path.size(); ++step) {
    const int32_t id = path[step];
    PRONY_CHECK(id >= 0 && id < link_count());
    LinkState& link = links_[static_cast<size_t>(id)];
    PRONY_CHECK(link.flows.empty() || link.flows.back().slot != slot, "a path twice on one link");
    path_links_[slot * stride_ + step] = id;
    path_at_[slot * stride_ + step] = static_cast<int32_t>(link.flows.size());
    link.flows.push_back({slot, static_cast<int32_t>(step)});
  }
}

// Takes the flow off its links; they carried `overshoot` less than their rates say.
void FlowNetwork::detach(uint32_t slot, NanoBytes overshoot) {
  Flow& flow = flows_[slot];
  for (size_t step = 0; step < static_cast<size_t>(flow.links); ++step) {
    const int32_t id = path_links_[slot * stride_ + step];
    LinkState& link = links_[static_cast<size_t>(id)];
    settle(link);
    link.carried -= overshoot;
    link.load -= flow.rate;
    if (flow.bottleneck == id) --link.held;
    const auto at = static_cast<size_t>(path_at_[slot * stride_ + step]);
    const LinkFlow last = link.flows.back();
    link.flows[at] = last;
    path_at_[last.slot * stride_ + static_cast<size_t>(last.step)] = static_cast<int32_t>(at);
    link.flows.pop_back();
    touch(id);
  }
  flow.links = 0;
  flow.rate = 0;
  flow.bottleneck = -1;
}

void FlowNetwork::release(uint32_t slot) {
  Flow& flow = flows_[slot];
  heap_remove(slot);
  flow.alive = flow.dirty = false;
  ++flow.generation;
  free_.push_back(slot);
  --active_;
  ++effort_.events;
}

void FlowNetwork::mark_dirty(uint32_t slot) {
  if (flows_[slot].dirty) return;
  flows_[slot].dirty = true;
  dirty_flows_.push_back(slot);
}

void FlowNetwork::settle(Flow& flow) {
  const int64_t elapsed = now_ns_ - flow.updated_ns;
  if (elapsed == 0) return;
  const NanoBytes moved = std::min<NanoBytes>(NanoBytes{flow.rate} * elapsed, flow.remaining);
  if (observer_ && moved > 0) {
    observer_->on_stretch(flow.tag, flow.updated_ns, now_ns_, flow.rate, moved);
  }
  flow.remaining -= moved;
  flow.updated_ns = now_ns_;
}

void FlowNetwork::settle(LinkState& link) {
  link.carried += NanoBytes{link.load} * (now_ns_ - link.updated_ns);
  link.updated_ns = now_ns_;
}

void FlowNetwork::schedule(uint32_t slot) {
  Flow& flow = flows_[slot];
  const int64_t end = end_of(now_ns_, flow.remaining, flow.rate);
  if (end == flow.end_ns) return;
  const bool sooner = end < flow.end_ns;
  flow.end_ns = end;
  sooner ? heap_up(static_cast<size_t>(flow.heap_at))
         : heap_down(static_cast<size_t>(flow.heap_at));
}

FlowId FlowNetwork::start(const FlowStart& start, std::span<const int32_t> path) {
  PRONY_CHECK(start.bytes >= 0 && start.weight >= 1 && start.weight <= kFlowWeightMax);
  uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(flows_.size());
    flows_.emplace_back();
    path_links_.resize(flows_.size() * stride_);
    path_at_.resize(flows_.size() * stride_);
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Flow& flow = flows_[slot];
  const uint32_t generation = flow.generation;
  flow = Flow{};
  flow.generation = generation;
  flow.tag = start.tag;
  flow.sequence = sequence_++;
  flow.bytes = start.bytes;
  flow.weight = start.weight;
  flow.updated_ns = now_ns_;
  flow.alive = true;
  ++active_;
  ++effort_.events;
  if (start.bytes > 0 && !path.empty()) {
    flow.remaining = NanoBytes{start.bytes} * kNanoBytesPerByte;
    attach(slot, path);
    mark_dirty(slot);
  } else {
    flow.end_ns = now_ns_;
  }
  heap_push(slot);
  return {slot, generation};
}

NanoBytes FlowNetwork::cancel(FlowId id) {
  Flow& flow = flow_of(id);
  settle(flow);
  const NanoBytes moved =
      flow.links == 0 ? 0 : NanoBytes{flow.bytes} * kNanoBytesPerByte - flow.remaining;
  detach(id.slot, 0);
  release(id.slot);
  return moved;
}

void FlowNetwork::reroute(FlowId id, std::span<const int32_t> path) {
  Flow& flow = flow_of(id);
  PRONY_CHECK(!path.empty() && flow.links > 0, "a flow without links has no path to change");
  settle(flow);
  detach(id.slot, 0);
  attach(id.slot, path);
  mark_dirty(id.slot);
  schedule(id.slot);
  ++effort_.events;
}

void FlowNetwork::set_weight(FlowId id, uint32_t weight) {
  PRONY_CHECK(weight >= 1 && weight <= kFlowWeightMax);
  Flow& flow = flow_of(id);
  if (flow.weight == weight) return;
  flow.weight = weight;
  if (flow.links > 0) mark_dirty(id.slot);
  ++effort_.events;
}

void FlowNetwork::set_capacity(int32_t id, int64_t bytes_per_s) {
  PRONY_CHECK(bytes_per_s >= 0);
  LinkState& link = links_[static_cast<size_t>(id)];
  if (link.capacity == bytes_per_s) return;
  link.capacity = bytes_per_s;
  touch(id);
  ++effort_.events;
}

int64_t FlowNetwork::next_end_ns() {
  solve();
  return heap_.empty() ? kNeverNs : flows_[heap_.front()].end_ns;
}

void FlowNetwork::advance_to(int64_t ns, std::vector<FlowEnd>& ended) {
  PRONY_CHECK(ns >= now_ns_ && ns <= next_end_ns(), "the clock would pass the end of a flow");
  now_ns_ = ns;
  while (!heap_.empty() && flows_[heap_.front()].end_ns == ns && ns != kNeverNs) {
    const uint32_t slot = heap_.front();
    Flow& flow = flows_[slot];
    const NanoBytes overshoot = NanoBytes{flow.rate} * (ns - flow.updated_ns) - flow.remaining;
    settle(flow);
    detach(slot, flow.rate == 0 ? 0 : overshoot);
    ended.push_back({{slot, flow.generation}, flow.tag, ns});
    release(slot);
  }
}

int64_t FlowNetwork::rate_bytes_per_s(FlowId id) {
  solve();
  return flow_of(id).rate;
}

NanoBytes FlowNetwork::remaining(FlowId id) const {
  const Flow& flow = flow_of(id);
  const NanoBytes moved = NanoBytes{flow.rate} * (now_ns_ - flow.updated_ns);
  return flow.remaining - std::min(moved, flow.remaining);
}

uint64_t FlowNetwork::tag(FlowId id) const {
  return flow_of(id).tag;
}

std::span<const int32_t> FlowNetwork::path(FlowId id) const {
  const auto links = static_cast<size_t>(flow_of(id).links);
  return std::span(path_links_).subspan(id.slot * stride_, links);
}

void FlowNetwork::flows_on(int32_t link, std::vector<FlowId>& out) const {
  for (const LinkFlow& at : links_[static_cast<size_t>(link)].flows) {
    out.push_back({at.slot, flows_[at.slot].generation});
  }
}

NanoBytes FlowNetwork::carried(int32_t id) const {
  const LinkState& link = links_[static_cast<size_t>(id)];
  return link.carried + NanoBytes{link.load} * (now_ns_ - link.updated_ns);
}

int64_t FlowNetwork::load_bytes_per_s(int32_t link) {
  solve();
  return links_[static_cast<size_t>(link)].load;
}

void FlowNetwork::flush_observer() {
  for (const uint32_t slot : heap_) settle(flows_[slot]);
}

bool FlowNetwork::before(uint32_t a, uint32_t b) const {
  const Flow &x = flows_[a], &y = flows_[b];
  return x.end_ns != y.end_ns ? x.end_ns < y.end_ns : x.sequence < y.sequence;
}

void FlowNetwork::heap_push(uint32_t slot) {
  flows_[slot].heap_at = static_cast<int32_t>(heap_.size());
  heap_.push_back(slot);
  heap_up(heap_.size() - 1);
}

void FlowNetwork::heap_remove(uint32_t slot) {
  const auto at = static_cast<size_t>(flows_[slot].heap_at);
  const uint32_t last = heap_.back();
  heap_.pop_back();
  flows_[slot].heap_at = -1;
  if (last == slot) return;
  heap_[at] = last;
  flows_[last].heap_at = static_cast<int32_t>(at);
  heap_up(at);
  heap_down(static_cast<size_t>(flows_[last].heap_at));
}

void FlowNetwork::heap_up(size_t at) {
  const uint32_t slot = heap_[at];
  while (at > 0 && before(slot, heap_[(at - 1) / 2])) {
    heap_[at] = heap_[(at - 1) / 2];
    flows_[heap_[at]].heap_at = static_cast<int32_t>(at);
    at = (at - 1) / 2;
  }
  heap_[at] = slot;
  flows_[slot].heap_at = static_cast<int32_t>(at);
}

void FlowNetwork::heap_down(size_t at) {
  const uint32_t slot = heap_[at];
  for (size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], slot)) break;
    heap_[at] = heap_[child];
    flows_[heap_[at]].heap_at = static_cast<int32_t>(at);
    at = child;
  }
  heap_[at] = slot;
  flows_[slot].heap_at = static_cast<int32_t>(at);
}

}  // namespace prony::sim
