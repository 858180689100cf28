// Scheduling: how the kernel schedules a thread among others, and a way to go before them.
// Thread safety: functions any thread; prefer_thread() is about the calling one.
#pragma once
#include <string_view>

namespace prony::core {

enum class Scheduling { kNormal, kNice, kRealtime };  // from the least to the most preferred
std::string_view scheduling_name(Scheduling scheduling);

/// Puts the calling thread, not its children, before the ordinary threads of this host: SCHED_FIFO
/// at its lowest priority, else nice -10, else nothing, as far as this process may (root,
/// CAP_SYS_NICE, or ulimit -r and -e). Such a thread must sleep most of the time.
Scheduling prefer_thread();

}  // namespace prony::core
