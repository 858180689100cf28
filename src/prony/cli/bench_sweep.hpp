// `prony bench --sweep` and `--find`: many runs by one command, one source file each.
// Thread safety: main thread.
#pragma once
#include "prony/cli/bench_flags.hpp"
#include "prony/core/group.hpp"

namespace prony::cli {

/// Exit code. `group` must be of one process: an error otherwise. Error: as the command's.
Result<int> run_sweep(const Arguments& arguments, BenchFlags& flags, const core::Group& group);
Result<int> run_search(const Arguments& arguments, BenchFlags& flags, const core::Group& group);

}  // namespace prony::cli
