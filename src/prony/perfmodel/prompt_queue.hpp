// PromptQueue: how prompts that arrive at random get their turn in a loop of steps.
//   Gated: several fit into a step, and all that arrived during one are computed in the next.
//     With k prompts it lasts T' = plain + jump (if k > 0) + k s, k Poisson of mean rate T, so
//     E T = (plain + P(k > 0) jump)/(1 - u) and
//     Var T = (s^2 rate E T + jump^2 P(k > 0) P(k = 0))/(1 - u^2), u = rate s.
//     An arrival waits for the rest of a step that is longer the more it is met. The jump is what
//     any prompt costs, such as launches without a graph.
//   Else one or less fits: M/D/1, first come, first served.
// A request that has its first token leaves other prompts behind; they will delay its decoding.
// Thread safety: pure functions.
// Source: own derivation (a gated queue of one class), Pollaczek-Khinchine; compared with a loop of
// all steps in serving_tails_test.cpp.
#pragma once
#include <array>

#include "prony/perfmodel/serving_steps.hpp"

namespace prony::perfmodel {

inline constexpr size_t kTogether = 9;  // prompts in one step: 0 to 8 or more

struct PromptQueue {
  bool gated = false;     // several prompts share a step
  double rate = 0;        // arrivals a second
  double plain_s = 0;     // a step without a prompt
  double jump_s = 0;      // what the first prompt adds to a step, beyond each_s
  double each_s = 0;      // what one more prompt adds to a step
  double stolen_s = 0;    // what a prompt takes from the decodes, on average
  double own_s = 0;       // the steps of one prompt, decodes beside it included
  double busy = 0;        // of the time, computing prompts
  double running = 0;     // probability that an arrival finds a step under way
  double wait_s = 0;      // mean, from arrival to the begin of the prompt's own steps
  double together_s = 0;  // mean, what others add to the prompt's own steps
  double left = 0;        // mean number of prompts that wait when its own is done
  double first_s() const { return wait_s + own_s + together_s; }
};

/// `batch` decodes run on average; `most_together` prompts fit into the budget of a step.
PromptQueue prompt_queue(ServingSteps& steps, double request_rate, double batch,
                         double most_together);

/// Share of the steps with 0, 1, ... prompts in them.
std::array<double, kTogether> prompts_in_steps(const PromptQueue& queue);

/// The time from arrival to first token that a share 1 - p exceeds.
double first_token_quantile(const PromptQueue& queue, double p);

}  // namespace prony::perfmodel
