// SweepFlags: what `prony bench` is told about running many times, as given: axes of a sweep, a
// search. Thread safety: a value.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/cli/flags.hpp"

namespace prony::cli {

struct SweepFlags {
  std::vector<std::string> axes;  // "concurrency=1,2,4"
  int64_t num_runs = 1;
  bool resume = false, no_requests = false;
  double pause_s = 0;
  double target_ready_timeout_s = 600;
  std::string find;  // "", "max-rate", "max-concurrency"
  std::string find_precision = "5%";
  std::optional<double> find_start, find_max;
  int64_t find_probes = 30;

  bool is_sweep() const { return !axes.empty(); }
  bool is_search() const { return !find.empty(); }
};

void declare_sweep(Flags& flags, SweepFlags& options);

/// The arguments of one run: without the flags above, and without those that say where results go.
std::vector<std::string> without_sweep_flags(const std::vector<std::string>& arguments);
/// True for a flag that such an argument list lacks.
bool is_sweep_flag(std::string_view name);

}  // namespace prony::cli
