// Usage: what this process and its threads have used of the host.
// Thread safety: functions any thread.
#pragma once
#include <cstdint>
#include <optional>

namespace prony::core {

/// CPU time that the calling thread has used [us].
int64_t thread_cpu_us();
/// Memory of this process that lies in RAM; nullopt without /proc.
std::optional<int64_t> resident_bytes();

}  // namespace prony::core
