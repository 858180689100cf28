// EventLoop: one thread's epoll loop (Boost.Asio inside, behind a pointer, so that only net/*.cpp
// include Boost). Connections and timers belong to one loop and are touched on its thread only;
// post() is the one door for other threads. Timers fire by absolute deadline; with `spin_ns` the
// loop polls instead of sleeping for the last stretch before a deadline, because a sleeping thread
// wakes late (wake_spin.hpp). Thread safety: run() one thread; post(), stop() any thread; the rest
// loop thread (or before run()).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "prony/core/clock.hpp"

namespace prony::net {

class EventLoop {
 public:
  static constexpr core::Nanos kLearnSpin = -1;  // wake_spin.hpp
  struct Options {
    core::Nanos spin_ns = 0;  // final spin before a timer deadline; 0: none; kLearnSpin
  };
  struct Occupancy {
    core::Nanos busy_ns = 0;  // inside callbacks, polls and reads, spinning excluded
    core::Nanos wall_ns = 0;  // since run() or the last reset
  };

  EventLoop() : EventLoop(Options{}) {}
  explicit EventLoop(const Options& options);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Runs until stop(). May be called again after it returned; a stop() before run() ends that run
  /// at once.
  void run();
  void stop();
  /// Runs `task` on the loop thread, soon, in order of post().
  void post(std::function<void()> task);

  Occupancy occupancy() const;
  void reset_occupancy();

  /// Offset that converts kernel stamps (CLOCK_REALTIME); measured at its first use after each
  /// wake-up and at least once a millisecond.
  core::Nanos realtime_to_monotonic_ns() const;
  /// Largest change of that offset between two measurements so far. Slewing by NTP moves it by at
  /// most 500 ns in a millisecond: a change of milliseconds is a step of the wall clock.
  core::Nanos clock_step_max_ns() const;

  /// The final spin now: what was asked, or what was learnt so far.
  core::Nanos spin_ns() const;
  /// A timer is due: a handler that could go on for long should return, and will be called again.
  bool timer_due() const;

  /// 64 KiB that everything on this loop reads into, so that a connection needs no buffer of its
  /// own; valid until the callback returns.
  std::span<char> scratch();

  struct Impl;  // event_loop.cpp
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// A one-shot timer. Arming again replaces the deadline; destruction cancels, also from within its
/// own callback. The callback is kept across arms, so re-arming allocates nothing. Equal deadlines
/// fire in the order of arm(). Must not outlive its loop (checked).
class Timer {
 public:
  Timer(EventLoop& loop, std::function<void()> callback);
  ~Timer();
  Timer(Timer&&) noexcept;
  Timer& operator=(Timer&&) noexcept;

  /// Fires at or after `deadline_ns` (CLOCK_MONOTONIC), soon if it has passed.
  void arm(core::Nanos deadline_ns);
  void cancel();
  bool armed() const;

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;  // shared with the loop while the callback runs
};

}  // namespace prony::net
