// RunFlags: the flags of one run among many (a cell, a probe): what the user gave, with some
// flags given again behind it, parsed and checked like any bench. And the digest of what such a run
// is, by which --resume knows it again.
// Thread safety: pure functions.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prony/cli/bench_flags.hpp"

namespace prony::cli {

/// {"--max-concurrency", "4"}
using FlagValue = std::pair<std::string, std::string>;

struct RunFlags {
  BenchFlags flags;  // resolved
  std::string hash;  // of every flag that decides what is measured, 16 hex digits
};
/// `arguments` as the command got them. `server` stands in the digest for the endpoint: a URL, or
/// the command that starts it, whose port may change. Error: as the flags'.
Result<RunFlags> parse_run_flags(const Arguments& arguments, const std::vector<FlagValue>& again,
                                 const std::string& server);

/// The flag that an axis of a sweep sets: "concurrency" is "--max-concurrency", any other name is a
/// flag that takes a number. Error: kInvalidArgument.
Result<std::string> axis_flag(const std::string& axis);

/// How long the load of a run takes, without the last answers [s]; nullopt where that depends on
/// the server (a closed loop by count).
std::optional<double> load_seconds(const load::BenchOptions& options);

}  // namespace prony::cli
