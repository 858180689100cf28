#include "prony/net/event_loop.hpp"

#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/net/fd_watch.hpp"
#include "prony/net/timer_heap.hpp"
#include "prony/net/wake_spin.hpp"

namespace prony::net {
namespace {

namespace asio = boost::asio;
using core::Nanos;

// A constantly busy loop never sleeps; its offset is still renewed this often.
constexpr Nanos kOffsetAge = core::kNanosPerMilli;
constexpr Nanos kNever = INT64_MAX;
// Longest time that due timers may keep ready sockets waiting.
constexpr Nanos kTimerTurnNs = 250 * core::kNanosPerMicro;

struct WatchCount {
  ~WatchCount() { PRONY_CHECK(count == 0, "a connection or watch outlives its event loop"); }
  size_t count = 0;
};

}  // namespace

struct EventLoop::Impl {
  explicit Impl(const Options& options_in)
      : spin(options_in.spin_ns), work(io.get_executor()), wake_timer(io) {
    const int fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    PRONY_CHECK(fd >= 0, "timerfd_create failed: out of file descriptors");
    wake_timer.assign(fd);
    keep_stamping();
  }
  ~Impl() { ::close(stamping_fd); }

  /// The kernel stamps packets only while some socket asks for it, and starts to a moment after the
  /// first one asks. One idle socket that asks keeps the first packets of a run from going without.
  void keep_stamping() {
    stamping_fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(stamping_fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  }

  /// Every handler begins here: ends the idle interval that the loop was in.
  void on_wake() {
    if (idle_since_ns == 0) return;
    idle_ns += core::monotonic_ns() - idle_since_ns;
    idle_since_ns = 0;
    offset_fresh = false;
  }

  bool stopped() const { return stop.load(std::memory_order_acquire); }

  void wait();
  void sleep_until(Nanos deadline_ns);
  void measure_offset();

  WakeSpin spin;
  Nanos last_deadline_ns = 0;  // that was waited for
  TimerHeap timers;
  WatchCount watches;
  std::atomic<bool> stop{false};

  Nanos idle_since_ns = 0;  // 0: not idle
  Nanos idle_ns = 0;        // asleep or spinning, since occupancy_start_ns
  Nanos occupancy_start_ns = core::monotonic_ns();

  bool offset_fresh = false;
  bool offset_known = false;
  Nanos offset_ns = 0, offset_at_ns = 0, clock_step_max_ns = 0;

  std::array<char, 64 << 10> scratch;
  int stamping_fd = -1;

  // Last, so that it is destroyed first: tasks never run may hold timers and connections.
  // One thread runs it and only that thread touches descriptors; post() still locks.
  asio::io_context io{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO};
  asio::executor_work_guard<asio::io_context::executor_type> work;
  asio::posix::stream_descriptor wake_timer;  // a timerfd: nanoseconds, absolute, unlike epoll's ms
  bool wake_waiting = false;
  Nanos wake_at_ns = kNever;  // what the timerfd is set to
};

void EventLoop::Impl::measure_offset() {
  const core::RealtimeToMonotonic measured = core::RealtimeToMonotonic::measure();
  if (offset_known) {
    clock_step_max_ns = std::max(clock_step_max_ns, std::abs(measured.offset_ns - offset_ns));
  }
  offset_ns = measured.offset_ns;
  offset_at_ns = core::monotonic_ns();
  offset_known = offset_fresh = true;
}

void EventLoop::Impl::sleep_until(Nanos deadline_ns) {
  if (deadline_ns != wake_at_ns) {
    // Setting a timerfd also clears an expiration, so it is never read.
    itimerspec spec{};
    if (deadline_ns != kNever) {
      const Nanos at = std::max<Nanos>(deadline_ns, 1);  // zero would disarm
      spec.it_value.tv_sec = static_cast<time_t>(at / core::kNanosPerSecond);
      spec.it_value.tv_nsec = static_cast<long>(at % core::kNanosPerSecond);
    }
    const int rc = ::timerfd_settime(wake_timer.native_handle(), TFD_TIMER_ABSTIME, &spec, nullptr);
    PRONY_CHECK(rc == 0, "timerfd_settime failed");
    wake_at_ns = deadline_ns;
  }
  if (!wake_waiting && deadline_ns != kNever) {
    wake_waiting = true;
    wake_timer.async_wait(asio::posix::stream_descriptor::wait_read,
                          [this](const boost::system::error_code& error) {
                            if (error) return;
                            wake_waiting = false;
                            if (idle_since_ns != 0) spin.woke(core::monotonic_ns() - wake_at_ns);
                            wake_at_ns = 0;  // expired: to be set anew before the next sleep
                            on_wake();
                          });
  }
  io.run_one();
}

/// Nothing is ready: sleeps until something is or the next deadline nears, then spins.
void EventLoop::Impl::wait() {
  idle_since_ns = core::monotonic_ns();
  while (!stopped()) {
    const Nanos deadline_ns = timers.next_ns();
    const Nanos spin_from_ns = deadline_ns == kNever ? kNever : deadline_ns - spin.lead_ns();
    const Nanos now_ns = core::monotonic_ns();
    if (now_ns >= deadline_ns) {
      if (last_deadline_ns != 0) spin.gap(std::abs(deadline_ns - last_deadline_ns));
      last_deadline_ns = deadline_ns;
      break;
    }
    if (now_ns < spin_from_ns) {
      sleep_until(spin_from_ns);
      if (idle_since_ns == 0) return;  // a handler ran; the wake-up timer's own comes here too
    } else if (io.poll_one() > 0) {
      return;
    }
  }
  on_wake();
}

EventLoop::EventLoop(const Options& options) : impl_(std::make_unique<Impl>(options)) {
  PRONY_CHECK(options.spin_ns >= 0 || options.spin_ns == kLearnSpin);
}

EventLoop::~EventLoop() = default;

void EventLoop::run() {
  Impl& loop = *impl_;
  loop.idle_since_ns = 0;
  reset_occupancy();
  // A deadline is looked at between any two handlers, so that a busy socket makes none late. But
  // where timers alone would fill the time (thousands of requests due at once), answers would wait
  // in the kernel and lose their stamps to later ones: then both get turns of equal length.
  Nanos turn_ns = 0;  // time that timers are ahead of handlers, while both want to run
  while (!loop.stopped()) {
    const Nanos now_ns = core::monotonic_ns();
    if (turn_ns < kTimerTurnNs && loop.timers.next_ns() <= now_ns) {
      loop.timers.fire_due(now_ns, [&loop, until_ns = now_ns + kTimerTurnNs - turn_ns] {
        return loop.stopped() || core::monotonic_ns() >= until_ns;
      });
      turn_ns += core::monotonic_ns() - now_ns;
      if (loop.stopped()) break;
    }
    const Nanos before_ns = core::monotonic_ns();
    if (loop.io.poll_one() > 0) {
      turn_ns = std::max<Nanos>(0, turn_ns - (core::monotonic_ns() - before_ns));
      continue;
    }
    turn_ns = 0;
    if (core::monotonic_ns() < loop.timers.next_ns()) loop.wait();
  }
  loop.stop.store(false, std::memory_order_release);
}

void EventLoop::stop() {
  impl_->stop.store(true, std::memory_order_release);
  asio::post(impl_->io, [impl = impl_.get()] { impl->on_wake(); });
}

void EventLoop::post(std::function<void()> task) {
  asio::post(impl_->io, [impl = impl_.get(), task = std::move(task)] {
    impl->on_wake();
    task();
  });
}

EventLoop::Occupancy EventLoop::occupancy() const {
  const Nanos now_ns = core::monotonic_ns();
  const Nanos idle_now_ns = impl_->idle_since_ns == 0 ? 0 : now_ns - impl_->idle_since_ns;
  const Nanos wall_ns = now_ns - impl_->occupancy_start_ns;
  return {.busy_ns = std::max<Nanos>(0, wall_ns - impl_->idle_ns - idle_now_ns),
          .wall_ns = wall_ns};
}

void EventLoop::reset_occupancy() {
  impl_->occupancy_start_ns = core::monotonic_ns();
  impl_->idle_ns = 0;
}

Nanos EventLoop::realtime_to_monotonic_ns() const {
  Impl& loop = *impl_;
  if (!loop.offset_fresh || core::monotonic_ns() - loop.offset_at_ns > kOffsetAge) {
    loop.measure_offset();
  }
  return loop.offset_ns;
}

Nanos EventLoop::clock_step_max_ns() const {
  return impl_->clock_step_max_ns;
}

Nanos EventLoop::spin_ns() const {
  return impl_->spin.lead_ns();
}

bool EventLoop::timer_due() const {
  return impl_->timers.next_ns() <= core::monotonic_ns();
}

std::span<char> EventLoop::scratch() {
  return impl_->scratch;
}

Timer::Timer(EventLoop& loop, std::function<void()> callback)
    : impl_(std::make_shared<Impl>(loop.impl().timers, std::move(callback))) {
  impl_->heap.add_timer();
}

Timer::~Timer() {
  if (impl_ == nullptr) return;
  impl_->heap.cancel(*impl_);
  impl_->heap.remove_timer();
}

Timer::Timer(Timer&&) noexcept = default;

Timer& Timer::operator=(Timer&& other) noexcept {
  std::swap(impl_, other.impl_);  // ours is cancelled when `other` goes
  return *this;
}

void Timer::arm(Nanos deadline_ns) {
  impl_->heap.arm(*impl_, deadline_ns);
}

void Timer::cancel() {
  impl_->heap.cancel(*impl_);
}

bool Timer::armed() const {
  return impl_->index != Impl::kIdle;
}

// Shared by the watch and its pending waits, because Asio completes a wait on a closed descriptor
// later, when the watch may be gone. The count is not atomic: one thread.
struct FdWatch::State {
  State(EventLoop::Impl& loop_in, Handler& handler_in, int fd)
      : loop(loop_in), handler(&handler_in), descriptor(loop_in.io, fd) {}

  void close() {
    handler = nullptr;
    boost::system::error_code ignored;
    descriptor.close(ignored);
    --loop.watches.count;
  }
  void wait(bool write);
  void ready(bool write);

  friend void intrusive_ptr_add_ref(State* state) { ++state->references; }
  friend void intrusive_ptr_release(State* state) {
    if (--state->references == 0) delete state;
  }

  EventLoop::Impl& loop;
  Handler* handler;  // null: closed
  asio::posix::stream_descriptor descriptor;
  int references = 0;
  bool want[2] = {false, false};     // [write]
  bool waiting[2] = {false, false};  // [write]
};

void FdWatch::State::wait(bool write) {
  if (waiting[write] || !want[write]) return;
  waiting[write] = true;
  const auto kind = write ? asio::posix::stream_descriptor::wait_write
                          : asio::posix::stream_descriptor::wait_read;
  descriptor.async_wait(kind, [state = boost::intrusive_ptr<State>(this),
                               write](const boost::system::error_code& error) {
    state->loop.on_wake();
    if (!error) state->ready(write);
  });
}

void FdWatch::State::ready(bool write) {
  waiting[write] = false;
  if (handler == nullptr) return;
  if (want[write]) write ? handler->on_writable() : handler->on_readable();
  if (handler != nullptr) wait(write);
}

void FdWatch::open(int fd) {
  PRONY_CHECK(state_ == nullptr, "the watch is open");
  state_ = new State(loop_.impl(), handler_, fd);
  intrusive_ptr_add_ref(state_);
  fd_ = fd;
  ++loop_.impl().watches.count;
}

void FdWatch::close() {
  if (state_ == nullptr) return;
  state_->close();
  intrusive_ptr_release(std::exchange(state_, nullptr));
  fd_ = -1;
}

void FdWatch::want_read(bool on) {
  if (state_ == nullptr) return;
  state_->want[0] = on;
  state_->wait(false);
}

void FdWatch::want_write(bool on) {
  if (state_ == nullptr) return;
  state_->want[1] = on;
  state_->wait(true);
}

}  // namespace prony::net
