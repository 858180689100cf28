#include "prony/core/clock.hpp"

#include <cerrno>
#include <ctime>

namespace prony::core {
namespace {

Nanos read_clock(clockid_t id) noexcept {
  timespec time{};
  ::clock_gettime(id, &time);
  return static_cast<Nanos>(time.tv_sec) * kNanosPerSecond + time.tv_nsec;
}

}  // namespace

Nanos monotonic_ns() noexcept {
  return read_clock(CLOCK_MONOTONIC);
}
Nanos realtime_ns() noexcept {
  return read_clock(CLOCK_REALTIME);
}

Nanos MonotonicClock::now_ns() const {
  return monotonic_ns();
}

void MonotonicClock::sleep_until(Nanos deadline_ns) {
  timespec deadline{};
  deadline.tv_sec = static_cast<time_t>(deadline_ns / kNanosPerSecond);
  deadline.tv_nsec = static_cast<long>(deadline_ns % kNanosPerSecond);
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) {
  }
}

void ManualClock::sleep_until(Nanos deadline_ns) {
  Nanos now = now_ns_.load(std::memory_order_relaxed);
  while (now < deadline_ns &&
         !now_ns_.compare_exchange_weak(now, deadline_ns, std::memory_order_relaxed)) {
  }
}

UtcText utc_text(Nanos realtime) noexcept {
  const auto seconds = static_cast<time_t>(realtime / kNanosPerSecond);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  UtcText out{};
  if (std::strftime(out.text, sizeof out.text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
    out.text[0] = '\0';
  }
  return out;
}

RealtimeToMonotonic RealtimeToMonotonic::measure() noexcept {
  RealtimeToMonotonic best;
  best.error_bound_ns = INT64_MAX;
  for (int round = 0; round < 3; ++round) {
    const Nanos before = monotonic_ns();
    const Nanos wall = realtime_ns();
    const Nanos after = monotonic_ns();
    const Nanos bound = (after - before + 1) / 2;
    if (bound < best.error_bound_ns) {
      best.error_bound_ns = bound;
      best.offset_ns = before + (after - before) / 2 - wall;
    }
  }
  return best;
}

}  // namespace prony::core
