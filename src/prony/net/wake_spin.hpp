// WakeSpin: how long before a deadline an event loop must stop sleeping and poll, so that it is not
// late. A sleeping thread wakes late by what this host makes of it (50-90 us on a virtual machine
// whose core has halted, 5 us on bare metal that has not), so the lateness is learnt: an estimate
// of its 99th percentile that moves a large step up for each wake above it and 1/99 of that down
// for each below. The lead is bounded by a share of the time between deadlines, so that polling
// never takes a core that is needed otherwise. Source: Q. Ma, S. Muthukrishnan, M. Sandler, "Frugal
// Streaming for Estimating Quantiles", 2013, with a fixed step. Thread safety: none; of one loop.
#pragma once
#include <algorithm>

#include "prony/core/clock.hpp"

namespace prony::net {

class WakeSpin {
 public:
  static constexpr core::Nanos kFirstNs = 100 * core::kNanosPerMicro;  // before anything is known
  static constexpr core::Nanos kLeastNs = 10 * core::kNanosPerMicro;
  static constexpr core::Nanos kMostNs = 500 * core::kNanosPerMicro;
  static constexpr double kShareMax = 0.25;  // of the time between deadlines
  static constexpr double kStepNs = 4'000;

  /// `fixed_ns` < 0: learns. Else that lead, whatever happens.
  explicit WakeSpin(core::Nanos fixed_ns) : fixed_ns_(fixed_ns) {}

  /// The loop wanted to wake at an instant and woke `late_ns` after it, because of the clock and of
  /// nothing else.
  void woke(core::Nanos late_ns) {
    // One wake that took milliseconds is another process on this core, which no polling prevents.
    late_p99_ns_ += static_cast<double>(late_ns) > late_p99_ns_ ? kStepNs : -kStepNs / 99;
    late_p99_ns_ = std::clamp(late_p99_ns_, 0.0, static_cast<double>(kMostNs));
  }

  /// A deadline that was slept for came `gap_ns` after the one before.
  void gap(core::Nanos gap_ns) {
    gap_ns_ += (static_cast<double>(std::min(gap_ns, core::kNanosPerSecond)) - gap_ns_) / 64;
  }

  core::Nanos lead_ns() const {
    if (fixed_ns_ >= 0) return fixed_ns_;
    const auto wanted = std::max(kLeastNs, static_cast<core::Nanos>(1.25 * late_p99_ns_));
    const auto affordable = static_cast<core::Nanos>(kShareMax * gap_ns_);
    return std::min({wanted, affordable, kMostNs});
  }

 private:
  core::Nanos fixed_ns_;
  double late_p99_ns_ = static_cast<double>(kFirstNs) / 1.25;
  double gap_ns_ = static_cast<double>(core::kNanosPerMilli);
};

}  // namespace prony::net
