#include "prony/sim/congestion.hpp"

#include <algorithm>

#include "prony/core/check.hpp"

namespace prony::sim {

CongestionMap::CongestionMap(const FlowNetwork& flows)
    : refreshed_ns_(flows.now_ns()), utilisation_(static_cast<size_t>(flows.link_count()), 0) {
  for (int32_t link = 0; link < flows.link_count(); ++link) {
    carried_.push_back(flows.carried(link));
  }
}

void CongestionMap::refresh(const FlowNetwork& flows) {
  const int64_t elapsed = flows.now_ns() - refreshed_ns_;
  PRONY_CHECK(flows.link_count() == static_cast<int32_t>(carried_.size()) && elapsed >= 0);
  if (elapsed == 0) return;
  for (size_t i = 0; i < carried_.size(); ++i) {
    const auto link = static_cast<int32_t>(i);
    const NanoBytes carried = flows.carried(link);
    const NanoBytes room = NanoBytes{flows.capacity(link)} * elapsed;
    const auto used = static_cast<double>(carried - carried_[i]);
    // A link that was narrowed since carried at its old width: full is full.
    utilisation_[i] = room == 0 ? 0 : std::min(1.0, used / static_cast<double>(room));
    carried_[i] = carried;
  }
  refreshed_ns_ = flows.now_ns();
}

int32_t CongestionMap::hottest() const {
  const auto at = std::max_element(utilisation_.begin(), utilisation_.end());
  return static_cast<int32_t>(at - utilisation_.begin());
}

bool CongestionGuard::look(const CongestionMap& map) {
  const double fullest = map.utilisations().empty() ? 0 : map.utilisation(map.hottest());
  hot_ = fullest >= (hot_ ? options_.low : options_.high);
  hot_looks_ = hot_ ? hot_looks_ + 1 : 0;
  if (rest_left_ > 0) {
    --rest_left_;
    return false;
  }
  return hot_looks_ >= options_.patience;
}

void CongestionGuard::moved() {
  hot_looks_ = 0;
  rest_left_ = options_.rest;
}

}  // namespace prony::sim
