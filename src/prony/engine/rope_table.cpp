#include "prony/engine/rope_table.hpp"

#include <cmath>
#include <numbers>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"

namespace prony::engine {
namespace {

// Wavelengths short against the pre-training context stay, long ones are stretched by `factor`, and
// those between are blended.
double llama3_frequency(const catalog::Rope& rope, double frequency) {
  const double turns =  // of this pair over the pre-training context
      static_cast<double>(rope.original_max_position) * frequency / (2 * std::numbers::pi);
  if (turns > rope.high_freq_factor) return frequency;
  if (turns < rope.low_freq_factor) return frequency / rope.factor;
  const double keep =
      (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - keep) * frequency / rope.factor + keep * frequency;
}

}  // namespace

std::vector<double> rope_frequencies(const catalog::Rope& rope, int32_t head_dim) {
  std::vector<double> frequencies;
  for (int32_t i = 0; i < head_dim / 2; ++i) {
    const double exponent = 2.0 * i / head_dim;
    const double frequency = 1.0 / core::math::pow(rope.theta, exponent);
    switch (rope.type) {
      case catalog::RopeType::kDefault:
        frequencies.push_back(frequency);
        break;
      case catalog::RopeType::kLinear:
        frequencies.push_back(frequency / rope.factor);
        break;
      case catalog::RopeType::kLlama3:
        frequencies.push_back(llama3_frequency(rope, frequency));
        break;
      case catalog::RopeType::kNone:
      case catalog::RopeType::kYarn:
        PRONY_CHECK(false, "rope type that check_supported() refuses");
    }
  }
  return frequencies;
}

RopeTable::RopeTable(const catalog::Rope& rope, int32_t head_dim, int32_t positions,
                     kernels::Arena& arena)
    : half_(head_dim / 2),
      cosine_(arena.take<float>(positions * half_)),
      sine_(arena.take<float>(positions * half_)) {
  if (cosine_ == nullptr) return;
  const std::vector<double> frequencies = rope_frequencies(rope, head_dim);
  for (int64_t position = 0; position < positions; ++position) {
    for (int64_t i = 0; i < half_; ++i) {
      const double angle = static_cast<double>(position) * frequencies[static_cast<size_t>(i)];
      cosine_[position * half_ + i] = static_cast<float>(std::cos(angle));
      sine_[position * half_ + i] = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace prony::engine
