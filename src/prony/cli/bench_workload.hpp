// The flags of `prony bench` that say what is asked for and when, beside rate and concurrency; the
// schedule on its own: --dry-run and --save-schedule. Thread safety: main thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "prony/core/result.hpp"

namespace prony::cli {

class Flags;
struct BenchFlags;

/// Flags that do not go into load::BenchOptions as they are.
struct WorkloadFlags {
  // vLLM's dataset prefix_repetition, and its defaults.
  int64_t repetition_prefix_len = 256, repetition_suffix_len = 256, repetition_prefixes = 10,
          repetition_output_len = 128;
  std::optional<std::string> save_schedule;
  bool dry_run = false;
};

void declare_arrivals(Flags& flags, BenchFlags& options);
void declare_workload(Flags& flags, BenchFlags& options);
/// Error: kInvalidArgument naming the flag.
Result<void> resolve_workload(BenchFlags& options);
/// The sample that ships, where a dataset was named without its file.
Result<void> fill_dataset_path(BenchFlags& options);
/// Writes the schedule of the run to --save-schedule. Error: as load::make_schedule(), or that of
/// the file.
Result<void> save_schedule(const BenchFlags& options);
/// Prints the report of the schedule and sends nothing. The exit code.
Result<int> dry_run(const BenchFlags& options);

}  // namespace prony::cli
