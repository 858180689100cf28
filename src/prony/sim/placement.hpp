// Placement of ranks on devices: at random, packed by device id, or aware of hops; what share of
// the traffic then stays near; and which exchange of two ranks takes load off a full link.
// All are pure functions of their arguments. Thread safety: as their Routes argument.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "prony/sim/topology.hpp"
#include "prony/sim/topology_routes.hpp"

namespace prony::sim {

/// placement[rank] is a device; no device twice.
using Placement = std::vector<int32_t>;

/// What one rank sends to another in some span of time. Ranks of all groups are numbered through.
struct PairTraffic {
  int32_t from = 0, to = 0;
  int64_t bytes = 0;
};

/// Hops (Routes::hops) between all devices, taken once.
class HopMatrix {
 public:
  /// Requires at most 8192 devices (checked). Unreachable pairs count as 1000 hops.
  explicit HopMatrix(Routes& routes, const Topology& topology);
  int32_t operator()(int32_t a, int32_t b) const {
    return hops_[static_cast<size_t>(a) * devices_ + static_cast<size_t>(b)];
  }
  int32_t devices() const { return static_cast<int32_t>(devices_); }

 private:
  size_t devices_;
  std::vector<int16_t> hops_;
};

/// Requires ranks <= devices (checked), as below.
Placement place_packed(int32_t ranks, int32_t devices);
Placement place_random(int32_t ranks, int32_t devices, uint64_t seed);

/// Groups of `group_sizes` ranks, one after another: each takes a box of a torus, else the free
/// devices that are nearest to one another, and orders its ranks by `traffic` (exchanging two as
/// long as that shortens bytes x hops). Greedy, not optimal.
Placement place_hop_aware(const Topology& topology, const HopMatrix& hops,
                          std::span<const int32_t> group_sizes,
                          std::span<const PairTraffic> traffic);

/// Share of the bytes that travel at most `limit` hops; nullopt without traffic.
std::optional<double> share_within(const HopMatrix& hops, const Placement& placement,
                                   std::span<const PairTraffic> traffic, int32_t limit);
/// Bytes x hops over bytes; nullopt without traffic.
std::optional<double> mean_hops(const HopMatrix& hops, const Placement& placement,
                                std::span<const PairTraffic> traffic);

/// Adds to `out` what the collectives of one group send a round: a ring all-reduce of `bytes`, an
/// all-to-all of `bytes` per rank. Ranks first .. first+size-1.
void add_ring_traffic(int32_t first, int32_t size, int64_t bytes, std::vector<PairTraffic>& out);
void add_all_to_all_traffic(int32_t first, int32_t size, int64_t bytes,
                            std::vector<PairTraffic>& out);

/// Two ranks that change places. Loads are seconds of a link's bandwidth.
struct Exchange {
  int32_t a = 0, b = 0;
  double link_before_s = 0, link_after_s = 0;        // the link that is to be relieved
  double fullest_before_s = 0, fullest_after_s = 0;  // the fullest of all
};

/// The exchange of a rank whose messages cross `link` with any other that takes at least the share
/// `gain` of its load from the link, makes no link fuller than the fullest, and spreads the load
/// best (least sum of fourth powers, which must fall: under constant traffic exchanges come to an
/// end). By the routes that collectives take; looks at the 16 ranks that send most over the link.
/// nullopt if there is none.
std::optional<Exchange> best_exchange(Routes& routes, const Topology& topology,
                                      const Placement& placement,
                                      std::span<const PairTraffic> traffic, int32_t link,
                                      double gain);

}  // namespace prony::sim
