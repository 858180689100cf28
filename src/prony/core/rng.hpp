// Rng: counter-based random numbers (Philox4x32-10) and our own samplers, so that equal seeds give
// equal numbers on every machine and compiler; std::*_distribution is banned for that reason.
// A stream is named by (seed, stream): two streams never overlap, so each use takes a stream of its
// own (arrivals, lengths, prompt of request i, ...) and nothing depends on the order of calls.
// Source: Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
// Thread safety: none; one Rng per thread and use.
#pragma once
#include <array>
#include <cstdint>

namespace prony::core {

/// One Philox4x32-10 block: the pure function of counter and key.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t stream = 0);

  uint32_t next_u32();
  uint64_t next_u64();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Uniform in (0, 1): safe for log().
  double uniform_open();
  /// Uniform integer in [0, bound), unbiased (Lemire 2019). Requires bound > 0.
  uint64_t below(uint64_t bound);
  /// Standard normal by inversion (inverse_normal_cdf), one uniform a draw.
  double normal();
  /// Exponential of mean 1, by inversion.
  double exponential();
  /// Gamma of the given shape and scale 1; mean = variance = shape. Requires shape > 0.
  /// Source: Marsaglia & Tsang, ACM TOMS 26(3), 2000; for shape < 1 their boost U^(1/shape).
  double gamma(double shape);

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;  // words of block_ already given out
};

}  // namespace prony::core
