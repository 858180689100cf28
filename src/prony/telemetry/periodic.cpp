#include "prony/telemetry/periodic.hpp"

#include <chrono>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/core/system.hpp"

namespace prony::telemetry {

Periodic::Periodic(std::string name, core::Nanos interval_ns, std::function<void()> task)
    : task_(std::move(task)) {
  PRONY_CHECK(interval_ns > 0);
  thread_ = std::thread([this, name = std::move(name), interval_ns] { run(name, interval_ns); });
}

void Periodic::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Periodic::run(const std::string& name, core::Nanos interval_ns) {
  core::name_thread(name);
  core::Nanos due = core::monotonic_ns() + interval_ns;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto wait =
        std::chrono::nanoseconds(std::max<core::Nanos>(0, due - core::monotonic_ns()));
    if (changed_.wait_for(lock, wait, [this] { return stopping_; })) return;
    lock.unlock();
    task_();
    lock.lock();
    const core::Nanos now = core::monotonic_ns();
    due += interval_ns;
    if (due <= now) due = now + interval_ns - (now - due) % interval_ns;
  }
}

}  // namespace prony::telemetry
