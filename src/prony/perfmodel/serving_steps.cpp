#include "prony/perfmodel/serving_steps.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace prony::perfmodel {
namespace {

constexpr int kExactBits = 5;  // below 2^5 rows every number has an entry

// Doublings above the exact ones; spacing is 2^level.
int level_of(int64_t count) {
  return std::max(0, static_cast<int>(std::bit_width(static_cast<uint64_t>(count))) - kExactBits);
}

// f at a fractional number of rows, from its neighbours that have entries.
template <class Value, class At, class Mix>
Value between(double count, At at, Mix mix) {
  const int64_t whole = static_cast<int64_t>(count);
  const int level = level_of(whole);
  const int64_t low = (whole >> level) << level;
  const double part = (count - static_cast<double>(low)) / static_cast<double>(int64_t{1} << level);
  const Value first = at(low);
  if (part < 1e-9) return first;
  return mix(first, at(low + (int64_t{1} << level)), part);
}

double mixed(double a, double b, double part) {
  return a + part * (b - a);
}

}  // namespace

ServingSteps::ServingSteps(const Deployment& deployment)
    : coster_(deployment), groups_(deployment.parallel.dp * deployment.parallel.pp) {}

void ServingSteps::set(int64_t input_tokens, int64_t output_tokens, int64_t step_tokens) {
  if (input_tokens == input_ && output_tokens == output_ && step_tokens == step_tokens_) return;
  input_ = input_tokens;
  output_ = output_tokens;
  step_tokens_ = step_tokens;
  known_.clear();
}

ServingSteps::Known& ServingSteps::known(int64_t count) {
  const int level = level_of(count);
  const auto index = static_cast<size_t>((int64_t{level} << (kExactBits - 1)) + (count >> level));
  if (index >= known_.size()) known_.resize(index + 1);
  return known_[index];
}

// A sequence is on average half way through its output.
void ServingSteps::add_decodes(int64_t count) {
  const int64_t context = input_ + output_ / 2;
  const int32_t draft = deployment().speculation.draft_tokens;
  shape_.add({.context = context, .new_tokens = 1 + draft}, count);
}

double ServingSteps::decode_rows(int64_t count) {
  double& remembered = known(count).decode;
  if (remembered >= 0) return remembered;
  shape_.clear();
  add_decodes(count);
  double seconds = coster_.seconds(shape_);
  const Speculation& speculation = deployment().speculation;
  if (speculation.draft_tokens > 0) {
    shape_.clear();
    shape_.add({.context = input_ + output_ / 2, .new_tokens = 1}, count);
    seconds += speculation.draft_tokens * speculation.draft_cost * coster_.seconds(shape_);
  }
  return remembered = seconds;
}

double ServingSteps::decode(double batch) {
  return between<double>(
      rows(batch), [this](int64_t count) { return decode_rows(count); }, mixed);
}

ServingSteps::Prompt ServingSteps::computed_prompt(int64_t decodes) {
  if (input_ == 0) return {};
  const int64_t budget = std::max<int64_t>(1, step_tokens_ - decodes);
  Prompt out;
  for (int64_t done = 0; done < input_; done += budget) {
    const int64_t chunk = std::min(budget, input_ - done);
    shape_.clear();
    shape_.add({.context = done, .new_tokens = chunk, .samples = done + chunk == input_});
    if (decodes > 0) add_decodes(decodes);
    const double seconds = coster_.seconds(shape_);
    out.own_s += seconds;
    out.longest_s = std::max(out.longest_s, seconds);
    out.steps += 1;
  }
  out.more_s = out.own_s;
  if (2 * input_ <= budget) {
    shape_.clear();
    shape_.add({.context = 0, .new_tokens = input_}, 2);
    if (decodes > 0) add_decodes(decodes);
    out.more_s = std::max(0.0, coster_.seconds(shape_) - out.own_s);
  }
  out.stolen_s =
      decodes > 0 ? std::max(0.0, out.own_s - decode_rows(decodes) * out.steps) : out.own_s;
  return out;
}

const ServingSteps::Prompt& ServingSteps::prompt_rows(int64_t decodes) {
  if (known(decodes).prompt.own_s < 0) {
    const Prompt computed = computed_prompt(decodes);  // may grow the table
    known(decodes).prompt = computed;
  }
  return known(decodes).prompt;
}

ServingSteps::Prompt ServingSteps::prompt(double batch) {
  // Engines that do not mix stop decoding for a prompt.
  if (!deployment().engine.mixed_steps || batch < 1) return prompt_rows(0);
  return between<Prompt>(
      rows(batch), [this](int64_t count) { return prompt_rows(count); },
      [](const Prompt& a, const Prompt& b, double part) {
        return Prompt{.own_s = mixed(a.own_s, b.own_s, part),
                      .stolen_s = mixed(a.stolen_s, b.stolen_s, part),
                      .more_s = mixed(a.more_s, b.more_s, part),
                      .longest_s = mixed(a.longest_s, b.longest_s, part),
                      .steps = mixed(a.steps, b.steps, part)};
      });
}

double ServingSteps::prompts(double count) {
  const double one = prompt_rows(0).own_s;
  if (input_ == 0 || count <= 1) return one;
  if (input_ >= step_tokens_) return one * count;
  const double most = std::floor(static_cast<double>(step_tokens_) / static_cast<double>(input_));
  const double per_step = std::min(count, most);
  shape_.clear();
  shape_.add({.context = 0, .new_tokens = input_}, static_cast<int64_t>(per_step));
  return coster_.seconds(shape_) * std::ceil(count / per_step);
}

StepCost ServingSteps::decode_cost(double batch) {
  shape_.clear();
  add_decodes(std::max<int64_t>(1, std::llround(rows(batch))));
  return coster_.cost(shape_);
}

StepCost ServingSteps::prompt_cost() {
  if (input_ == 0) return {};
  shape_.clear();
  shape_.add({.context = 0, .new_tokens = std::min(input_, step_tokens_)});
  return coster_.cost(shape_);
}

}  // namespace prony::perfmodel
