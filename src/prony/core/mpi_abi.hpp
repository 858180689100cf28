// The binary interface between the program and its plugin libprony_mpi.so, which alone is linked to
// MPI: plain C functions, so that neither depends on the other's compiler or library version.
// Thread safety: the thread that called open.
#pragma once
#include <cstdint>

namespace prony::core {

inline constexpr uint32_t kMpiAbiVersion = 1;
inline constexpr const char* kMpiPluginName = "libprony_mpi.so";
inline constexpr const char* kMpiPluginSymbol = "prony_mpi_plugin";

// Every function returns 0, or 1 after writing one line into `error` (of `error_size` bytes).
// Deadlines are CLOCK_MONOTONIC ns.
struct MpiPlugin {
  uint32_t version;
  int (*open)(int* rank, int* size, char* error, uint32_t error_size);
  int (*send)(int to, const char* bytes, uint64_t count, int64_t t_give_up_ns, char* error,
              uint32_t error_size);
  /// Waits for a message and says how long it is; receive() then takes it.
  int (*probe)(int from, uint64_t* count, int64_t t_give_up_ns, char* error, uint32_t error_size);
  int (*receive)(int from, char* bytes, uint64_t count, int64_t t_give_up_ns, char* error,
                 uint32_t error_size);
  /// All ranks end in order. Must not be called after a failure.
  void (*close)();
  /// Ends every process of the run.
  void (*abort)(int exit_code);
};

}  // namespace prony::core
