// Topology: devices, switches and the links between them as a directed graph with bandwidth and
// latency. The shape is fixed once built; links go down and up and change their bandwidth, each
// change raises version(), by which routes know that they are old.
// Devices are the vertices 0 .. device_count()-1, so a device id is a vertex id. Every cable is two
// directed links, ids 2k and 2k+1. Bandwidths are one-way bytes/s, whole numbers, so that sharing
// them is exact.
// Thread safety: none for changes; const use from any thread.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace prony::sim {

enum class VertexKind : uint8_t {
  kDevice,
  kLinkSwitch,  // NVSwitch: the crossbar of one scale-up domain
  kPcieSwitch,
  kHostBridge,  // root complex of a socket
  kNic,
  kLeaf,
  kSpine,
};
enum class LinkKind : uint8_t { kScaleUp, kPcie, kHost, kNetwork };

/// One direction of a cable.
struct LinkRate {
  int64_t bandwidth_bytes_per_s = 0;
  int64_t latency_ns = 0;
  bool operator==(const LinkRate&) const = default;
};

struct Vertex {
  VertexKind kind = VertexKind::kDevice;
  int32_t node = -1;    // the server it stands in; -1: shared by several
  int32_t ordinal = 0;  // among the vertices of its kind
};

struct Link {
  int32_t from = 0, to = 0;
  LinkKind kind = LinkKind::kScaleUp;
  bool up = true;
  int64_t bandwidth_bytes_per_s = 0;
  int64_t latency_ns = 0;
};

/// Extents of a torus and where it closes; empty extents: the topology is no torus.
struct Grid {
  std::vector<int32_t> extents;  // x first; device id = x + extents[0] (y + extents[1] z)
  std::vector<bool> wraps;       // per dimension
  bool operator==(const Grid&) const = default;

  bool empty() const { return extents.empty(); }
  int32_t coordinate(int32_t device, size_t dimension) const;
  /// The device one step along `dimension` (direction +1 or -1), -1 beyond an open edge.
  int32_t neighbour(int32_t device, size_t dimension, int32_t direction) const;
  /// Fewest links between two devices when all are up.
  int32_t distance(int32_t from, int32_t to) const;
};

class Topology {
 public:
  int32_t device_count() const { return device_count_; }
  int32_t vertex_count() const { return static_cast<int32_t>(vertices_.size()); }
  int32_t link_count() const { return static_cast<int32_t>(links_.size()); }
  /// Servers, 0 where devices stand alone (torus).
  int32_t node_count() const { return node_count_; }
  const Vertex& vertex(int32_t id) const { return vertices_[static_cast<size_t>(id)]; }
  const Link& link(int32_t id) const { return links_[static_cast<size_t>(id)]; }
  std::span<const Link> links() const { return links_; }
  /// Ids of the links that leave a vertex, ascending.
  std::span<const int32_t> links_from(int32_t vertex) const;
  /// Ids of the links that enter a vertex, ascending.
  std::span<const int32_t> links_to(int32_t vertex) const;
  /// The first link between two vertices, -1 if there is none.
  int32_t find_link(int32_t from, int32_t to) const;
  static int32_t reverse(int32_t link) { return link ^ 1; }
  const Grid& grid() const { return grid_; }
  /// "device 5", "leaf 2".
  std::string vertex_name(int32_t id) const;
  /// "device 5 -> leaf 2".
  std::string link_name(int32_t id) const;

  /// Raised by every change of a link.
  uint64_t version() const { return version_; }
  /// Both directions of the cable of `link`.
  void set_up(int32_t link, bool up);
  /// All cables of a vertex, that is the switch or device itself.
  void set_vertex_up(int32_t vertex, bool up);
  /// One direction, e.g. of a cable that trained to fewer lanes. Requires bandwidth > 0 (checked).
  void set_bandwidth(int32_t link, int64_t bytes_per_s);
  /// What the link carries now: 0 when down.
  int64_t capacity(int32_t link) const;

 private:
  friend class TopologyBuilder;
  int32_t device_count_ = 0, node_count_ = 0;
  uint64_t version_ = 1;
  std::vector<Vertex> vertices_;
  std::vector<Link> links_;
  std::vector<int32_t> out_first_, out_links_;  // links_from(v): out_links_[out_first_[v] ...]
  std::vector<int32_t> in_first_, in_links_;
  Grid grid_;
};

/// Collects vertices and cables. Devices come first (checked).
class TopologyBuilder {
 public:
  int32_t add_device(int32_t node) { return add_vertex(VertexKind::kDevice, node); }
  int32_t add_vertex(VertexKind kind, int32_t node);
  /// A cable with the same rate each way. Requires bandwidth > 0 and latency >= 0 (checked).
  void connect(int32_t a, int32_t b, LinkKind kind, LinkRate rate);
  void set_grid(Grid grid) { topology_.grid_ = std::move(grid); }
  Topology build() &&;

 private:
  Topology topology_;
  std::array<int32_t, 7> of_kind_{};  // vertices so far, by VertexKind
};

}  // namespace prony::sim
