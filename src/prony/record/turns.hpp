// TurnTable: the latencies of a conversation by its turn, where sessions were sent: what a growing
// context costs. Two passes over the rows, as Latencies in summary.cpp: the gaps of one stream hang
// together. Memory: bounded a turn, at most kTurnsMax of them; all later turns are the last entry.
// Thread safety: none.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "prony/record/latency_collector.hpp"
#include "prony/record/metrics.hpp"
#include "prony/record/request_row.hpp"

namespace prony::record {

inline constexpr int32_t kTurnsMax = 64;

class TurnTable {
 public:
  /// Of the population; rows without a turn are ignored.
  void add(const RequestRow& row);
  /// Ends the first pass.
  void close();
  /// The same rows again.
  void add_groups(const RequestRow& row);
  /// By turn; empty where no row has one.
  std::vector<TurnStats> finish() const;

 private:
  struct Turn {
    int64_t attempted = 0, completed = 0, input_tokens = 0;
    LatencyCollector ttft_ms, tpot_ms, e2e_ms, itl_ms;
    Turn();
  };
  std::map<int32_t, Turn> turns_;
  std::vector<double> gaps_;  // of one row
};

}  // namespace prony::record
