// SignalWatch: calls back on the loop when the process gets one of the given signals, for commands
// that end cleanly on SIGINT and SIGTERM. While it lives the signals are its own; afterwards the
// former handlers are back. Thread safety: loop thread; one at a time in a process (checked).
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "prony/net/event_loop.hpp"

namespace prony::net {

class SignalWatch {
 public:
  /// `callback(signal)` is called once per arrival; arrivals of one signal may merge.
  SignalWatch(EventLoop& loop, const std::vector<int>& signals, std::function<void(int)> callback);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prony::net
