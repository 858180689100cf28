// RunShape: how a run went over time, from its rows in one pass: intervals of the rates from slices
// of the window, Little's law, a queue that grows (overload), failures over time. Definitions:
// docs/metrics.md. Keeps 32 bytes a request of the population, whatever its number of events.
// Thread safety: none.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "prony/record/summary.hpp"

namespace prony::record {

class RunShape {
 public:
  /// `options` must outlive this.
  RunShape(const Window& window, const SummaryOptions& options);

  /// Every row of the run, in any order.
  void add(const RequestRow& row);
  /// Fills steady, steady_change, overloaded, queue_growth, little, ci95, error_slices and
  /// longest_failure_run. The counts and rates of `metrics` must be there already.
  void finish(Metrics& metrics);

 private:
  static constexpr size_t kSlices = 32;

  struct Slice {
    double completions = 0, output_tokens = 0;  // by their own instant
    double good = 0, good_tokens = 0;           // by intended start
    double in_system_ns = 0;                    // time that requests spent in the system
    int64_t attempted = 0;
    std::map<std::string, int64_t> errors;
  };
  // What is kept of a request of the population.
  struct Brief {
    core::Nanos t_intended_ns = 0;
    int64_t index = 0;
    double judged_ms = -1;  // below 0: unknown, or failed
    Status status = Status::kOk;
    bool good = false;
  };

  size_t slice_of(core::Nanos t_ns) const;
  core::Nanos slice_begin_ns(size_t slice) const;
  double slice_s(size_t slice) const;
  bool inside(core::Nanos t_ns) const;
  void add_to_population(const RequestRow& row);
  void add_time_in_system(const RequestRow& row);
  void set_intervals(Metrics& metrics) const;
  void set_little(Metrics& metrics) const;
  void judge_steadiness(Metrics& metrics) const;
  void judge_overload(Metrics& metrics) const;
  void set_failures(Metrics& metrics) const;

  Window window_;
  const SummaryOptions& options_;
  core::Nanos width_ns_;  // of a slice
  std::array<Slice, kSlices> slices_;
  std::vector<Brief> population_;
  int64_t sent_ = 0;  // in the window
  double residence_ns_ = 0;
};

}  // namespace prony::record
