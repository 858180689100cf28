// CongestionMap: how full every link was since the last look, and CongestionGuard: when that is
// reason to move a rank. The owner refreshes the map every 10 ms of virtual time.
// The guard has hysteresis, so that it neither follows every burst nor moves to and fro: it asks
// for a move only after `patience` hot looks in a row, never within `rest` looks of the last one,
// and a link counts as hot from `high` until it has been below `low`.
// Thread safety: none.
#pragma once
#include <cstdint>
#include <vector>

#include "prony/sim/flow_network.hpp"

namespace prony::sim {

inline constexpr int64_t kCongestionPeriodNs = 10'000'000;

class CongestionMap {
 public:
  explicit CongestionMap(const FlowNetwork& flows);
  /// Takes what each link carried since the last refresh. Nothing changes if no time has passed.
  void refresh(const FlowNetwork& flows);
  /// Share of the capacity that a link used between the last two refreshes, 0 .. 1; 0 for a link
  /// that is down.
  double utilisation(int32_t link) const { return utilisation_[static_cast<size_t>(link)]; }
  const std::vector<double>& utilisations() const { return utilisation_; }
  /// The fullest link, the first of equals.
  int32_t hottest() const;
  int64_t refreshed_ns() const { return refreshed_ns_; }

 private:
  int64_t refreshed_ns_;
  std::vector<NanoBytes> carried_;
  std::vector<double> utilisation_;
};

struct CongestionGuardOptions {
  double high = 0.9, low = 0.6;  // of the capacity, low < high
  int32_t patience = 3;          // hot looks in a row before a move
  int32_t rest = 10;             // looks after a move in which its effect is awaited
};

class CongestionGuard {
 public:
  explicit CongestionGuard(const CongestionGuardOptions& options) : options_(options) {}
  /// One look: true asks for a move away from `map.hottest()`.
  bool look(const CongestionMap& map);
  /// The owner moved something.
  void moved();
  bool hot() const { return hot_; }

 private:
  CongestionGuardOptions options_;
  bool hot_ = false;
  int32_t hot_looks_ = 0, rest_left_ = 0;
};

}  // namespace prony::sim
