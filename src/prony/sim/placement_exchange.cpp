// Which two ranks should change places to take load off a full link.
#include <algorithm>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/sim/placement.hpp"

namespace prony::sim {
namespace {

constexpr size_t kMoversMax = 16;

// Seconds of each link's bandwidth that the traffic takes, kept up to date while ranks move.
class LinkLoads {
 public:
  LinkLoads(Routes& routes, const Topology& topology, Placement placement,
            std::span<const PairTraffic> traffic)
      : routes_(routes),
        topology_(topology),
        placement_(std::move(placement)),
        traffic_(traffic),
        seconds_(static_cast<size_t>(topology.link_count()), 0),
        of_(placement_.size()) {
    for (size_t i = 0; i < traffic.size(); ++i) {
      of_[static_cast<size_t>(traffic[i].from)].push_back(i);
      if (traffic[i].to != traffic[i].from) of_[static_cast<size_t>(traffic[i].to)].push_back(i);
      add(traffic[i], 1);
    }
  }
  double of(int32_t link) const { return seconds_[static_cast<size_t>(link)]; }
  double fullest() const { return *std::max_element(seconds_.begin(), seconds_.end()); }
  /// Falls when load moves from a fuller to an emptier link.
  double unevenness() const {
    double sum = 0;
    for (const double s : seconds_) sum += s * s * s * s;
    return sum;
  }
  void exchange(int32_t a, int32_t b) {
    each_pair_of(a, b, -1);
    std::swap(placement_[static_cast<size_t>(a)], placement_[static_cast<size_t>(b)]);
    each_pair_of(a, b, 1);
  }
  /// Bytes that each rank sends over a link.
  std::vector<int64_t> senders(int32_t link) {
    std::vector<int64_t> bytes(placement_.size(), 0);
    for (const PairTraffic& pair : traffic_) {
      route(pair);
      if (std::find(path_.begin(), path_.end(), link) == path_.end()) continue;
      bytes[static_cast<size_t>(pair.from)] += pair.bytes;
    }
    return bytes;
  }

 private:
  void route(const PairTraffic& pair) {
    const int32_t from = placement_[static_cast<size_t>(pair.from)];
    const int32_t to = placement_[static_cast<size_t>(pair.to)];
    // The salt of CollectiveRunner, so that the load is put where its messages go.
    const uint64_t salt = (static_cast<uint64_t>(from) << 32) ^ static_cast<uint64_t>(to);
    if (!routes_.find(from, to, salt, path_)) path_.clear();
  }
  void add(const PairTraffic& pair, int sign) {
    route(pair);
    for (const int32_t id : path_) {
      const auto bandwidth = static_cast<double>(topology_.link(id).bandwidth_bytes_per_s);
      seconds_[static_cast<size_t>(id)] += sign * static_cast<double>(pair.bytes) / bandwidth;
    }
  }
  void each_pair_of(int32_t a, int32_t b, int sign) {
    for (const size_t i : of_[static_cast<size_t>(a)]) add(traffic_[i], sign);
    for (const size_t i : of_[static_cast<size_t>(b)]) {
      if (traffic_[i].from != a && traffic_[i].to != a) add(traffic_[i], sign);
    }
  }

  Routes& routes_;
  const Topology& topology_;
  Placement placement_;
  std::span<const PairTraffic> traffic_;
  std::vector<double> seconds_;          // [link]
  std::vector<std::vector<size_t>> of_;  // [rank], its pairs in traffic_
  std::vector<int32_t> path_;
};

}  // namespace

std::optional<Exchange> best_exchange(Routes& routes, const Topology& topology,
                                      const Placement& placement,
                                      std::span<const PairTraffic> traffic, int32_t link,
                                      double gain) {
  PRONY_CHECK(link >= 0 && link < topology.link_count() && gain >= 0);
  LinkLoads loads(routes, topology, placement, traffic);
  const std::vector<int64_t> bytes = loads.senders(link);
  std::vector<int32_t> movers;
  for (size_t rank = 0; rank < bytes.size(); ++rank) {
    if (bytes[rank] > 0) movers.push_back(static_cast<int32_t>(rank));
  }
  std::stable_sort(movers.begin(), movers.end(), [&bytes](int32_t a, int32_t b) {
    return bytes[static_cast<size_t>(a)] > bytes[static_cast<size_t>(b)];
  });
  if (movers.size() > kMoversMax) movers.resize(kMoversMax);
  Exchange best{.link_before_s = loads.of(link),
                .link_after_s = loads.of(link),
                .fullest_before_s = loads.fullest(),
                .fullest_after_s = loads.fullest()};
  // Adding and taking away leaves rounding: only a clear gain counts.
  double least = loads.unevenness() * (1 - 1e-6);
  for (const int32_t a : movers) {
    for (int32_t b = 0; b < static_cast<int32_t>(placement.size()); ++b) {
      if (a == b) continue;
      loads.exchange(a, b);
      const double uneven = loads.unevenness(), fullest = loads.fullest(), on = loads.of(link);
      loads.exchange(a, b);
      if (uneven >= least || on > best.link_before_s * (1 - gain)) continue;
      if (fullest > best.fullest_before_s * (1 + 1e-9)) continue;
      least = uneven;
      best.a = a;
      best.b = b;
      best.link_after_s = on;
      best.fullest_after_s = fullest;
    }
  }
  if (best.a == best.b) return std::nullopt;
  return best;
}

}  // namespace prony::sim
