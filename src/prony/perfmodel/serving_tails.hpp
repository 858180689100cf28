// ServingTails: the 99th percentiles that have a closed form, and null for those that have none.
//   open loop (Poisson arrivals, fixed lengths)
//     TTFT  wait for a free place: G/G/c by Allen-Cunneen with constant service, its tail that of
//           M/M/c; the turn of the prompt as in prompt_queue.hpp. Percentiles of independent parts
//           are joined as deviations: mean + sqrt(sum (q - mean)^2).
//     TPOT  prompts of others prolong a stay, which brings more of them: variance of a busy period
//           that begins with the request's own decode steps. The number of others disturbs the
//           decode steps: variance B/(1 - e) of a line around the mean, e the elasticity of TPOT in
//           the batch, averaged over the stay. Both as one gamma law above the shortest step.
//     ITL   prompts in a step: a Markov chain, because long steps gather more prompts
//     E2E   deviations of TTFT and TPOT joined as above
//   closed loop: of the common start alone, whose order is known; arrivals after it have no law
//   here
// Thread safety: pure but for what `steps` remembers.
// Source: formulas of queueing.hpp; the spread of the batch is derived in docs/predict.md; compared
// with a loop of all steps in serving_tails_test.cpp.
#pragma once
#include <optional>
#include <string>

#include "prony/perfmodel/serving_load.hpp"
#include "prony/perfmodel/serving_steps.hpp"

namespace prony::perfmodel {

inline constexpr double kTail = 0.99;

struct ServingTails {
  std::optional<double> ttft_s, tpot_s, itl_s, e2e_s;  // 99th percentiles
  std::string reason;                                  // why one is missing; empty if none is
  // Of the TTFT: what is the same for all, and the 99th percentile of each part that is not.
  double fixed_s = 0, place_s = 0, prompts_s = 0, start_s = 0;
  double gaps_with_prompt = 0;  // share of the gaps between tokens in which a prompt was computed
};

/// What the means are, as the tails need them.
struct ServingFacts {
  double batch = 0, capacity = 0, request_throughput = 0, max_request_throughput = 0;
  double itl_s = 0, tpot_s = 0, place_s = 0;
  std::optional<double> ttft_s;
  std::string reason;  // why there is no ttft_s
};

/// Mean wait for a free place of `capacity`; 0 at loads where it cannot matter.
double place_wait(double request_rate, double max_request_rate, double capacity);

ServingTails serving_tails(ServingSteps& steps, const ServingLoad& load, const ServingFacts& facts);

}  // namespace prony::perfmodel
