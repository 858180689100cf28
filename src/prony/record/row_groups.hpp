// RowGroups: requests apart by a number that their rows carry, with the latencies of each group:
// the turns of conversations (what a growing context costs) and the stages of a load (what more of
// it costs). Two passes over the rows, as Latencies in summary.cpp: the gaps of one stream hang
// together. Memory: bounded a group, at most kGroupsMax of them; all later ones are the last entry.
// Thread safety: none.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "prony/record/latency_collector.hpp"
#include "prony/record/metrics.hpp"
#include "prony/record/request_row.hpp"

namespace prony::record {

inline constexpr int32_t kGroupsMax = 64;

class RowGroups {
 public:
  using Key = std::optional<int32_t> RequestRow::*;
  explicit RowGroups(Key key) : key_(key) {}

  /// Of the population; rows without the number are ignored.
  void add(const RequestRow& row);
  /// Ends the first pass.
  void close();
  /// The same rows again.
  void add_gaps(const RequestRow& row);
  /// By number; empty where no row has one. Starts are counted from `begin_ns`, the window's.
  template <class Stats>  // TurnStats, StageStats
  std::vector<Stats> finish(core::Nanos begin_ns) const {
    std::vector<Stats> out;
    for (const auto& [number, group] : groups_) {
      Stats stats;
      stats.number() = number;
      finish_group(group, begin_ns, stats);
      out.push_back(stats);
    }
    return out;
  }

 private:
  struct Group {
    int64_t attempted = 0, completed = 0, input_tokens = 0;
    double output_tokens = 0;
    core::Nanos first_ns = 0, last_ns = 0;  // intended starts
    LatencyCollector ttft_ms, tpot_ms, e2e_ms, itl_ms;
    Group();
  };
  static void finish_group(const Group& group, core::Nanos begin_ns, GroupStats& stats);
  int32_t entry_of(const RequestRow& row) const;
  Key key_;
  std::map<int32_t, Group> groups_;
  std::vector<double> gaps_;  // of one row
};

}  // namespace prony::record
