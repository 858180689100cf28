// HeatMap: bytes that each device sent, by time: the picture of an all-to-all (rank x time). Exact:
// cells sum to what was sent. Bounded: when time runs past the last bucket, buckets are joined in
// pairs and become twice as wide.
// Thread safety: none.
#pragma once
#include <cstdint>
#include <vector>

#include "prony/sim/network.hpp"

namespace prony::sim {

struct HeatMapOptions {
  int32_t devices = 0;
  int64_t bucket_ns = 50'000'000;  // 50 ms at first
  int32_t buckets = 256;           // at most; even
};

class HeatMap : public TrafficObserver {
 public:
  /// Requires devices >= 1, bucket_ns >= 1, an even number of buckets >= 2 (checked).
  explicit HeatMap(const HeatMapOptions& options);
  void on_traffic(int32_t from, int32_t to, int64_t from_ns, int64_t to_ns, int64_t bytes_per_s,
                  NanoBytes moved) override;

  int64_t bucket_ns() const { return bucket_ns_; }
  /// Buckets up to the last that has traffic.
  int32_t bucket_count() const { return used_; }
  int32_t devices() const { return devices_; }
  NanoBytes sent(int32_t device, int32_t bucket) const;
  /// Whole bytes, rounded down.
  int64_t sent_bytes(int32_t device, int32_t bucket) const;

 private:
  void widen();
  size_t cell(int32_t device, int64_t bucket) const {
    return static_cast<size_t>(device) * static_cast<size_t>(buckets_) +
           static_cast<size_t>(bucket);
  }
  int32_t devices_, buckets_, used_ = 0;
  int64_t bucket_ns_;
  std::vector<NanoBytes> cells_;  // [device, bucket]
};

}  // namespace prony::sim
