// The environment of a run: machine, program, load. A result without it is refused by the record.
// Thread safety: any thread. Source: Linux /proc (man 5 proc), uname(2).
#pragma once
#include <string>

#include "prony/record/record.hpp"

namespace prony::telemetry {

/// Everything but steal_fraction, which HostSampler (host_sampler.hpp) knows after the run. What
/// this system does not tell is "unknown" or 0, never an error. `proc` is the /proc to read.
record::Environment capture_environment(const std::string& proc = "/proc");

}  // namespace prony::telemetry
