#include "prony/sim/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "prony/core/check.hpp"

namespace prony::sim {
namespace {

const char* kind_name(VertexKind kind) {
  switch (kind) {
    case VertexKind::kDevice:
      return "device";
    case VertexKind::kLinkSwitch:
      return "link switch";
    case VertexKind::kPcieSwitch:
      return "pcie switch";
    case VertexKind::kHostBridge:
      return "host bridge";
    case VertexKind::kNic:
      return "nic";
    case VertexKind::kLeaf:
      return "leaf";
    case VertexKind::kSpine:
      return "spine";
  }
  return "vertex";
}

// Compressed rows: the links of each vertex by one of their ends.
void index_links(const std::vector<Link>& links, size_t vertices, int32_t Link::*end,
                 std::vector<int32_t>& first, std::vector<int32_t>& ids) {
  first.assign(vertices + 1, 0);
  for (const Link& link : links) ++first[static_cast<size_t>(link.*end) + 1];
  for (size_t v = 0; v < vertices; ++v) first[v + 1] += first[v];
  ids.resize(links.size());
  std::vector<int32_t> next(first.begin(), first.end() - 1);
  for (size_t id = 0; id < links.size(); ++id) {
    int32_t& slot = next[static_cast<size_t>(links[id].*end)];
    ids[static_cast<size_t>(slot++)] = static_cast<int32_t>(id);
  }
}

}  // namespace

int32_t Grid::coordinate(int32_t device, size_t dimension) const {
  for (size_t d = 0; d < dimension; ++d) device /= extents[d];
  return device % extents[dimension];
}

int32_t Grid::neighbour(int32_t device, size_t dimension, int32_t direction) const {
  int32_t stride = 1;
  for (size_t d = 0; d < dimension; ++d) stride *= extents[d];
  const int32_t extent = extents[dimension];
  const int32_t at = coordinate(device, dimension);
  int32_t to = at + direction;
  if (to < 0 || to >= extent) {
    if (!wraps[dimension]) return -1;
    to = (to + extent) % extent;
  }
  return device + (to - at) * stride;
}

int32_t Grid::distance(int32_t from, int32_t to) const {
  int32_t sum = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    const int32_t apart = std::abs(coordinate(from, d) - coordinate(to, d));
    sum += wraps[d] ? std::min(apart, extents[d] - apart) : apart;
  }
  return sum;
}

std::span<const int32_t> Topology::links_from(int32_t vertex) const {
  const auto v = static_cast<size_t>(vertex);
  const auto first = static_cast<size_t>(out_first_[v]);
  return std::span(out_links_).subspan(first, static_cast<size_t>(out_first_[v + 1]) - first);
}

std::span<const int32_t> Topology::links_to(int32_t vertex) const {
  const auto v = static_cast<size_t>(vertex);
  const auto first = static_cast<size_t>(in_first_[v]);
  return std::span(in_links_).subspan(first, static_cast<size_t>(in_first_[v + 1]) - first);
}

int32_t Topology::find_link(int32_t from, int32_t to) const {
  for (const int32_t id : links_from(from)) {
    if (link(id).to == to) return id;
  }
  return -1;
}

std::string Topology::vertex_name(int32_t id) const {
  return fmt::format("{} {}", kind_name(vertex(id).kind), vertex(id).ordinal);
}

std::string Topology::link_name(int32_t id) const {
  return vertex_name(link(id).from) + " -> " + vertex_name(link(id).to);
}

void Topology::set_up(int32_t link, bool up) {
  const auto id = static_cast<size_t>(link);
  if (links_[id].up == up) return;
  links_[id].up = links_[id ^ 1].up = up;
  ++version_;
}

void Topology::set_vertex_up(int32_t vertex, bool up) {
  for (const int32_t id : links_from(vertex)) set_up(id, up);
}

void Topology::set_bandwidth(int32_t link, int64_t bytes_per_s) {
  PRONY_CHECK(bytes_per_s > 0);
  links_[static_cast<size_t>(link)].bandwidth_bytes_per_s = bytes_per_s;
  ++version_;
}

int64_t Topology::capacity(int32_t id) const {
  return link(id).up ? link(id).bandwidth_bytes_per_s : 0;
}

int32_t TopologyBuilder::add_vertex(VertexKind kind, int32_t node) {
  Topology& t = topology_;
  const int32_t id = t.vertex_count();
  if (kind == VertexKind::kDevice) {
    PRONY_CHECK(t.device_count_ == id, "devices come before switches");
    ++t.device_count_;
  }
  t.vertices_.push_back({kind, node, of_kind_[static_cast<size_t>(kind)]++});
  t.node_count_ = std::max(t.node_count_, node + 1);
  return id;
}

void TopologyBuilder::connect(int32_t a, int32_t b, LinkKind kind, LinkRate rate) {
  PRONY_CHECK(rate.bandwidth_bytes_per_s > 0 && rate.latency_ns >= 0);
  PRONY_CHECK(a != b && a < topology_.vertex_count() && b < topology_.vertex_count());
  topology_.links_.push_back({a, b, kind, true, rate.bandwidth_bytes_per_s, rate.latency_ns});
  topology_.links_.push_back({b, a, kind, true, rate.bandwidth_bytes_per_s, rate.latency_ns});
}

Topology TopologyBuilder::build() && {
  Topology& t = topology_;
  index_links(t.links_, t.vertices_.size(), &Link::from, t.out_first_, t.out_links_);
  index_links(t.links_, t.vertices_.size(), &Link::to, t.in_first_, t.in_links_);
  return std::move(t);
}

}  // namespace prony::sim
