// Histogram: counts of non-negative integers with bounded relative error, for live progress and for
// samples too many to keep. The unit belongs to the variable that holds it (`ttft_ns`), never here.
// Buckets are log-linear: exact below 2^p, then 2^p equal buckets a power of two, so a value v is
// reported as some r with 0 <= r - v <= v * 2^-p (p = precision_bits): late, never early.
// Source: the bucket layout of HdrHistogram, G. Tene, http://hdrhistogram.org.
// Thread safety: none; keep one a thread and merge() after the run.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::stats {

class Histogram {
 public:
  struct Options {
    uint64_t value_max = 3'600'000'000'000;  // largest trackable value: 1 h if the unit is ns
    int precision_bits = 10;                 // p in [1, 14]; 10 bounds the error by 0.098 %
  };
  /// Allocates (1 + max(0, bit_width(value_max) - p)) * 2^p counters of 8 bytes, once.
  /// Error: kInvalidArgument if p is out of range or value_max is 0.
  static Result<Histogram> create(const Options& options);

  /// Adds `times` equal samples. O(1); never allocates, never fails. A value above value_max goes
  /// to overflow(), because dropping it would flatter the tail.
  void record(uint64_t value, uint64_t times = 1) noexcept;

  /// Adds the counts of `other`. Requires equal Options (checked). The order does not matter.
  void merge(const Histogram& other);

  /// The least reported r with at least `rank` samples <= r; rank in [1, count()] (checked).
  /// nullopt if that rank lies in overflow(): no number beats a wrong one.
  std::optional<uint64_t> value_at_rank(uint64_t rank) const;

  /// Nearest rank: value_at_rank(max(1, ceil(q * count()))); q in [0, 1] (checked). nullopt if
  /// empty or if that rank lies in overflow().
  std::optional<uint64_t> quantile(double q) const;

  /// Samples whose bucket ends at or below the bucket end of `value`: count of samples <= r(value).
  uint64_t count_at_or_below(uint64_t value) const;

  uint64_t count() const noexcept { return count_; }  // includes overflow()
  uint64_t overflow() const noexcept { return overflow_; }
  const Options& options() const noexcept { return options_; }
  void clear() noexcept;

  /// What a recorded `value` is reported as: the largest value of its bucket.
  uint64_t reported(uint64_t value) const noexcept;

 private:
  explicit Histogram(const Options& options);
  size_t bucket_of(uint64_t value) const noexcept;
  uint64_t bucket_end(size_t bucket) const noexcept;

  Options options_;
  std::vector<uint64_t> buckets_;  // [octave][sub-bucket], length as in create()
  uint64_t count_ = 0, overflow_ = 0;
};

}  // namespace prony::stats
