#include "prony/load/message_feed.hpp"

#include <chrono>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/core/system.hpp"

namespace prony::load {
namespace {
// While the budget is used up: often enough to stay ahead, rare enough to cost nothing.
constexpr auto kPoll = std::chrono::milliseconds(2);
}  // namespace

MessageFeed::MessageFeed(int64_t count, Make make, const Options& options)
    : make_(std::move(make)),
      options_(options),
      slots_(static_cast<size_t>(count)),
      thread_([this] { run(); }) {}

MessageFeed::~MessageFeed() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool MessageFeed::wait_ready(core::Nanos timeout_ns) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [this] { return ready_; });
}

std::string MessageFeed::take(int64_t index, bool& late) {
  auto& slot = slots_.at(static_cast<size_t>(index));
  const auto before = slot.state.exchange(kTaken, std::memory_order_acq_rel);
  PRONY_CHECK(before != kTaken, "a message is taken once");
  late = before != kReady;
  if (late) return make_(index);
  ready_bytes_.fetch_sub(static_cast<int64_t>(slot.message.size()), std::memory_order_relaxed);
  return std::move(slot.message);
}

void MessageFeed::drop(int64_t index) {
  auto& slot = slots_.at(static_cast<size_t>(index));
  const auto before = slot.state.exchange(kTaken, std::memory_order_acq_rel);
  PRONY_CHECK(before != kTaken, "a message is taken once");
  if (before != kReady) return;  // one that is being made is dropped by its maker
  ready_bytes_.fetch_sub(static_cast<int64_t>(slot.message.size()), std::memory_order_relaxed);
  slot.message = {};
}

void MessageFeed::run() {
  core::name_thread("prony-feed");
  const auto announce = [this] {
    const std::lock_guard lock(mutex_);
    ready_ = true;
    changed_.notify_all();
  };
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (ready_bytes_.load(std::memory_order_relaxed) >= options_.budget_bytes) {
      announce();
      std::unique_lock lock(mutex_);
      while (!stopping_ && ready_bytes_.load(std::memory_order_relaxed) >= options_.budget_bytes) {
        changed_.wait_for(lock, kPoll);
      }
    }
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    auto& slot = slots_[i];
    uint8_t expected = kNone;
    if (!slot.state.compare_exchange_strong(expected, kMaking, std::memory_order_acq_rel)) continue;
    slot.message = make_(static_cast<int64_t>(i));
    const auto bytes = static_cast<int64_t>(slot.message.size());
    ready_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    expected = kMaking;
    if (!slot.state.compare_exchange_strong(expected, kReady, std::memory_order_acq_rel)) {
      // Its taker could not wait and made its own.
      ready_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
      slot.message = {};
    }
  }
  announce();
}

}  // namespace prony::load
