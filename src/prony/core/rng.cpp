#include "prony/core/rng.hpp"

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"

namespace prony::core {
namespace {

// Multipliers and Weyl increments of Philox4x32 (Salmon et al. 2011, section 4.3 and table 2).
constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

uint32_t low(uint64_t x) {
  return static_cast<uint32_t>(x);
}
uint32_t high(uint64_t x) {
  return static_cast<uint32_t>(x >> 32);
}

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * c[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * c[2];
    c = {high(product1) ^ c[1] ^ key[0], low(product1), high(product0) ^ c[3] ^ key[1],
         low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return c;
}

Rng::Rng(uint64_t seed, uint64_t stream)
    : key_{low(seed), high(seed)}, counter_{0, 0, low(stream), high(stream)} {}

uint32_t Rng::next_u32() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_[static_cast<size_t>(used_++)];
}

uint64_t Rng::next_u64() {
  const uint64_t first = next_u32();
  return first << 32 | next_u32();
}

double Rng::uniform() {
  return static_cast<double>(next_u64() >> 11) * 0x1p-53;
}

double Rng::uniform_open() {
  return (static_cast<double>(next_u64() >> 12) + 0.5) * 0x1p-52;
}

uint64_t Rng::below(uint64_t bound) {
  PRONY_CHECK(bound > 0);
  // 128-bit multiply, rejecting the few products that would favour some results.
  __extension__ using Wide = unsigned __int128;
  while (true) {
    const Wide product = static_cast<Wide>(next_u64()) * bound;
    const auto fraction = static_cast<uint64_t>(product);
    if (fraction >= bound || fraction >= (0 - bound) % bound) {
      return static_cast<uint64_t>(product >> 64);
    }
  }
}

double Rng::normal() {
  return inverse_normal_cdf(uniform_open());
}

double Rng::exponential() {
  return -math::log(uniform_open());
}

double Rng::gamma(double shape) {
  PRONY_CHECK(shape > 0);
  if (shape < 1) {
    const double boost = math::exp(math::log(uniform_open()) / shape);
    return gamma(shape + 1) * boost;
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / math::sqrt(9.0 * d);
  while (true) {
    const double x = normal();
    const double base = 1.0 + c * x;
    if (base <= 0) continue;
    const double v = base * base * base;
    const double u = uniform_open();
    if (math::log(u) < 0.5 * x * x + d - d * v + d * math::log(v)) return d * v;
  }
}

}  // namespace prony::core
