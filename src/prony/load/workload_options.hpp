// WorkloadOptions: what `prony bench` can be told about its workload beside rate, plain lengths and
// the trace's window: rates that change, how lengths are taken from a trace, conversations, prefix
// groups. As given on the command line; bench_schedule.cpp reads them. Thread safety: a value.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "prony/workload/sharegpt.hpp"

namespace prony::load {

struct WorkloadOptions {
  // Rates that change with time or, the ramp without a duration, with the number of the request.
  std::optional<std::string> stages, on_off, diurnal;
  std::optional<std::string> ramp_strategy;  // linear, exponential
  std::optional<double> ramp_start_rps, ramp_end_rps;

  // Lengths of a trace.
  std::string lengths = "trace";        // trace, resample, kde, kde-pairs
  std::string bandwidth = "silverman";  // or a number
  bool kde_log = false;
  std::string columns;                  // --column, for csv and jsonl
  workload::TokenCounter count_tokens;  // of texts of sharegpt; null: estimated

  // Conversations.
  std::optional<std::string> turns, think_time;  // laws
  std::optional<int64_t> num_sessions;
  std::string history = "received";  // received, synthetic

  double prefix_zipf = 0;
};

}  // namespace prony::load
