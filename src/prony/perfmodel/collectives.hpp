// Time of collectives: the least of the algorithms that the links and the engine allow, by the
// alpha-beta model. Bandwidths one-way.
// Thread safety: pure functions.
// Source: ring, tree, one-shot, two-shot, in-switch and hierarchical forms as in
// Thakur, Rabenseifner and Gropp 2005, and the custom kernels of serving engines.
#pragma once
#include <cstdint>

#include "prony/catalog/engine_profile.hpp"
#include "prony/catalog/hardware_spec.hpp"

namespace prony::perfmodel {

enum class CollectiveAlgorithm {
  kNone,
  kRing,
  kTree,
  kOneShot,
  kTwoShot,
  kInSwitch,
  kHierarchical,
};
/// "ring", "one-shot", ...
const char* algorithm_name(CollectiveAlgorithm algorithm);

struct CollectiveTime {
  double seconds = 0;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kNone;
};

/// The path between `ranks` ranks of one node: what each can send [bytes/s] and what a message
/// costs before its first byte [s].
struct LinkPath {
  double bandwidth = 0;  // one-way per rank, before the curve's efficiency
  bool peer = false;     // direct links, so that engine kernels can use them
};
LinkPath link_path(const catalog::HardwareSpec& hardware, int32_t ranks);

/// Sum of `bytes` over `ranks`, result everywhere. 0 for one rank.
CollectiveTime all_reduce(const catalog::HardwareSpec& hardware, catalog::AllReduceKind kind,
                          int32_t ranks, double bytes);
/// Every rank ends with all `bytes`, of which it had its share.
CollectiveTime all_gather(const catalog::HardwareSpec& hardware, int32_t ranks, double bytes);
/// Every rank sends `bytes` in equal parts to all, itself included.
CollectiveTime all_to_all(const catalog::HardwareSpec& hardware, int32_t ranks, double bytes);
/// One message to another rank, on the same node or not.
CollectiveTime send(const catalog::HardwareSpec& hardware, double bytes, bool same_node);

}  // namespace prony::perfmodel
