// `prony bench` in the words of other tools: --compat prints their figures of our run,
// --save-result leaves vLLM's result file. Thread safety: main thread.
#pragma once
#include <string>

#include "prony/cli/bench_flags.hpp"
#include "prony/load/bench.hpp"

namespace prony::cli {

void declare_compat(Flags& flags, BenchFlags& options);
/// Error: kInvalidArgument naming the flag.
Result<void> resolve_compat(BenchFlags& options);

/// Adds the record's section `compat`, and writes the file of --save-result; `path` is where it is,
/// empty if it was not asked for. Error: kEnvironment if it cannot be written.
Result<std::string> add_compat(const BenchFlags& options, load::BenchRun& run);

/// The section as text: a table a tool, a line of difference under each figure that has one.
std::string compat_table(const core::Json& compat);

}  // namespace prony::cli
