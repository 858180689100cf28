#include "prony/sim/router.hpp"

#include <fmt/format.h>

#include <array>

namespace prony::sim {
namespace {

constexpr std::array<std::string_view, 6> kNames{
    "round-robin", "least-outstanding", "power-of-two", "least-tokens", "session", "prefix"};
constexpr uint64_t kStream = 0x726f757465;  // of the random draws
/// A prefix leaves its home for a replica with this many requests fewer.
constexpr int64_t kHomeSlack = 8;

bool fewer_live(const ReplicaView& a, const ReplicaView& b) {
  return a.live < b.live;
}

}  // namespace

Result<RouterKind> parse_router(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<RouterKind>(i);
  }
  return invalid_argument(fmt::format(
      "--router: found '{}', expected round-robin, least-outstanding, power-of-two, least-tokens, "
      "session or prefix",
      name));
}

std::string_view router_name(RouterKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

Router::Router(RouterKind kind, uint64_t seed) : kind_(kind), rng_(seed, kStream) {}

template <class Less>
int32_t Router::best(std::span<const ReplicaView> replicas, const Less& less) {
  int32_t found = -1;
  for (size_t i = 0; i < replicas.size(); ++i) {
    if (!replicas[i].up) continue;
    if (found < 0 || less(replicas[i], replicas[static_cast<size_t>(found)])) {
      found = static_cast<int32_t>(i);
    }
  }
  return found;
}

int32_t Router::choose(std::span<const ReplicaView> replicas, int64_t session, int64_t prefix) {
  const auto count = replicas.size();
  const auto next_up = [&]() -> int32_t {
    for (size_t tried = 0; tried < count; ++tried) {
      const size_t i = next_++ % count;
      if (replicas[i].up) return static_cast<int32_t>(i);
    }
    return -1;
  };
  switch (kind_) {
    case RouterKind::kRoundRobin:
      return next_up();
    case RouterKind::kLeastOutstanding:
      return best(replicas, fewer_live);
    case RouterKind::kLeastTokens:
      return best(replicas,
                  [](const auto& a, const auto& b) { return a.pending_tokens < b.pending_tokens; });
    case RouterKind::kPowerOfTwo: {
      const auto a = rng_.below(count), b = rng_.below(count);
      if (!replicas[a].up || !replicas[b].up) return best(replicas, fewer_live);
      return static_cast<int32_t>(fewer_live(replicas[b], replicas[a]) ? b : a);
    }
    case RouterKind::kSession:
    case RouterKind::kPrefix:
      break;
  }
  const int64_t key = kind_ == RouterKind::kSession ? session : prefix;
  const int32_t least = best(replicas, fewer_live);
  if (key < 0 || least < 0) return least;
  const auto [home, fresh] = homes_.emplace(key, least);
  const ReplicaView& at_home = replicas[static_cast<size_t>(home->second)];
  const bool crowded = kind_ == RouterKind::kPrefix &&
                       at_home.live > replicas[static_cast<size_t>(least)].live + kHomeSlack;
  if (!at_home.up || crowded) home->second = least;
  return home->second;
}

}  // namespace prony::sim
