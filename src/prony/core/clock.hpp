// Clock: the only way to read time. All instants are CLOCK_MONOTONIC nanoseconds, so stamps of two
// processes of one machine compare. ManualClock is the virtual time of tests and of the simulator.
// Thread safety: MonotonicClock any thread; ManualClock any thread (atomic).
#pragma once
#include <atomic>
#include <cstdint>

namespace prony::core {

using Nanos = int64_t;  // an instant or a duration [ns]

inline constexpr Nanos kNanosPerMicro = 1'000;
inline constexpr Nanos kNanosPerMilli = 1'000'000;
inline constexpr Nanos kNanosPerSecond = 1'000'000'000;

constexpr double to_seconds(Nanos ns) {
  return static_cast<double>(ns) / static_cast<double>(kNanosPerSecond);
}
constexpr double to_ms(Nanos ns) {
  return static_cast<double>(ns) / static_cast<double>(kNanosPerMilli);
}

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanos now_ns() const = 0;
  /// Returns at or after `deadline_ns`, at once if it has passed. ManualClock advances itself.
  virtual void sleep_until(Nanos deadline_ns) = 0;
};

class MonotonicClock final : public Clock {
 public:
  Nanos now_ns() const override;
  void sleep_until(Nanos deadline_ns) override;
};

class ManualClock final : public Clock {
 public:
  explicit ManualClock(Nanos start_ns = 0) : now_ns_(start_ns) {}
  Nanos now_ns() const override { return now_ns_.load(std::memory_order_relaxed); }
  void sleep_until(Nanos deadline_ns) override;
  void advance(Nanos by_ns) { now_ns_.fetch_add(by_ns, std::memory_order_relaxed); }

 private:
  std::atomic<Nanos> now_ns_;
};

/// CLOCK_MONOTONIC now, without the indirection, for stamps on hot paths.
Nanos monotonic_ns() noexcept;
/// CLOCK_REALTIME now [ns since 1970-01-01T00:00Z]; never for intervals.
Nanos realtime_ns() noexcept;
/// `realtime` as "2026-11-30T19:09:34Z".
struct UtcText {
  char text[21];
};
UtcText utc_text(Nanos realtime) noexcept;

/// Offset that turns CLOCK_REALTIME into CLOCK_MONOTONIC: add it to a realtime stamp. Taken as the
/// tightest of a few bracketed pairs of readings; `error_bound_ns` is half the bracket.
struct RealtimeToMonotonic {
  Nanos offset_ns = 0;
  Nanos error_bound_ns = 0;
  static RealtimeToMonotonic measure() noexcept;
};

}  // namespace prony::core
