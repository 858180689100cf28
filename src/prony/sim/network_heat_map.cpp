#include "prony/sim/network_heat_map.hpp"

#include <algorithm>

#include "prony/core/check.hpp"

namespace prony::sim {

HeatMap::HeatMap(const HeatMapOptions& options)
    : devices_(options.devices), buckets_(options.buckets), bucket_ns_(options.bucket_ns) {
  PRONY_CHECK(devices_ >= 1 && bucket_ns_ >= 1 && buckets_ >= 2 && buckets_ % 2 == 0);
  cells_.assign(static_cast<size_t>(devices_) * static_cast<size_t>(buckets_), 0);
}

void HeatMap::widen() {
  for (int32_t device = 0; device < devices_; ++device) {
    for (int32_t b = 0; b < buckets_ / 2; ++b) {
      cells_[cell(device, b)] = cells_[cell(device, 2 * b)] + cells_[cell(device, 2 * b + 1)];
    }
    for (int32_t b = buckets_ / 2; b < buckets_; ++b) cells_[cell(device, b)] = 0;
  }
  bucket_ns_ *= 2;
  used_ = (used_ + 1) / 2;
}

void HeatMap::on_traffic(int32_t from, int32_t, int64_t from_ns, int64_t to_ns, int64_t bytes_per_s,
                         NanoBytes moved) {
  if (moved == 0) return;
  while ((to_ns - 1) / bucket_ns_ >= buckets_) widen();
  // The last nanosecond may have moved less than its rate: the last bucket takes what is left.
  for (int64_t at = from_ns; moved > 0 && at < to_ns;) {
    const int64_t bucket = at / bucket_ns_;
    const int64_t end = std::min(to_ns, (bucket + 1) * bucket_ns_);
    const NanoBytes part =
        end == to_ns ? moved : std::min(moved, NanoBytes{bytes_per_s} * (end - at));
    cells_[cell(from, bucket)] += part;
    used_ = std::max(used_, static_cast<int32_t>(bucket) + 1);
    moved -= part;
    at = end;
  }
}

NanoBytes HeatMap::sent(int32_t device, int32_t bucket) const {
  PRONY_CHECK(device >= 0 && device < devices_ && bucket >= 0 && bucket < buckets_);
  return cells_[cell(device, bucket)];
}

int64_t HeatMap::sent_bytes(int32_t device, int32_t bucket) const {
  return static_cast<int64_t>(sent(device, bucket) / kNanoBytesPerByte);
}

}  // namespace prony::sim
