// RunData: one run as columns of numbers, for what compare draws and tests over and over. Metrics
// are those of record/row_metrics, by request. Thread safety: a value.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "prony/compare/input.hpp"
#include "prony/core/slo.hpp"
#include "prony/stats/block_bootstrap.hpp"

namespace prony::compare {

/// Values of one latency, those of request i at [begin[i], begin[i + 1]); a failed request has
/// none.
struct Column {
  std::vector<double> values;
  std::vector<size_t> begin = {0};
  std::span<const double> of(size_t request) const {
    return std::span(values).subspan(begin[request], begin[request + 1] - begin[request]);
  }
};

struct RunData {
  // [population], by index.
  std::vector<int64_t> index;
  std::vector<int32_t> input_asked, output_asked;
  std::vector<core::Nanos> since_first_ns;  // of the intended start, from the first one
  std::vector<uint8_t> failed, good;
  std::map<core::SloMetric, Column> latencies;
  // [kBlocksMax] slices of the window; denominator: seconds.
  std::vector<stats::RatioBatch> completions, tokens;
  bool has_events = false;  // rows with --save-detailed, so there are gaps
  double window_s = 0;

  size_t size() const { return index.size(); }
};

/// Requires rows (checked). `latencies`: the ones wanted.
RunData make_run_data(const RunInput& run, const std::set<core::SloMetric>& latencies);

/// The same requests at the same times, as far as the rows can tell. `times`: the digest of the
/// schedule does not vouch for them.
bool same_requests(const RunData& a, const RunData& b, bool times);

}  // namespace prony::compare
