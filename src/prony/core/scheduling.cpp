#include "prony/core/scheduling.hpp"

#include <sched.h>
#include <sys/resource.h>

namespace prony::core {

std::string_view scheduling_name(Scheduling scheduling) {
  switch (scheduling) {
    case Scheduling::kNormal:
      return "normal";
    case Scheduling::kNice:
      return "nice";
    case Scheduling::kRealtime:
      return "realtime";
  }
  return "normal";
}

Scheduling prefer_thread() {
  sched_param lowest{};
  lowest.sched_priority = ::sched_get_priority_min(SCHED_FIFO);
  // 0 is the calling thread.
  if (::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) == 0) {
    return Scheduling::kRealtime;
  }
  constexpr int kPreferred = -10;
  return ::setpriority(PRIO_PROCESS, 0, kPreferred) == 0 ? Scheduling::kNice : Scheduling::kNormal;
}

}  // namespace prony::core
