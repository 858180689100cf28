#include "prony/load/meters.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace prony::load {
namespace {

stats::Histogram make_lag_histogram() {
  // 0.8 % steps are plenty for a lag; ten minutes is longer than any that leaves a run usable.
  auto made = stats::Histogram::create(
      {.value_max = 600 * static_cast<uint64_t>(core::kNanosPerSecond), .precision_bits = 7});
  return std::move(made).value();
}

}  // namespace

LoopMeters::LoopMeters() : read_lag_ns(make_lag_histogram()), issue_lag_ns(make_lag_histogram()) {}

void LiveHistogram::add(core::Nanos value_ns) {
  const auto us = static_cast<uint64_t>(std::max<core::Nanos>(value_ns, 0)) / 1000;
  size_t bucket = static_cast<size_t>(us);  // exact below 16
  if (us >= 16) {
    const auto octave = static_cast<size_t>(std::bit_width(us)) - 5;
    bucket = (octave + 1) * 16 + ((us >> octave) & 15);
  }
  auto& counter = buckets_[std::min(bucket, kBuckets - 1)];
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void LoopMeters::reset() {
  read_lag_ns.clear();
  issue_lag_ns.clear();
  token_events = merged_events = unstamped_events = stamp_faults = late_messages = 0;
  live.reset();
}

void LiveCounters::reset() {
  for (auto* counter : {&sent, &in_flight, &completed, &failed, &tokens, &waiting}) {
    counter->store(0, std::memory_order_relaxed);
  }
  ttft.reset();
}

void LiveHistogram::reset() {
  for (auto& bucket : buckets_) bucket.store(0, std::memory_order_relaxed);
}

void LiveHistogram::add_to(Counts& sum) const {
  for (size_t i = 0; i < kBuckets; ++i) sum[i] += buckets_[i].load(std::memory_order_relaxed);
}

std::optional<double> LiveHistogram::quantile_ms(const Counts& counts, double q) {
  uint64_t total = 0;
  for (const auto count : counts) total += count;
  if (total == 0) return std::nullopt;
  const auto rank =
      std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(q * static_cast<double>(total))));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += counts[i];
    if (seen < rank) continue;
    if (i < 16) return static_cast<double>(i) / 1000;
    const size_t octave = i / 16 - 1;
    return static_cast<double>((16 + i % 16) << octave) / 1000;
  }
  return std::nullopt;
}

}  // namespace prony::load
