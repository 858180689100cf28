// The latencies of a run as an HdrHistogram interval log, which wrk2's, jHiccup's and
// HdrHistogram's own tools read, plot and merge. One line an interval and latency, tagged ttft,
// tpot, itl, e2e, ttft_intended, e2e_intended; values in ns, Interval_Max in ms; a request's values
// stand in the interval in which it ended. The record's own population, so merging a tag's lines
// gives the n of the record and its percentiles within 0.1 %. Source: the log format 1.3 and the V2
// compressed encoding of HdrHistogram (G. Tene, http://hdrhistogram.org), three significant digits;
// ZigZag LEB128 counts; RFC 1950 and 1951, with stored blocks, since the counts are already short.
// Thread safety: pure functions; HdrCounts none.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"
#include "prony/record/row_source.hpp"
#include "prony/report/figures.hpp"

namespace prony::report {

/// Counts in HdrHistogram's buckets: 2^11 values to the ns, then 2^10 buckets a power of two.
class HdrCounts {
 public:
  /// The largest value that the histogram is declared for: a day in ns. Larger ones count as it.
  static constexpr uint64_t kHighest = 86'400'000'000'000;
  void record(uint64_t value_ns);
  bool empty() const { return counts_.empty(); }
  uint64_t max_ns() const { return max_ns_; }
  /// "HISTFAAAA...": the histogram as it stands in a log.
  std::string encoded() const;

 private:
  std::map<uint32_t, uint64_t> counts_;  // by index in HdrHistogram's array
  uint64_t max_ns_ = 0;
};

/// A zlib stream that holds `bytes` as they are.
std::string zlib_stored(std::string_view bytes);

/// `realtime_offset_ns`: CLOCK_REALTIME - CLOCK_MONOTONIC, which makes the stamps of rows instants
/// of the calendar. Error: kEnvironment.
Result<void> write_hdr_log(const std::string& path, const record::RowSource& rows,
                           const Population& population, core::Nanos realtime_offset_ns);

}  // namespace prony::report
