// Turns: how the requests of conversations fare as their history grows, a line for each turn: the
// table of the page for runs with sessions (experiment E46, multi-turn growth). By the definitions
// of record/row_metrics.hpp; of the record's own population. Thread safety: none.
#pragma once
#include <cstdint>
#include <map>

#include "prony/record/latency_collector.hpp"
#include "prony/record/request_row.hpp"

namespace prony::report {

class Turns {
 public:
  static constexpr int32_t kTurnsMax = 64;  // later ones are one line

  struct Line {
    int64_t attempted = 0, failed = 0;
    double input_tokens_mean = 0, output_tokens_mean = 0;  // of completed requests
    record::LatencyStats ttft_ms, tpot_ms, e2e_ms;
  };

  /// Rows without a turn are none of them.
  void add(const record::RequestRow& row);
  /// By turn, from 0; the last may stand for all from kTurnsMax - 1 on. Empty where no row has one.
  std::map<int32_t, Line> finish();

 private:
  struct Sums {
    Sums();
    int64_t attempted = 0, completed = 0;
    double input = 0, output = 0;
    record::LatencyCollector ttft, tpot, e2e;
  };
  std::map<int32_t, Sums> sums_;
};

}  // namespace prony::report
