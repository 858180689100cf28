#include "prony/engine/rope_table.hpp"

#include <algorithm>
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

// Growth of attention's magnitude with the stretched context, section 3.4 there.
double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * core::math::log(factor) + 1;
}

// The pair that turns `turns` times over the pre-training context.
double yarn_pair(const catalog::Rope& rope, int32_t head_dim, double turns) {
  return head_dim * core::math::log(rope.original_max_position / (turns * 2 * std::numbers::pi)) /
         (2 * core::math::log(rope.theta));
}

// Share of the interpolated frequency in pair i: 0 for fast pairs, 1 for slow ones.
double yarn_interpolated(const catalog::Rope& rope, int32_t head_dim, int32_t i) {
  double low = yarn_pair(rope, head_dim, rope.beta_fast);
  double high = yarn_pair(rope, head_dim, rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(head_dim - 1));
  if (low == high) high += 0.001;  // as transformers does, against a division by zero
  return std::clamp((i - low) / (high - low), 0.0, 1.0);
}

}  // namespace

double rope_amplitude(const catalog::Rope& rope) {
  if (rope.type != catalog::RopeType::kYarn) return 1;
  if (rope.attention_factor) return *rope.attention_factor;
  if (rope.mscale > 0 && rope.mscale_all_dim > 0) {
    return yarn_mscale(rope.factor, rope.mscale) / yarn_mscale(rope.factor, rope.mscale_all_dim);
  }
  return yarn_mscale(rope.factor, 1);
}

double rope_softmax_factor(const catalog::Rope& rope) {
  if (rope.type != catalog::RopeType::kYarn || rope.mscale_all_dim == 0) return 1;
  const double mscale = yarn_mscale(rope.factor, rope.mscale_all_dim);
  return mscale * mscale;
}

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
      case catalog::RopeType::kYarn: {
        const double share = yarn_interpolated(rope, head_dim, i);
        frequencies.push_back(share * frequency / rope.factor + (1 - share) * frequency);
        break;
      }
      case catalog::RopeType::kNone:
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
  const double amplitude = rope_amplitude(rope);
  for (int64_t position = 0; position < positions; ++position) {
    for (int64_t i = 0; i < half_; ++i) {
      const double angle = static_cast<double>(position) * frequencies[static_cast<size_t>(i)];
      cosine_[position * half_ + i] = static_cast<float>(amplitude * std::cos(angle));
      sine_[position * half_ + i] = static_cast<float>(amplitude * std::sin(angle));
    }
  }
}

}  // namespace prony::engine
