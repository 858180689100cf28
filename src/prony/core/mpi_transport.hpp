// MpiTransport: opens the MPI plugin when the program was started by an MPI launcher, and only
// then, so that everyone else needs no MPI. Thread safety: main thread, once a process.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "prony/core/result.hpp"
#include "prony/core/transport.hpp"

namespace prony::core {

/// The variable by which a launcher tells that this process is one of several; nullopt if none
/// does. `variable` reads the environment.
std::optional<std::string> mpi_launcher(
    const std::function<std::optional<std::string>(const std::string&)>& variable);

/// Opens the plugin beside the program, in ../lib, or at PRONY_MPI_PLUGIN. Error: kEnvironment: no
/// plugin, another version of it, or what MPI_Init said.
Result<std::unique_ptr<Transport>> open_mpi(const std::string& launcher);

}  // namespace prony::core
