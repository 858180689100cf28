#include "prony/stats/histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "prony/core/check.hpp"
#include "prony/stats/quantile.hpp"

namespace prony::stats {
namespace {

// std::bit_width as an int: libstdc++ 12 still returns the type of its argument.
int bit_width(uint64_t value) {
  return 64 - std::countl_zero(value);
}

}  // namespace

Result<Histogram> Histogram::create(const Options& options) {
  if (options.precision_bits < 1 || options.precision_bits > 14) {
    return invalid_argument(fmt::format("histogram precision_bits: found {}, expected 1 to 14",
                                        options.precision_bits));
  }
  if (options.value_max == 0) {
    return invalid_argument("histogram value_max: found 0, expected at least 1");
  }
  return Histogram(options);
}

Histogram::Histogram(const Options& options) : options_(options) {
  const int octaves = std::max(0, bit_width(options.value_max) - options.precision_bits);
  buckets_.resize(static_cast<size_t>(1 + octaves) << options.precision_bits);
}

size_t Histogram::bucket_of(uint64_t value) const noexcept {
  const int p = options_.precision_bits;
  const int shift = std::max(0, bit_width(value) - 1 - p);
  // The first 2^p buckets are exact; octave k >= 1 holds [2^(p+k-1), 2^(p+k)) in steps of 2^(k-1).
  // value >> shift is in [2^p, 2^(p+1)) there, so its own top bit moves it past the exact ones.
  return (static_cast<size_t>(shift) << p) + static_cast<size_t>(value >> shift);
}

uint64_t Histogram::bucket_end(size_t bucket) const noexcept {
  const int p = options_.precision_bits;
  const uint64_t size = uint64_t{1} << p;
  if (bucket < 2 * size) return bucket;
  const auto shift = static_cast<int>(bucket >> p) - 1;
  const uint64_t mantissa = size + (bucket & (size - 1));
  return (mantissa << shift) + ((uint64_t{1} << shift) - 1);
}

void Histogram::record(uint64_t value, uint64_t times) noexcept {
  count_ += times;
  if (value > options_.value_max) {
    overflow_ += times;
  } else {
    buckets_[bucket_of(value)] += times;
  }
}

void Histogram::merge(const Histogram& other) {
  PRONY_CHECK(options_.value_max == other.options_.value_max &&
                  options_.precision_bits == other.options_.precision_bits,
              "histograms of different options cannot be merged");
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  overflow_ += other.overflow_;
}

std::optional<uint64_t> Histogram::value_at_rank(uint64_t rank) const {
  PRONY_CHECK(rank >= 1 && rank <= count_, "rank outside the samples");
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank) return bucket_end(i);
  }
  return std::nullopt;
}

std::optional<uint64_t> Histogram::quantile(double q) const {
  PRONY_CHECK(q >= 0 && q <= 1, "quantile outside [0, 1]");
  if (count_ == 0) return std::nullopt;
  return value_at_rank(static_cast<uint64_t>(nearest_rank(q, static_cast<int64_t>(count_))));
}

uint64_t Histogram::count_at_or_below(uint64_t value) const {
  if (value > options_.value_max) return count_ - overflow_;
  const size_t last = bucket_of(value);
  uint64_t seen = 0;
  for (size_t i = 0; i <= last; ++i) seen += buckets_[i];
  return seen;
}

void Histogram::clear() noexcept {
  std::fill(buckets_.begin(), buckets_.end(), 0);
  count_ = overflow_ = 0;
}

uint64_t Histogram::reported(uint64_t value) const noexcept {
  return bucket_end(bucket_of(value));
}

}  // namespace prony::stats
