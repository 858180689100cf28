#include "prony/plan/reasons.hpp"

#include <algorithm>

namespace prony::plan {

const char* cause_name(Cause cause) {
  switch (cause) {
    case Cause::kImpossible:
      return "impossible";
    case Cause::kMemory:
      return "memory";
    case Cause::kSaturated:
      return "saturated";
    case Cause::kIdle:
      return "idle";
    case Cause::kSlo:
      return "slo";
    case Cause::kUnknown:
      return "unknown";
  }
  return "unknown";
}

Reason& Reasons::find(Cause cause, std::string_view what) {
  for (Reason& each : reasons_) {
    if (each.cause == cause && each.what == what) return each;
  }
  Reason reason;
  reason.cause = cause;
  reason.what = what;
  reasons_.push_back(std::move(reason));
  return reasons_.back();
}

std::vector<Reason> Reasons::sorted() && {
  std::stable_sort(reasons_.begin(), reasons_.end(),
                   [](const Reason& a, const Reason& b) { return a.count > b.count; });
  return std::move(reasons_);
}

}  // namespace prony::plan
