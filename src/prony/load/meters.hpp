// LoopMeters: what one event loop measures about itself while it loads a server: how late its reads
// were, how many events the kernel merged, how late it sent. LiveCounters is the small part that
// the progress line reads from another thread.
// Thread safety: LoopMeters loop thread only (read after the run); LiveCounters one writer, any
// reader.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "prony/core/clock.hpp"
#include "prony/stats/histogram.hpp"

namespace prony::load {

/// Counts of a latency for display: 16 buckets a power of two of microseconds (6 % steps), up to
/// 2^32 us. One writer, so the counters need no read-modify-write.
class LiveHistogram {
 public:
  void add(core::Nanos value_ns);
  void reset();
  /// Adds the counts to `sum` (of kBuckets).
  static constexpr size_t kBuckets = 33 * 16;
  using Counts = std::array<uint64_t, kBuckets>;
  void add_to(Counts& sum) const;
  /// Nearest-rank quantile [ms] of summed counts, nullopt if empty.
  static std::optional<double> quantile_ms(const Counts& counts, double q);

 private:
  std::array<std::atomic<uint32_t>, kBuckets> buckets_{};
};

struct LiveCounters {
  std::atomic<int64_t> sent{0}, in_flight{0}, completed{0}, failed{0}, tokens{0}, waiting{0};
  LiveHistogram ttft;

  void reset();
  /// Single-writer add.
  static void bump(std::atomic<int64_t>& counter, int64_t by = 1) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
};

struct LoopMeters {
  LoopMeters();
  void reset();
  stats::Histogram read_lag_ns;   // user - kernel stamp of each token-bearing event
  stats::Histogram issue_lag_ns;  // first byte sent - the instant this request was free to go
  int64_t token_events = 0;
  int64_t merged_events = 0;     // stamp is an upper bound: a later write shared the read
  int64_t unstamped_events = 0;  // no kernel stamp: the user stamp stands in
  int64_t stamp_faults = 0;      // kernel stamp before the send or before its predecessor
  int64_t late_messages = 0;     // requests that were not built ahead of time
  LiveCounters live;
};

}  // namespace prony::load
