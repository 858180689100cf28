#include "prony/perfmodel/collectives.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "prony/core/math.hpp"

namespace prony::perfmodel {
namespace {

using catalog::HardwareSpec;

constexpr double kHostEfficiency = 0.47;  // transfers through the host cross its memory twice
constexpr double kHostRanks = 4;          // beyond these they also cross between sockets
constexpr double kHostHop = 8e-6;         // one step through host memory [s]
constexpr double kNetworkEfficiency = 0.85;
constexpr double kNetworkHop = 12e-6;
constexpr double kCustomBytesMax = 64.0 * 1024 * 1024;  // above it engines call the library

void take(CollectiveTime& best, double seconds, CollectiveAlgorithm algorithm) {
  if (best.algorithm == CollectiveAlgorithm::kNone || seconds < best.seconds) {
    best = {seconds, algorithm};
  }
}

// Devices that share a node. Bridged pairs and cards without links reach each other through it.
int32_t node_devices(const HardwareSpec& hardware) {
  constexpr int32_t kUsual = 8;
  const bool pairs = hardware.topology == catalog::LinkTopology::kNone ||
                     hardware.topology == catalog::LinkTopology::kBridge;
  return pairs ? kUsual : hardware.link_devices;
}

struct Alpha {
  double base, hop, bandwidth;
};

Alpha library_alpha(const HardwareSpec& hardware, const LinkPath& path, int32_t ranks) {
  if (!path.peer) {
    const double crowd = core::math::sqrt(std::min(1.0, kHostRanks / ranks));
    return {2 * kHostHop, kHostHop, path.bandwidth * kHostEfficiency * crowd};
  }
  return {hardware.link.library_base_s, hardware.link.library_hop_s,
          path.bandwidth * hardware.link.bandwidth};
}

CollectiveTime one_node(const HardwareSpec& hardware, catalog::AllReduceKind kind, int32_t ranks,
                        double bytes) {
  const double n = ranks;
  const LinkPath path = link_path(hardware, ranks);
  const Alpha library = library_alpha(hardware, path, ranks);
  CollectiveTime best;
  // The measured latency of small messages grows by one hop a rank, so 2(n-1) steps cost n hops.
  take(best, library.base + library.hop * n + 2 * (n - 1) / n * bytes / library.bandwidth,
       CollectiveAlgorithm::kRing);
  take(best,
       library.base + 2 * library.hop * std::bit_width(static_cast<uint32_t>(ranks - 1)) +
           2 * bytes / library.bandwidth,
       CollectiveAlgorithm::kTree);
  if (hardware.link.in_switch > 0 && hardware.topology == catalog::LinkTopology::kSwitch &&
      ranks > 4) {
    take(best,
         library.base + library.hop * n +
             2 * (n - 1) / n * bytes / (library.bandwidth * hardware.link.in_switch),
         CollectiveAlgorithm::kInSwitch);
  }
  if (kind == catalog::AllReduceKind::kCustom && path.peer && bytes <= kCustomBytesMax) {
    const double alpha = hardware.link.custom_s + hardware.link.custom_hop_s * n;
    const double bandwidth = path.bandwidth * hardware.link.custom_bandwidth;
    take(best, alpha + (n - 1) * bytes / bandwidth, CollectiveAlgorithm::kOneShot);
    take(best, 1.3 * alpha + 2 * (n - 1) / n * bytes / bandwidth, CollectiveAlgorithm::kTwoShot);
  }
  return best;
}

}  // namespace

const char* algorithm_name(CollectiveAlgorithm algorithm) {
  switch (algorithm) {
    case CollectiveAlgorithm::kNone:
      return "none";
    case CollectiveAlgorithm::kRing:
      return "ring";
    case CollectiveAlgorithm::kTree:
      return "tree";
    case CollectiveAlgorithm::kOneShot:
      return "one-shot";
    case CollectiveAlgorithm::kTwoShot:
      return "two-shot";
    case CollectiveAlgorithm::kInSwitch:
      return "in-switch";
    case CollectiveAlgorithm::kHierarchical:
      return "hierarchical";
  }
  return "unknown";
}

LinkPath link_path(const HardwareSpec& hardware, int32_t ranks) {
  if (hardware.topology == catalog::LinkTopology::kNone || ranks > hardware.link_devices) {
    return {hardware.host_bandwidth, false};
  }
  double bandwidth = hardware.link_bandwidth;
  // In a full mesh every pair has its own link: of the links of a rank only those to the ranks of
  // the group carry traffic.
  if (hardware.topology == catalog::LinkTopology::kMesh && hardware.link_devices > 1) {
    bandwidth *= static_cast<double>(ranks - 1) / (hardware.link_devices - 1);
  }
  return {bandwidth, true};
}

CollectiveTime all_reduce(const HardwareSpec& hardware, catalog::AllReduceKind kind, int32_t ranks,
                          double bytes) {
  if (ranks <= 1) return {};
  const int32_t local = node_devices(hardware);
  if (ranks <= local || hardware.network_bandwidth == 0) {
    return one_node(hardware, kind, ranks, bytes);
  }
  // Reduce-scatter inside the node, all-reduce of the parts between nodes, all-gather inside.
  const double nodes = std::ceil(static_cast<double>(ranks) / local);
  const double inside = 2 * all_gather(hardware, local, bytes).seconds;
  const double between =
      2 * (nodes - 1) * kNetworkHop +
      2 * (nodes - 1) / nodes * bytes / local / (hardware.network_bandwidth * kNetworkEfficiency);
  return {inside + between, CollectiveAlgorithm::kHierarchical};
}

CollectiveTime all_gather(const HardwareSpec& hardware, int32_t ranks, double bytes) {
  if (ranks <= 1) return {};
  const double n = ranks;
  const Alpha alpha = library_alpha(hardware, link_path(hardware, ranks), ranks);
  // Half of the steps of an all-reduce, so half of its hops.
  return {alpha.base + alpha.hop * n / 2 + (n - 1) / n * bytes / alpha.bandwidth,
          CollectiveAlgorithm::kRing};
}

CollectiveTime all_to_all(const HardwareSpec& hardware, int32_t ranks, double bytes) {
  if (ranks <= 1) return {};
  const double n = ranks;
  const int32_t local = node_devices(hardware);
  const Alpha alpha =
      library_alpha(hardware, link_path(hardware, std::min(ranks, local)), std::min(ranks, local));
  double seconds = alpha.base + alpha.hop * std::min(n, static_cast<double>(local)) / 4 +
                   (n - 1) / n * bytes / alpha.bandwidth;
  if (ranks > local && hardware.network_bandwidth > 0) {
    const double outside = (n - local) / n * bytes;
    seconds = std::max(seconds,
                       kNetworkHop + outside / (hardware.network_bandwidth * kNetworkEfficiency));
  }
  return {seconds, CollectiveAlgorithm::kOneShot};
}

CollectiveTime send(const HardwareSpec& hardware, double bytes, bool same_node) {
  if (!same_node && hardware.network_bandwidth > 0) {
    return {kNetworkHop + bytes / (hardware.network_bandwidth * kNetworkEfficiency),
            CollectiveAlgorithm::kOneShot};
  }
  const Alpha alpha = library_alpha(hardware, link_path(hardware, 2), 2);
  if (alpha.bandwidth <= 0) return {kHostHop, CollectiveAlgorithm::kOneShot};
  return {alpha.base + bytes / alpha.bandwidth, CollectiveAlgorithm::kOneShot};
}

}  // namespace prony::perfmodel
