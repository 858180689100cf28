#include "prony/perfmodel/prompt_queue.hpp"

#include <algorithm>
#include <cmath>

#include "prony/core/math.hpp"

namespace prony::perfmodel {
namespace {

constexpr double kBusyMax = 0.95;  // more is saturation, where no mean holds
constexpr int kChainSteps = 8, kMeanSteps = 5;
constexpr int kHalvings = 30;
using core::math::exp;
using core::math::log;
using core::math::sqrt;

double square(double x) {
  return x * x;
}

// Calls f(k, P(k)) for a Poisson number of that mean; what is beyond the last k counts to it.
template <class Each>
void poisson(double mean, Each f) {
  double term = exp(-mean), rest = 1;
  for (size_t k = 0; k + 1 < kTogether; ++k) {
    f(k, term);
    rest -= term;
    term *= mean / static_cast<double>(k + 1);
  }
  f(kTogether - 1, std::max(rest, 0.0));
}

double length(const PromptQueue& queue, size_t prompts) {
  const double jump = prompts > 0 ? queue.jump_s : 0;
  return queue.plain_s + jump + static_cast<double>(prompts) * queue.each_s;
}

// Of the rest of the step met, the step of the own prompt and what arrived with it.
double gated_quantile(const PromptQueue& queue, double p) {
  struct Part {
    double weight, from, width;  // uniform between from and from + width
  };
  std::array<Part, kTogether * kTogether> parts{};
  size_t count = 0;
  const auto share = prompts_in_steps(queue);
  double mean = 0;
  for (size_t k = 0; k < kTogether; ++k) mean += share[k] * length(queue, k);
  for (size_t k = 0; k < kTogether; ++k) {
    const double met = share[k] * length(queue, k) / mean;  // longer steps are met more often
    poisson(queue.rate * length(queue, k), [&](size_t others, double probability) {
      const double own = queue.own_s + static_cast<double>(others) * queue.each_s;
      parts[count++] = {queue.running * met * probability, own, length(queue, k)};
    });
  }
  const double idle = 1 - queue.running;
  double low = 0, high = queue.own_s + 2 * length(queue, kTogether);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    double below = middle >= queue.own_s ? idle : 0;
    for (const Part& part : parts) {
      below += part.weight * std::clamp((middle - part.from) / part.width, 0.0, 1.0);
    }
    (below < p ? low : high) = middle;
  }
  return high;
}

}  // namespace

PromptQueue prompt_queue(ServingSteps& steps, double request_rate, double batch,
                         double most_together) {
  PromptQueue q;
  const ServingSteps::Prompt prompt = steps.prompt(std::max(batch, 1.0));
  q.rate = request_rate / steps.groups();
  q.plain_s = steps.decode(batch);
  q.own_s = prompt.own_s > 0 ? prompt.own_s : q.plain_s;
  q.running = 1 - exp(-(batch + q.rate * q.own_s));
  if (prompt.own_s > 0) {  // nothing beside it where nothing runs
    q.own_s = q.running * q.own_s + (1 - q.running) * steps.prompt(0).own_s;
  }
  if (prompt.own_s <= 0) {  // cached prompts join the next step
    q.wait_s = q.running * q.plain_s / 2;
    q.gated = true;
    return q;
  }
  q.gated = most_together >= 2;
  if (q.gated) {
    q.each_s = std::min(prompt.more_s, prompt.stolen_s);
    q.jump_s = prompt.stolen_s - q.each_s;
    q.busy = std::min(q.rate * q.each_s, kBusyMax);
    double mean = q.plain_s, any = 0;
    for (int i = 0; i < kMeanSteps; ++i) {
      any = 1 - exp(-q.rate * mean);
      mean = (q.plain_s + any * q.jump_s) / (1 - q.busy);
    }
    const double variance =
        (square(q.each_s) * q.rate * mean + square(q.jump_s) * any * (1 - any)) /
        (1 - square(q.busy));
    q.stolen_s = q.rate > 0 ? (mean - q.plain_s) / (q.rate * mean) : prompt.stolen_s;
    const double met = mean + variance / mean;  // mean length of the step that an arrival meets
    q.wait_s = q.running * met / 2;
    q.together_s = q.running * q.rate * met * q.each_s;
    q.left = q.rate * (q.own_s + q.together_s);
    return q;
  }
  q.stolen_s = prompt.stolen_s;
  q.each_s = prompt.stolen_s / std::max(1.0, prompt.steps);
  q.busy = std::min(q.rate * q.own_s, kBusyMax);
  q.wait_s = q.busy * q.own_s / (2 * (1 - q.busy)) + q.running * q.plain_s / 2;
  q.left = q.busy + square(q.busy) / (2 * (1 - q.busy));
  return q;
}

std::array<double, kTogether> prompts_in_steps(const PromptQueue& queue) {
  std::array<double, kTogether> share{1};
  for (int i = 0; i < kChainSteps; ++i) {
    std::array<double, kTogether> next{};
    for (size_t k = 0; k < kTogether; ++k) {
      poisson(queue.rate * length(queue, k),
              [&](size_t j, double probability) { next[j] += share[k] * probability; });
    }
    share = next;
  }
  return share;
}

double first_token_quantile(const PromptQueue& queue, double p) {
  if (queue.gated) return gated_quantile(queue, p);
  // The wait of M/D/1 with an exponential tail of its mean, the rest of a step uniform; deviations
  // of independent parts joined as squares.
  const double mean = queue.busy * queue.own_s / (2 * (1 - queue.busy));
  const double waits = queue.busy;
  const double tail = waits <= 1 - p ? 0 : mean / waits * log(waits / (1 - p));
  const double half = queue.running * queue.plain_s / 2;
  const double rest = queue.running > 1 - p ? (1 - (1 - p) / queue.running) * queue.plain_s : 0;
  return queue.first_s() +
         sqrt(square(std::max(0.0, tail - mean)) + square(std::max(0.0, rest - half)));
}

}  // namespace prony::perfmodel
