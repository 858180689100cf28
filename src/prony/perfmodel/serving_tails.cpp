#include "prony/perfmodel/serving_tails.hpp"

#include <algorithm>
#include <cmath>

#include "prony/core/math.hpp"
#include "prony/perfmodel/prompt_queue.hpp"
#include "prony/perfmodel/queueing.hpp"

namespace prony::perfmodel {
namespace {

constexpr double kNormalTail = 2.3263478740408408;  // 99th percentile of the normal law
constexpr double kConstantService = 0.5;            // Allen-Cunneen: (1 + 0) / 2
constexpr double kQuietLoad = 0.3;                  // below it no place is ever waited for
constexpr double kRequestsPerClient = 10;           // as ServingLoad::requests says
constexpr double kBusyMax = 0.95;
constexpr double kElasticityMax =
    0.95;  // beyond it the line that the spread is drawn from has no sense
using core::math::exp;
using core::math::sqrt;

double square(double x) {
  return x * x;
}

// Time per token with `batch` running all the time, prompts included.
double tpot_at(ServingSteps& steps, double batch, double output) {
  const double plain = steps.decode(batch) / accepted_tokens(steps.deployment().speculation);
  if (output <= 1) return plain;
  return plain + batch / steps.groups() / (output - 1) * steps.prompt(batch).stolen_s;
}

// Quantile of a gamma law by its mean and variance. Source: Wilson and Hilferty 1931.
double gamma_tail(double mean, double variance) {
  if (!(mean > 0) || !(variance > 0)) return mean;
  const double ninth = variance / (9 * mean * mean);
  const double root = 1 - ninth + kNormalTail * sqrt(ninth);
  return mean * root * root * root;
}

double tpot_tail(ServingSteps& steps, const ServingFacts& facts, const PromptQueue& queue,
                 double output) {
  const double accepted = accepted_tokens(steps.deployment().speculation);
  const double batch = std::max(facts.batch, 1e-9), width = 0.1 * batch;
  const double low = std::max(batch - width, 1e-9), high = batch + width;
  const double rise = (tpot_at(steps, high, output) - tpot_at(steps, low, output)) / (high - low);
  const double back = 1 - std::clamp(rise * batch / facts.tpot_s, 0.0, kElasticityMax);
  const double kept = 2 * (back - 1 + exp(-back)) / square(back);
  const double slope = (steps.decode(high) - steps.decode(low)) / (high - low) / accepted;
  const double of_batch = batch / back * kept * square(slope);

  const double decodes = (output - 1) * steps.decode(batch) / accepted;
  const double stolen = queue.stolen_s;
  const double idle = 1 - std::min(queue.rate * stolen, kBusyMax);
  const double of_left = square(stolen / idle) * queue.left * (1 + queue.left);
  const double of_arrivals =
      queue.rate * square(stolen) * (decodes + queue.left * stolen) / (idle * idle * idle);
  const double of_prompts = (of_arrivals + of_left) / square(output - 1);

  const double least = std::min(steps.decode(1) / accepted, facts.tpot_s);
  return least + gamma_tail(facts.tpot_s - least, of_batch + of_prompts);
}

// Gaps between tokens: those of steps that also compute prompts, or of a pause for them.
void set_itl(ServingSteps& steps, const ServingFacts& facts, PromptQueue queue,
             double most_together, ServingTails& out) {
  // Parts of one prompt follow each other, so they never share a step.
  const ServingSteps::Prompt prompt = steps.prompt(std::max(facts.batch, 1.0));
  queue.rate *= std::max(1.0, prompt.steps);
  const auto share = prompts_in_steps(queue);
  out.gaps_with_prompt = 1 - share[0];
  double sum = share[0];
  size_t together = 0;
  while (sum < kTail && together + 1 < kTogether) sum += share[++together];
  const double met = std::min(static_cast<double>(together), most_together);
  double gap = queue.plain_s + (met > 0 ? queue.jump_s : 0) + met * queue.each_s;
  if (!queue.gated && together > 0) {
    gap = steps.deployment().engine.mixed_steps ? prompt.longest_s : queue.plain_s + prompt.own_s;
  }
  out.itl_s = gap / accepted_tokens(steps.deployment().speculation);
}

void open_loop(ServingSteps& steps, const ServingFacts& facts, double output, double most_together,
               ServingTails& out) {
  const PromptQueue queue =
      prompt_queue(steps, facts.request_throughput, facts.batch, most_together);
  const auto servers = static_cast<int32_t>(std::max(1.0, facts.capacity));
  if (facts.place_s > 0) {
    out.place_s =
        kConstantService * mmc_wait_quantile(facts.request_throughput,
                                             facts.max_request_throughput / servers, servers, kTail)
                               .value_or(0);
  }
  out.fixed_s = *facts.ttft_s - facts.place_s - queue.wait_s - queue.together_s;
  out.prompts_s = first_token_quantile(queue, kTail) - queue.own_s;
  const double mean = queue.first_s() - queue.own_s;
  out.ttft_s = *facts.ttft_s + sqrt(square(std::max(0.0, out.place_s - facts.place_s)) +
                                    square(std::max(0.0, out.prompts_s - mean)));
  set_itl(steps, facts, queue, most_together, out);
  if (output <= 1) {
    out.e2e_s = out.ttft_s;
    return;
  }
  out.tpot_s = std::max(facts.tpot_s, tpot_tail(steps, facts, queue, output));
  const double rest = output - 1;
  out.e2e_s =
      *facts.ttft_s + rest * facts.tpot_s +
      sqrt(square(*out.ttft_s - *facts.ttft_s) + square(rest * (*out.tpot_s - facts.tpot_s)));
}

// Every prompt of the start has its turn; of the whole run they are the slowest.
void closed_loop(ServingSteps& steps, const ServingLoad& load, const ServingFacts& facts,
                 double most_together, ServingTails& out) {
  const double clients = *load.concurrency;
  const double requests = load.requests.value_or(kRequestsPerClient * clients);
  if (clients > 1) {
    const auto queue = prompt_queue(steps, facts.request_throughput, facts.batch, most_together);
    set_itl(steps, facts, queue, most_together, out);
  }
  const double first = requests > 0 ? std::min(1.0, clients / requests) : 0;
  if (first <= 1 - kTail || load.input_tokens == 0) {
    out.reason = "arrivals of a closed loop without a common start have no law here";
    return;
  }
  const double each = clients / steps.groups();
  const double per_step = std::max(1.0, std::min(each, most_together));
  const double turns = std::ceil(each / per_step);
  const double turn = std::ceil(turns * (1 - (1 - kTail) / first));
  out.fixed_s = steps.deployment().engine.request_s;
  out.start_s = std::max(1.0, turn) * steps.prompts(per_step);
  out.ttft_s = std::max(*facts.ttft_s, out.fixed_s + out.start_s);
  out.reason = "TPOT and E2E of a closed loop have no model of their spread";
}

}  // namespace

double place_wait(double request_rate, double max_request_rate, double capacity) {
  const auto servers = static_cast<int32_t>(std::max(1.0, capacity));
  if (!(request_rate > kQuietLoad * max_request_rate)) return 0;
  return kConstantService * mmc_wait(request_rate, max_request_rate / servers, servers).value_or(0);
}

ServingTails serving_tails(ServingSteps& steps, const ServingLoad& load,
                           const ServingFacts& facts) {
  ServingTails out;
  if (!facts.ttft_s) {
    out.reason = facts.reason;
    return out;
  }
  if (load.static_batch) {
    out.reason = "all requests of a static batch take the same time";
    out.ttft_s = facts.ttft_s;
    out.tpot_s = out.itl_s = facts.tpot_s;
    out.e2e_s = *facts.ttft_s + static_cast<double>(load.output_tokens - 1) * facts.tpot_s;
    out.fixed_s = *facts.ttft_s;
    return out;
  }
  const int32_t step_tokens =
      load.max_step_tokens.value_or(steps.deployment().engine.max_step_tokens);
  const double input = static_cast<double>(std::max<int64_t>(1, load.input_tokens));
  const double most_together = std::max(1.0, std::floor(step_tokens / input));
  if (load.request_rate) {
    open_loop(steps, facts, static_cast<double>(load.output_tokens), most_together, out);
  } else {
    closed_loop(steps, load, facts, most_together, out);
  }
  return out;
}

}  // namespace prony::perfmodel
