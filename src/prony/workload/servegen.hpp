// ServeGen: the load of a cloud as many clients, each with a rate and a burstiness of its own that
// change from window to window; the sum is burstier than any Poisson process of its rate. Its data
// are fits, not requests, so a trace is drawn from them: each client's gaps are gamma or Weibull
// with the fitted shape, sent through its rate by time rescaling; lengths follow the percentiles of
// the client's window, straight between them. Prompt and answer are drawn apart (the data hold no
// joint law); below the 5th and above the 99th percentile nothing is known, so these ends are cut.
// Source of the data: ServeGen, arXiv 2505.09999, alibaba/ServeGen, merged into one table a model.
// Thread safety: values; functions any thread.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/workload/trace.hpp"

namespace prony::workload {

inline constexpr std::array<double, 7> kServeGenPercentiles = {0.05, 0.25, 0.5, 0.75,
                                                               0.9,  0.95, 0.99};

struct ServeGenClient {
  struct Window {
    double start_s = 0, rate_per_s = 0, shape = 1;
    bool weibull = false;  // else gamma
  };
  struct Lengths {
    double start_s = 0;
    std::array<double, 7> input{}, output{};  // at kServeGenPercentiles
  };
  int64_t id = 0;
  std::vector<Window> windows;   // by rising start, at least one
  std::vector<Lengths> lengths;  // by rising start; empty: nothing known of them
};

struct ServeGenMix {
  std::string name;
  double window_s = 600;                // of an arrival window: the least distance of two starts
  std::vector<ServeGenClient> clients;  // by rising id
};

/// Two CSV files with headers: client_id, window_start_s, rate_req_per_s, fit_family (Gamma,
/// Weibull, Exponential), fit_shape; and client_id, window_start_s, quantity (input_tokens,
/// output_tokens; others ignored), p5, p25, p50, p75, p90, p95, p99.
/// Error: kInvalidArgument "FILE:LINE: ...".
Result<ServeGenMix> parse_servegen(std::string_view arrivals, const std::string& arrivals_path,
                                   std::string_view lengths, const std::string& lengths_path);

/// Requests between `start_s` and `start_s + length_s` of the mix's time. Clients without lengths
/// are left out, and the note says how many. Error: kInvalidArgument if nothing is there, or more
/// than 10,000,000 requests would be.
Result<Trace> draw_servegen(const ServeGenMix& mix, uint64_t seed, double start_s, double length_s);

}  // namespace prony::workload
