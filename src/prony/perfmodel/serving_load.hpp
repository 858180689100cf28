// ServingLoad: what a serving deployment is asked to do: requests of one length, from a constant
// number of clients, at a rate, or as one batch.
// Thread safety: a value.
#pragma once
#include <cstdint>
#include <optional>

namespace prony::perfmodel {

struct ServingLoad {
  int64_t input_tokens = 0;            // >= 0; zero prefill means that the prompt is cached
  int64_t output_tokens = 1;           // >= 1
  std::optional<double> concurrency;   // closed loop: clients, or the batch if static
  std::optional<double> request_rate;  // open loop [1/s]; exactly one of both
  bool static_batch = false;
  /// Requests of a closed-loop run; the first `concurrency` of them arrive together and wait for
  /// each other's prefill, which raises the mean TTFT. nullopt: ten a client, as the public
  /// benchmark scripts do; 0: without end, so that the start is forgotten.
  std::optional<double> requests;
  std::optional<int32_t> max_sequences, max_step_tokens;  // over the engine's own
};

}  // namespace prony::perfmodel
