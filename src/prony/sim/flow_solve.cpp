// The max-min solution of FlowNetwork, kept up to date.
// The flows that an event can change are the region. It starts with the flows that are new or
// changed, is solved by progressive filling in what the flows outside leave, and grows where the
// condition of max-min fairness is then broken on a link that the region touches:
//   a flow outside whose bottleneck has room again, or on whose bottleneck a flow of the region
//   now has more; a flow outside that has more than the region's flows on their bottleneck.
// When nothing is broken every flow has a saturated link on which nobody has more, which is the
// definition, and the solution is unique.
#include <algorithm>

#include "prony/sim/flow_network.hpp"

namespace prony::sim {
namespace {

// Rates are rounded down, so equal shares differ by some bytes/s: less is not a difference.
bool clearly_above(double a, double b) {
  return a > b * (1 + 1e-9) + 4;
}

// Room that rounding down leaves on a link that is full: less than 1 byte/s a flow.
int64_t rounding_room(size_t flows) {
  return static_cast<int64_t>(flows) + 1;
}

}  // namespace

void FlowNetwork::touch(int32_t id) {
  LinkState& link = links_[static_cast<size_t>(id)];
  if (link.touched) return;
  link.touched = true;
  touched_.push_back(id);
}

void FlowNetwork::add_to_region(uint32_t slot) {
  Flow& flow = flows_[slot];
  if (flow.in_region) return;
  flow.in_region = true;
  region_.push_back(slot);
  for (const int32_t id : links_of(slot)) {
    LinkState& link = links_[static_cast<size_t>(id)];
    if (!link.touched) {
      touch(id);
      link.fixed = link.load;
      link.fixed_held = link.held;
    }
    link.fixed -= flow.rate;
    link.region_weight += flow.weight;
    ++link.region_flows;
    if (flow.bottleneck == id) --link.fixed_held;
  }
}

void FlowNetwork::solve() {
  if (touched_.empty() && dirty_flows_.empty()) return;
  ++effort_.solutions;
  for (const int32_t id : touched_) {
    LinkState& link = links_[static_cast<size_t>(id)];
    link.fixed = link.load;
    link.fixed_held = link.held;
    link.rest = link.capacity - link.load;
    link.next_held = 0;
    link.level_max = 0;
  }
  for (const uint32_t slot : dirty_flows_) {
    if (!flows_[slot].dirty) continue;  // ended before it was ever solved
    flows_[slot].dirty = false;
    add_to_region(slot);
  }
  dirty_flows_.clear();
  if (!region_.empty()) fill_region();
  while (grow_region()) fill_region();
  commit();
}

// Adds what the present trial breaks. True if anything was added.
bool FlowNetwork::grow_region() {
  const size_t before = region_.size();
  const size_t touched = touched_.size();
  for (size_t t = 0; t < touched; ++t) {
    const int32_t id = touched_[t];
    const LinkState& link = links_[static_cast<size_t>(id)];
    const auto inside = static_cast<size_t>(link.region_flows);
    if (inside == link.flows.size()) continue;
    const bool over = link.rest < 0;  // its capacity fell
    const bool idle = link.rest > rounding_room(link.flows.size());
    const bool passed = clearly_above(link.level_max, link.level);
    const bool frees = link.fixed_held > 0 && (idle || passed);
    const bool binds = link.next_held > 0;
    if (!over && !frees && !binds) continue;
    for (size_t f = 0; f < link.flows.size(); ++f) {
      const uint32_t slot = link.flows[f].slot;
      const Flow& flow = flows_[slot];
      if (flow.in_region) continue;
      if (over || (frees && flow.bottleneck == id) ||
          (binds && clearly_above(flow.level, link.next_level))) {
        add_to_region(slot);
      }
    }
  }
  return region_.size() != before;
}

// Progressive filling of the region's flows in what the others leave. Shares are compared as
// fractions, exactly: rounding must not fill a link beyond its capacity.
void FlowNetwork::fill_region() {
  const auto later = [](const Share& a, const Share& b) {
    const NanoBytes left = NanoBytes{a.rest} * b.weights, right = NanoBytes{b.rest} * a.weights;
    return left != right ? left > right : a.link > b.link;
  };
  shares_.clear();
  for (const int32_t id : touched_) {
    LinkState& link = links_[static_cast<size_t>(id)];
    link.rest = link.capacity - link.fixed;
    link.weights = link.region_weight;
    link.next_held = 0;
    link.level_max = 0;
    if (link.weights > 0) shares_.push_back({std::max<int64_t>(link.rest, 0), link.weights, id});
  }
  for (const uint32_t slot : region_) flows_[slot].frozen = false;
  effort_.flows_solved += region_.size();
  std::make_heap(shares_.begin(), shares_.end(), later);
  while (!shares_.empty()) {
    std::pop_heap(shares_.begin(), shares_.end(), later);
    const Share share = shares_.back();
    shares_.pop_back();
    const LinkState& link = links_[static_cast<size_t>(share.link)];
    if (link.weights == 0) continue;
    const Share now = {std::max<int64_t>(link.rest, 0), link.weights, share.link};
    if (later(now, share)) {  // the share only ever grows: look again when it is its turn
      shares_.push_back(now);
      std::push_heap(shares_.begin(), shares_.end(), later);
      continue;
    }
    freeze_at(share.link);
  }
}

void FlowNetwork::freeze_at(int32_t id) {
  LinkState& link = links_[static_cast<size_t>(id)];
  const int64_t rest = std::max<int64_t>(link.rest, 0), weights = link.weights;
  const int64_t whole = rest / weights, part = rest % weights;
  const double level = static_cast<double>(rest) / static_cast<double>(weights);
  link.next_level = level;
  for (size_t f = 0; f < link.flows.size(); ++f) {
    const uint32_t slot = link.flows[f].slot;
    Flow& flow = flows_[slot];
    if (!flow.in_region || flow.frozen) continue;
    flow.frozen = true;
    // floor(weight x rest / weights) without overflow: part < weights.
    const auto extra = NanoBytes{flow.weight} * part / weights;
    flow.next_rate = flow.weight * whole + static_cast<int64_t>(extra);
    flow.next_level = level;
    flow.next_bottleneck = id;
    ++link.next_held;
    for (const int32_t other : links_of(slot)) {
      LinkState& on = links_[static_cast<size_t>(other)];
      on.rest -= flow.next_rate;
      on.weights -= flow.weight;
      on.level_max = std::max(on.level_max, level);
    }
  }
}

void FlowNetwork::commit() {
  for (const int32_t id : touched_) {
    LinkState& link = links_[static_cast<size_t>(id)];
    settle(link);
    link.load = link.region_flows > 0 ? link.capacity - link.rest : link.fixed;
    // The least of those that are held here: a flow must not fall behind by many small steps.
    if (link.next_held > 0) {
      link.level = link.fixed_held > 0 ? std::min(link.level, link.next_level) : link.next_level;
    }
    link.held = link.fixed_held + link.next_held;
    link.region_flows = link.next_held = 0;
    link.region_weight = 0;
    link.touched = false;
  }
  touched_.clear();
  for (const uint32_t slot : region_) {
    Flow& flow = flows_[slot];
    flow.in_region = false;
    flow.level = flow.next_level;
    flow.bottleneck = flow.next_bottleneck;
    if (flow.rate == flow.next_rate) continue;
    settle(flow);
    flow.rate = flow.next_rate;
    schedule(slot);
  }
  region_.clear();
}

}  // namespace prony::sim
