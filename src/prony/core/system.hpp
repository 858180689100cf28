// System: the process's view of its environment: variables, cores, limits. Library code reads these
// through here, never directly. Thread safety: any thread, while no thread calls setenv.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::core {

/// nullopt if unset.
std::optional<std::string> environment_variable(const std::string& name);

/// Ids of the cores this process may run on (its affinity mask, which a container may narrow).
std::vector<int> allowed_cores();
/// Pins the calling thread. Error: kEnvironment if the core is not allowed.
Result<void> pin_thread(int core);
/// Names the calling thread for ps, top and gdb; at most 15 bytes are kept.
void name_thread(const std::string& name);

/// Raises the soft limit of open files to at least `needed`, up to the hard limit.
/// Error: kEnvironment, naming both numbers and the way to raise the limit.
Result<void> ensure_open_files(uint64_t needed);

/// Folder of the running program, without trailing slash.
std::string program_folder();

}  // namespace prony::core
