// EventLoop, Timer, FdWatch, SignalWatch: order, cancellation, lifetimes, threads, and how late
// timers are (printed; bounded loosely, because this machine is shared).
#include "prony/net/event_loop.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/net/fd_watch.hpp"
#include "prony/net/signals.hpp"

namespace prony::net {
namespace {

using core::kNanosPerMilli;
using core::monotonic_ns;
using core::Nanos;
using ::testing::ElementsAre;

/// Stops the loop after a while, so that a broken test ends.
class Watchdog {
 public:
  explicit Watchdog(EventLoop& loop, Nanos after_ns = 10 * core::kNanosPerSecond)
      : timer_(loop, [&loop] {
          ADD_FAILURE() << "the loop had to be stopped";
          loop.stop();
        }) {
    timer_.arm(monotonic_ns() + after_ns);
  }

 private:
  Timer timer_;
};

TEST(Timer, FiresInOrderOfDeadlineThenOfArming) {
  EventLoop loop;
  std::vector<int> order;
  Timer a(loop, [&] { order.push_back(1); });
  Timer b(loop, [&] { order.push_back(2); });
  Timer c(loop, [&] { order.push_back(3); });
  Timer d(loop, [&] {
    order.push_back(4);
    loop.stop();
  });
  const Nanos now = monotonic_ns();
  d.arm(now + 3 * kNanosPerMilli);
  c.arm(now + kNanosPerMilli);
  a.arm(now - 5);  // in the past: at once
  b.arm(now + kNanosPerMilli);
  EXPECT_TRUE(a.armed());
  loop.run();
  EXPECT_THAT(order, ElementsAre(1, 3, 2, 4));
  EXPECT_FALSE(a.armed());
  EXPECT_GE(monotonic_ns(), now + 3 * kNanosPerMilli);
}

TEST(Timer, RearmReplacesAndCancelForgets) {
  EventLoop loop;
  Watchdog watchdog(loop);
  int fired = 0;
  Timer moved(loop, [&] { ++fired; });
  Timer cancelled(loop, [&] { fired += 100; });
  Timer end(loop, [&] { loop.stop(); });
  const Nanos now = monotonic_ns();
  moved.arm(now + core::kNanosPerSecond * 100);
  moved.arm(now + kNanosPerMilli);
  moved.arm(now + 2 * kNanosPerMilli);
  cancelled.arm(now + kNanosPerMilli);
  cancelled.cancel();
  cancelled.cancel();
  end.arm(now + 5 * kNanosPerMilli);
  loop.run();
  EXPECT_EQ(fired, 1);
}

TEST(Timer, CallbackMayRearmCancelAndDestroy) {
  EventLoop loop;
  Watchdog watchdog(loop);
  std::vector<std::string> log;
  std::unique_ptr<Timer> self, victim;
  int ticks = 0;
  Timer tick(loop, [&] {
    if (++ticks == 3) {
      victim.reset();  // due at the same instant, and now gone
      self->arm(0);
    } else {
      tick.arm(0);
    }
  });
  victim = std::make_unique<Timer>(loop, [&] { log.push_back("victim"); });
  self = std::make_unique<Timer>(loop, [&] {
    self.reset();
    log.push_back("self");
    loop.stop();
  });
  tick.arm(monotonic_ns() - 1);
  victim->arm(monotonic_ns() + core::kNanosPerSecond);
  loop.run();
  EXPECT_EQ(ticks, 3);
  EXPECT_THAT(log, ElementsAre("self"));
}

TEST(Timer, MovingKeepsTheDeadline) {
  EventLoop loop;
  Watchdog watchdog(loop);
  std::vector<int> fired;
  Timer a(loop, [&] { fired.push_back(1); });
  Timer b(loop, [&] { fired.push_back(2); });
  Timer end(loop, [&] { loop.stop(); });
  a.arm(monotonic_ns() + kNanosPerMilli);
  b.arm(monotonic_ns() + kNanosPerMilli);
  Timer c = std::move(a);
  b = std::move(c);  // what b was is cancelled when c goes
  { Timer gone = std::move(c); }
  end.arm(monotonic_ns() + 3 * kNanosPerMilli);
  loop.run();
  EXPECT_THAT(fired, ElementsAre(1));
}

TEST(TimerDeathTest, MustNotOutliveItsLoop) {
  EXPECT_DEATH(
      {
        auto loop = std::make_unique<EventLoop>();
        Timer timer(*loop, [] {});
        loop.reset();
      },
      "a timer outlives its event loop");
}

// Random arms, re-arms and cancels against a plain list.
TEST(Timer, RandomScheduleFiresExactlyWhatIsDue) {
  EventLoop loop;
  Watchdog watchdog(loop);
  core::Rng rng(3);
  constexpr size_t kTimers = 500;
  std::vector<Nanos> deadline(kTimers, 0);  // 0: not armed
  std::vector<size_t> fired;
  std::vector<Timer> timers;
  for (size_t i = 0; i < kTimers; ++i) {
    timers.emplace_back(loop, [&, i] {
      EXPECT_NE(deadline[i], 0);
      EXPECT_GE(monotonic_ns(), deadline[i]);
      fired.push_back(i);
    });
  }
  const Nanos now = monotonic_ns();
  for (int step = 0; step < 5000; ++step) {
    const size_t i = rng.below(kTimers);
    if (rng.below(4) == 0) {
      timers[i].cancel();
      deadline[i] = 0;
    } else {
      deadline[i] = now + static_cast<Nanos>(rng.below(30 * kNanosPerMilli));
      timers[i].arm(deadline[i]);
    }
  }
  Timer end(loop, [&] { loop.stop(); });
  end.arm(now + 40 * kNanosPerMilli);
  loop.run();
  size_t expected = 0;
  for (const Nanos at : deadline) expected += at != 0;
  EXPECT_EQ(fired.size(), expected);
  EXPECT_TRUE(std::is_sorted(fired.begin(), fired.end(),
                             [&](size_t a, size_t b) { return deadline[a] < deadline[b]; }));
}

TEST(Timer, ReArmingInThePastDoesNotStarveSocketsOrPosts) {
  EventLoop loop;
  Watchdog watchdog(loop);
  Timer busy(loop, [&] { busy.arm(0); });
  busy.arm(0);
  loop.post([&] { loop.stop(); });
  loop.run();
}

struct Lateness {
  Nanos p50, p99, max;
};
Lateness measure_lateness(Nanos spin_ns) {
  EventLoop loop({.spin_ns = spin_ns});
  std::vector<Nanos> late;
  Nanos due = monotonic_ns() + kNanosPerMilli;
  Timer tick(loop, [&] {
    late.push_back(monotonic_ns() - due);
    if (late.size() == 300) return loop.stop();
    due += kNanosPerMilli;
    tick.arm(due);
  });
  tick.arm(due);
  loop.run();
  std::sort(late.begin(), late.end());
  return {late[150], late[297], late[299]};
}

TEST(Timer, Lateness) {
  for (const Nanos spin_ns : {Nanos{0}, 100 * core::kNanosPerMicro, Nanos{EventLoop::kLearnSpin}}) {
    const Lateness late = measure_lateness(spin_ns);
    printf(
        "spin %ld ns (-1: learnt): timer late by p50 %.1f us, p99 %.1f us, max %.1f us (300 of 1 "
        "ms)\n",
        spin_ns, static_cast<double>(late.p50) / 1e3, static_cast<double>(late.p99) / 1e3,
        static_cast<double>(late.max) / 1e3);
    EXPECT_LT(late.p50, 50 * kNanosPerMilli);
  }
}

TEST(EventLoop, PostsFromAnyThreadRunInOrderOnTheLoopThread) {
  EventLoop loop;
  Watchdog watchdog(loop);
  std::vector<int> seen[2];
  std::thread::id loop_thread;
  int left = 2000;
  const auto poster = [&](int who) {
    for (int i = 0; i < 1000; ++i) {
      loop.post([&, who, i] {
        EXPECT_EQ(std::this_thread::get_id(), loop_thread);
        seen[who].push_back(i);
        if (--left == 0) loop.stop();
      });
    }
  };
  loop_thread = std::this_thread::get_id();
  std::thread a(poster, 0), b(poster, 1);
  loop.run();
  a.join();
  b.join();
  for (const auto& list : seen) {
    EXPECT_EQ(list.size(), 1000U);
    EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
  }
}

TEST(EventLoop, StopFromAnotherThreadWakesASleepingLoop) {
  EventLoop loop;
  std::thread stopper([&] {
    ::usleep(20'000);
    loop.stop();
  });
  loop.run();
  stopper.join();
  loop.stop();  // before run(): ends that run at once
  loop.run();
  loop.post([&] { loop.stop(); });
  loop.run();  // and it runs again after that
}

TEST(EventLoop, UnrunTasksDieWithTheLoop) {
  auto held = std::make_shared<int>(1);
  {
    EventLoop loop;
    // A task that owns a timer and a watch of this very loop.
    auto timer = std::make_shared<Timer>(loop, [] {});
    timer->arm(1);
    loop.post([held, timer] {});
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST(EventLoop, OccupancyCountsWorkAndNeitherSleepNorSpin) {
  EventLoop loop({.spin_ns = 50 * kNanosPerMilli});
  const auto work = [](Nanos how_long) {
    const Nanos until = monotonic_ns() + how_long;
    while (monotonic_ns() < until) {
    }
  };
  Timer first(loop, [&] { work(20 * kNanosPerMilli); });
  Timer last(loop, [&] { loop.stop(); });
  const Nanos now = monotonic_ns();
  first.arm(now + 10 * kNanosPerMilli);
  last.arm(now + 100 * kNanosPerMilli);  // 50 ms asleep or more, the rest spinning
  loop.run();
  const auto occupancy = loop.occupancy();
  EXPECT_GE(occupancy.wall_ns, 100 * kNanosPerMilli);
  EXPECT_GE(occupancy.busy_ns, 20 * kNanosPerMilli);
  // 10 ms before the work and 70 after it; were spinning counted as work, 20 would be left.
  EXPECT_GT(occupancy.wall_ns - occupancy.busy_ns, 45 * kNanosPerMilli);
  loop.reset_occupancy();
  EXPECT_LT(loop.occupancy().wall_ns, 50 * kNanosPerMilli);
}

TEST(EventLoop, OffsetFollowsTheClocks) {
  EventLoop loop;
  const Nanos before = monotonic_ns();
  const Nanos converted = core::realtime_ns() + loop.realtime_to_monotonic_ns();
  EXPECT_NEAR(static_cast<double>(converted), static_cast<double>(before), 5e6);
  EXPECT_GE(loop.clock_step_max_ns(), 0);
}

// ---- FdWatch

class PipeReader final : FdWatch::Handler {
 public:
  explicit PipeReader(EventLoop& loop) : watch(loop, *this) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
    writer = ends[1];
    watch.open(ends[0]);
  }
  ~PipeReader() override { ::close(writer); }

  FdWatch watch;
  int writer = -1;
  std::function<void()> readable;

 private:
  void on_readable() override {
    const auto call = readable;  // it may destroy this reader
    call();
  }
};

TEST(FdWatch, IsLevelTriggeredAndCanBePaused) {
  EventLoop loop;
  Watchdog watchdog(loop);
  PipeReader reader(loop);
  std::string got;
  reader.readable = [&] {
    char c = 0;  // one byte a call: the rest must call again
    EXPECT_EQ(::read(reader.watch.fd(), &c, 1), 1);
    got += c;
    if (got == "ab") reader.watch.want_read(false);
    if (got == "abcd") loop.stop();
  };
  ASSERT_EQ(::write(reader.writer, "abcd", 4), 4);
  reader.watch.want_read(true);
  Timer resume(loop, [&] {
    EXPECT_EQ(got, "ab");
    reader.watch.want_read(true);
  });
  resume.arm(monotonic_ns() + 5 * kNanosPerMilli);
  loop.run();
  EXPECT_EQ(got, "abcd");
}

// More due timers than there is time for, and a socket that is always ready: both get turns.
TEST(FdWatch, TimersAndSocketsShareAnOverloadedLoop) {
  EventLoop loop;
  Watchdog watchdog(loop);
  const auto work = [](Nanos how_long) {
    const Nanos from = monotonic_ns();
    while (monotonic_ns() - from < how_long) {
    }
    return monotonic_ns() - from;
  };
  Nanos in_timers = 0, in_sockets = 0;
  std::vector<Timer> timers;
  for (size_t i = 0; i < 50; ++i) {
    timers.emplace_back(loop, [&, i] {
      in_timers += work(40 * core::kNanosPerMicro);
      timers[i].arm(0);
    });
    timers[i].arm(0);
  }
  PipeReader reader(loop);
  const Nanos end = monotonic_ns() + 200 * kNanosPerMilli;
  reader.readable = [&] {
    in_sockets += work(5 * core::kNanosPerMicro);
    if (monotonic_ns() > end) loop.stop();
  };
  ASSERT_EQ(::write(reader.writer, "x", 1), 1);  // never read
  reader.watch.want_read(true);
  loop.run();
  EXPECT_GT(in_timers, 20 * kNanosPerMilli);
  EXPECT_GT(in_sockets, in_timers / 8);  // a good part of a socket's turn is spent in the kernel
}

TEST(FdWatch, MayBeClosedAndDestroyedInItsCallback) {
  EventLoop loop;
  Watchdog watchdog(loop);
  auto reader = std::make_unique<PipeReader>(loop);
  reader->readable = [&] {
    reader.reset();
    loop.stop();
  };
  ASSERT_EQ(::write(reader->writer, "x", 1), 1);
  reader->watch.want_read(true);
  loop.run();
  EXPECT_EQ(reader, nullptr);
}

TEST(FdWatch, ReopensOnAnotherDescriptor) {
  EventLoop loop;
  Watchdog watchdog(loop);
  PipeReader reader(loop);
  reader.readable = [] { FAIL() << "the closed descriptor"; };
  reader.watch.want_read(true);
  reader.watch.close();
  EXPECT_EQ(reader.watch.fd(), -1);
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
  reader.watch.open(pair[0]);
  reader.watch.want_read(true);
  reader.readable = [&] { loop.stop(); };
  ::close(pair[1]);  // a hang-up is readable
  loop.run();
}

TEST(SignalWatch, CallsBackOnTheLoopAndRestores) {
  EventLoop loop;
  Watchdog watchdog(loop);
  std::vector<int> seen;
  struct sigaction before {};
  ::sigaction(SIGUSR1, nullptr, &before);
  {
    SignalWatch signals(loop, {SIGUSR1, SIGUSR2}, [&](int signal) {
      seen.push_back(signal);
      if (seen.size() == 2) loop.stop();
    });
    ::raise(SIGUSR1);
    ::raise(SIGUSR2);
    loop.run();
  }
  EXPECT_THAT(seen, ElementsAre(SIGUSR1, SIGUSR2));
  struct sigaction after {};
  ::sigaction(SIGUSR1, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

}  // namespace
}  // namespace prony::net
