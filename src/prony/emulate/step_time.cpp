#include "prony/emulate/step_time.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"
#include "prony/core/rng.hpp"

namespace prony::emulate {
namespace {

/// Contexts at which decodes are computed: every number to 16, then 16 of each doubling.
constexpr int64_t kPerOctave = 16;

struct GridPlace {
  size_t index = 0;     // of the entry at or below
  double fraction = 0;  // towards the next
};

GridPlace place_of(double context) {
  if (context < kPerOctave) {
    const double floor = std::floor(context);
    return {static_cast<size_t>(floor), context - floor};
  }
  const auto whole = static_cast<uint64_t>(context);
  const auto octave =
      static_cast<int>(std::bit_width(whole) - std::bit_width(uint64_t{kPerOctave}));
  const double scaled = context / static_cast<double>(uint64_t{1} << octave);
  const double floor = std::floor(scaled);
  return {static_cast<size_t>(octave) * kPerOctave + static_cast<size_t>(floor), scaled - floor};
}

int64_t context_at(size_t index) {
  if (index < 2 * kPerOctave) return static_cast<int64_t>(index);
  const size_t octave = index / kPerOctave - 1;
  return static_cast<int64_t>((index - octave * kPerOctave) << octave);
}

core::Nanos to_ns(double seconds) {
  return static_cast<core::Nanos>(seconds * core::kNanosPerSecond + 0.5);
}

}  // namespace

Result<std::unique_ptr<ModelStepTime>> ModelStepTime::create(
    const perfmodel::Deployment& deployment) {
  if (auto possible = perfmodel::check_deployment(deployment); !possible) return possible.error();
  if (deployment.parallel.pp > 1) {
    return invalid_argument("--pp: found stages, expected 1: they are not stepped yet");
  }
  if (deployment.parallel.dp > 1) {
    return invalid_argument("--dp: found groups, expected 1: each has a scheduler of its own");
  }
  if (deployment.speculation.draft_tokens > 0) {
    return invalid_argument("--draft-tokens: found some, expected 0: steps emit one token a row");
  }
  return std::unique_ptr<ModelStepTime>(new ModelStepTime(deployment));
}

core::Nanos ModelStepTime::step_ns(const StepLoad& load) {
  if (load.rows() == 0) return 0;
  if (!load.prefills.empty() || load.samples != load.decodes) return to_ns(direct_s(load));
  return to_ns(decode_s(load.decodes,
                        static_cast<double>(load.decode_keys) / static_cast<double>(load.decodes)));
}

double ModelStepTime::decode_s(int64_t rows, double context) {
  const auto [index, fraction] = place_of(context);
  const double low = decode_at(rows, index);
  return fraction > 0 ? low + fraction * (decode_at(rows, index + 1) - low) : low;
}

double ModelStepTime::decode_at(int64_t rows, size_t grid) {
  const auto row = static_cast<size_t>(rows);
  if (row >= decode_s_.size()) decode_s_.resize(row + 1);
  auto& known = decode_s_[row];
  if (grid >= known.size()) known.resize(grid + 2, -1.0);
  if (known[grid] < 0) {
    shape_.clear();
    shape_.add({.context = context_at(grid), .new_tokens = 1, .samples = true}, rows);
    known[grid] = coster_.seconds(shape_);
  }
  return known[grid];
}

double ModelStepTime::direct_s(const StepLoad& load) {
  shape_.clear();
  int64_t samples = load.samples;
  if (load.decodes > 0) {
    // Two groups whose contexts differ by one have the sum exactly.
    const int64_t context = load.decode_keys / load.decodes;
    const int64_t longer = load.decode_keys % load.decodes;
    const auto add = [&](int64_t its_context, int64_t count) {
      const int64_t sampling = std::min(samples, count);
      samples -= sampling;
      if (sampling > 0) shape_.add({its_context, 1, true}, sampling);
      if (count > sampling) shape_.add({its_context, 1, false}, count - sampling);
    };
    if (longer > 0) add(context + 1, longer);
    add(context, load.decodes - longer);
  }
  for (const StepLoad::Prefill& prefill : load.prefills) {
    shape_.add({prefill.context, prefill.new_tokens, samples > 0});
    samples -= samples > 0 ? 1 : 0;
  }
  return coster_.seconds(shape_);
}

StepNoise::StepNoise(double cv, uint64_t seed) : seed_(seed) {
  PRONY_CHECK(cv >= 0 && cv < 10, "coefficient of variation of steps");
  sigma_ = core::math::sqrt(core::math::log(1 + cv * cv));
}

core::Nanos StepNoise::apply(core::Nanos duration_ns, uint64_t step) const {
  if (sigma_ == 0) return duration_ns;
  core::Rng rng(seed_, step);
  const double factor = core::math::exp(sigma_ * rng.normal() - sigma_ * sigma_ / 2);
  return static_cast<core::Nanos>(static_cast<double>(duration_ns) * factor + 0.5);
}

}  // namespace prony::emulate
