// The processes of one bench under an MPI launcher: opening their group, and what only the first of
// them may decide or show. Thread safety: main thread.
#pragma once
#include <string>

#include "prony/cli/bench_flags.hpp"
#include "prony/core/group.hpp"
#include "prony/core/result.hpp"

namespace prony::cli {

/// The group of this process: alone, unless a launcher says otherwise. Error: kEnvironment.
Result<core::Group> open_group();

/// Makes the flags of all ranks those of one run: one salt; files and progress of the first alone.
/// Error: kInvalidArgument for what several processes cannot do, kEnvironment if one is gone.
Result<void> share_flags(core::Group& group, BenchFlags& flags);

/// The exit code for `error`, printed once, after the other ranks were told.
int report_group_error(core::Group& group, const Error& error);

}  // namespace prony::cli
