// Periodic: calls a task at a fixed interval on a thread of its own until it is stopped. The first
// call comes one interval after the start; a call that runs late costs its successors nothing but
// the instants that have passed. Thread safety: construct and stop on one thread; the task runs on
// the other.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "prony/core/clock.hpp"

namespace prony::telemetry {

class Periodic {
 public:
  /// Requires interval_ns > 0 (checked). `name` is the thread's.
  Periodic(std::string name, core::Nanos interval_ns, std::function<void()> task);
  ~Periodic() { stop(); }
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

  /// Waits for a task that is running; none runs after.
  void stop();

 private:
  void run(const std::string& name, core::Nanos interval_ns);

  std::function<void()> task_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace prony::telemetry
