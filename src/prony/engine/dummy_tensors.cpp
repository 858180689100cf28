#include "prony/engine/dummy_tensors.hpp"

#include "prony/core/hash.hpp"
#include "prony/core/math.hpp"
#include "prony/core/rng.hpp"

namespace prony::engine {
namespace {

struct Law {
  float center = 0;
  float width = 0;  // of the interval
};

Law law_of(const TensorRows& tensor) {
  if (tensor.name.ends_with("norm.weight")) return {1.0f, 0.4f};
  if (tensor.name.ends_with(".bias")) return {0.0f, 0.4f};
  // A uniform variable on an interval of width w has standard deviation w / sqrt(12).
  const double deviation = 1.0 / core::math::sqrt(static_cast<double>(tensor.columns));
  return {0.0f, static_cast<float>(deviation * core::math::sqrt(12.0))};
}

}  // namespace

Result<void> DummyTensors::read(const TensorRows& wanted, float* out) const {
  const uint64_t stream = core::fnv1a(wanted.name);  // each tensor has its own
  const Law law = law_of(wanted);
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed_),
                                       static_cast<uint32_t>(seed_ >> 32)};
  // A block of four words gives eight elements of 16 bits: enough levels for weights that are going
  // to be bf16, and half the time to load a large model.
  constexpr uint64_t kPerBlock = 8;
  const auto begin = static_cast<uint64_t>(wanted.first * wanted.columns);
  const auto end = begin + static_cast<uint64_t>(wanted.count * wanted.columns);
  for (uint64_t at = begin; at < end;) {
    const uint64_t block = at / kPerBlock;
    const std::array<uint32_t, 4> words =
        core::philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                          static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
                         key);
    for (; at < end && at / kPerBlock == block; ++at) {
      const uint64_t half = at % kPerBlock;
      const uint32_t bits = words[half / 2] >> (half % 2 * 16) & 0xFFFF;
      const float uniform = (static_cast<float>(bits) + 0.5f) * 0x1p-16f - 0.5f;
      *out++ = law.center + law.width * uniform;
    }
  }
  return {};
}

}  // namespace prony::engine
