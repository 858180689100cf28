// Reasons: counts why configurations fail and keeps the one that came nearest.
// Thread safety: none.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "prony/plan/plan.hpp"

namespace prony::plan {

class Reasons {
 public:
  /// `missed` is compared within one reason: the least is the nearest. `detail` makes the sentence
  /// and is called only where it is kept.
  template <class Detail>
  void add(Cause cause, std::string_view what, int64_t count, const Choice& choice, double missed,
           Detail detail) {
    Reason& reason = find(cause, what);
    reason.count += count;
    if (reason.nearest && reason.missed <= missed) return;
    reason.nearest = choice;
    reason.missed = missed;
    reason.detail = detail();
  }
  /// Most configurations first.
  std::vector<Reason> sorted() &&;

 private:
  Reason& find(Cause cause, std::string_view what);
  std::vector<Reason> reasons_;
};

}  // namespace prony::plan
