// Routers: which replica a request goes to. Pure functions of what the replicas show at that
// instant and of a draw; signals are never stale here. Thread safety: none, one each run.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/core/rng.hpp"

namespace prony::sim {

enum class RouterKind {
  kRoundRobin,
  kLeastOutstanding,  // fewest requests that wait or run; the lowest number of equals
  kPowerOfTwo,        // the better of two drawn at random
  kLeastTokens,       // fewest tokens promised: prompts and answers of what waits or runs
  kSession,           // a conversation stays where it began; new ones go to the least outstanding
  kPrefix,            // a prefix group stays where it was first, unless that is much busier
};
/// "round-robin", "least-outstanding", "power-of-two", "least-tokens", "session", "prefix".
Result<RouterKind> parse_router(std::string_view name);
std::string_view router_name(RouterKind kind);

struct ReplicaView {
  int64_t live = 0, pending_tokens = 0;
  bool up = true;
};

class Router {
 public:
  Router(RouterKind kind, uint64_t seed);
  /// The replica for a request of this conversation and prefix (-1: none); -1 if none is up.
  int32_t choose(std::span<const ReplicaView> replicas, int64_t session, int64_t prefix);

 private:
  template <class Less>
  static int32_t best(std::span<const ReplicaView> replicas, const Less& less);
  RouterKind kind_;
  core::Rng rng_;
  size_t next_ = 0;
  std::unordered_map<int64_t, int32_t> homes_;  // of conversations or prefixes
};

}  // namespace prony::sim
