// Timing cases of `prony certify`: loads under which the client's own lateness would show, each
// judged by figures against their limits. Thread safety: constant table; functions one thread.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "prony/certify/player.hpp"
#include "prony/certify/verdict.hpp"

namespace prony::certify {

struct TimingCase {
  std::string_view name;
  std::string_view condition;
  /// Runs it; several figures. Error: kEnvironment; kFailed if interrupted.
  Result<std::vector<Verdict>> (*run)(const TimingCase& timing, const Host& host);
};

std::span<const TimingCase> timing_cases();

}  // namespace prony::certify
