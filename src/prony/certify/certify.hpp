// Certify: proves the client on this host. Every fault that the mock knows and the loads under
// which a client gets late are played against `prony mock` in a process of its own, and what the
// client measured is held against what the server stamped. Thread safety: one thread.
#pragma once
#include <string>
#include <vector>

#include "prony/certify/player.hpp"
#include "prony/certify/verdict.hpp"
#include "prony/core/result.hpp"

namespace prony::certify {

struct CaseName {
  std::string group, name, condition, complaint;
};
/// All cases, in the order they run in.
std::vector<CaseName> list_cases();

/// Runs the cases whose name or group is in `only`, all if it is empty.
/// Error: kInvalidArgument, a name that is no case; kEnvironment; kFailed if interrupted.
Result<Report> certify(const Host& host, const std::vector<std::string>& only);

}  // namespace prony::certify
