#include "prony/net/signals.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "prony/core/check.hpp"
#include "prony/net/fd_watch.hpp"

namespace prony::net {
namespace {

std::atomic<int> g_pipe_write{-1};  // a signal handler has no other way to find its pipe

extern "C" void note_signal(int signal) {
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(signal);
  // A full pipe holds thousands of signals that the loop has still to see: this one may go.
  [[maybe_unused]] const ssize_t written = ::write(g_pipe_write.load(), &byte, 1);
  errno = saved;
}

}  // namespace

struct SignalWatch::Impl final : FdWatch::Handler {
  Impl(EventLoop& loop, std::function<void(int)> callback_in)
      : callback(std::move(callback_in)), watch(loop, *this) {}

  void on_readable() override {
    std::array<unsigned char, 64> bytes{};
    const ssize_t n = ::read(watch.fd(), bytes.data(), bytes.size());
    for (ssize_t i = 0; i < n; ++i) callback(bytes[static_cast<size_t>(i)]);
  }

  std::function<void(int)> callback;
  FdWatch watch;
  int pipe_write = -1;
  std::vector<std::pair<int, struct sigaction>> former;
};

SignalWatch::SignalWatch(EventLoop& loop, const std::vector<int>& signals,
                         std::function<void(int)> callback)
    : impl_(std::make_unique<Impl>(loop, std::move(callback))) {
  std::array<int, 2> ends{};
  PRONY_CHECK(::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) == 0, "pipe2 failed");
  impl_->pipe_write = ends[1];
  impl_->watch.open(ends[0]);
  impl_->watch.want_read(true);
  int none = -1;
  PRONY_CHECK(g_pipe_write.compare_exchange_strong(none, ends[1]), "another signal watch lives");
  for (const int signal : signals) {
    struct sigaction action {};
    struct sigaction old {};
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    ::sigfillset(&action.sa_mask);
    PRONY_CHECK(::sigaction(signal, &action, &old) == 0, "not a signal that can be caught");
    impl_->former.emplace_back(signal, old);
  }
}

SignalWatch::~SignalWatch() {
  for (const auto& [signal, old] : impl_->former) ::sigaction(signal, &old, nullptr);
  g_pipe_write.store(-1);
  ::close(impl_->pipe_write);
}

}  // namespace prony::net
