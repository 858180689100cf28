// VllmMetrics: the figures that vLLM's `vllm bench serve` would print for the same run, computed
// from our stamps by its definitions, not ours: TTFT to the first event of any kind, ITL between
// all events, E2E to the finish event, standard deviations with divisor n, rates over the whole
// run, percentiles whatever the number of samples, 0 where there is nothing. Where our stamps
// cannot tell: an event is a role, finish or token event for it; of those without a token we keep
// the first and the end marker, so events without tokens in between are not seen. Source:
// vllm/benchmarks/serve.py (calculate_metrics) and lib/endpoint_request_func.py of
// https://github.com/vllm-project/vllm at commit 009e6d4a.
// Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "prony/core/slo.hpp"
#include "prony/record/latency_collector.hpp"
#include "prony/record/row_source.hpp"
#include "prony/record/summary.hpp"

namespace prony::record {

/// Values with the moments and percentiles that numpy gives for them.
class Distribution {
 public:
  void add(double value) { values_.add(value); }
  /// Ends the collection.
  void finish() {
    values_.close();
    stats_ = values_.finish();
  }
  // 0 without values.
  double mean() const { return stats_.mean.value_or(0); }
  double sd_population() const;  // divisor n
  double min() const { return stats_.min.value_or(0); }
  double max() const { return stats_.max.value_or(0); }
  double percentile(double percent) const { return values_.percentile(percent / 100).value_or(0); }

 private:
  LatencyCollector values_{kExactValuesMax};
  LatencyStats stats_;
};

struct VllmMetrics {
  double duration_s = 0;
  int64_t completed = 0, failed = 0, total_input = 0, total_output = 0;
  double request_throughput = 0, output_throughput = 0, total_token_throughput = 0;
  std::optional<double> request_goodput;  // unset without bounds
  double max_output_tokens_per_s = 0;     // events in the busiest second
  int64_t max_concurrent_requests = 0;
  Distribution ttft_ms, tpot_ms, itl_ms, e2el_ms;
};
VllmMetrics vllm_metrics(const RowSource& rows, const core::RequestSlo& goodput);

// The same of one request, in seconds; 0 and empty for one that failed before its first event.
double vllm_ttft_s(const RequestRow& row);
double vllm_e2el_s(const RequestRow& row);
std::vector<double> vllm_itl_s(const RequestRow& row);
int64_t vllm_output_len(const RequestRow& row);

}  // namespace prony::record
