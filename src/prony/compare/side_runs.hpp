// SideRuns: changes between two sides of which at least one has several runs: what differs from run
// to run is then in the interval, and needs no assumption about the requests of one.
// Thread safety: immutable.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "prony/compare/run_pair.hpp"

namespace prony::compare {

/// Of its record; empty if it has none.
std::string schedule_digest(const RunInput& run);

class SideRuns {
 public:
  /// The sides must outlive it.
  SideRuns(const SideInput& baseline, const SideInput& candidate);
  /// Every run has a partner on the other side with its schedule, and no two of a side share one.
  bool paired() const { return paired_; }
  MetricChange change(const core::SloTerm& term) const;

 private:
  std::vector<std::pair<const RunInput*, const RunInput*>> partners_;  // if paired_
  const SideInput &baseline_, &candidate_;
  bool paired_ = false;
};

}  // namespace prony::compare
