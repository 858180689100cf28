// MessageFeed: the HTTP messages of a schedule, written ahead of the moment they are sent, so that
// making a prompt never delays a send or a read. Everything is written before the run if it fits
// the budget; otherwise a thread of its own stays ahead of the loops within the budget.
// Thread safety: take() any thread, each index once; the rest one thread.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "prony/core/clock.hpp"

namespace prony::load {

class MessageFeed {
 public:
  /// The whole HTTP message of request `index`; pure, called from any thread.
  using Make = std::function<std::string(int64_t index)>;
  struct Options {
    int64_t budget_bytes = int64_t{64} << 20;
  };

  MessageFeed(int64_t count, Make make, const Options& options);
  ~MessageFeed();  // stops the thread
  MessageFeed(const MessageFeed&) = delete;
  MessageFeed& operator=(const MessageFeed&) = delete;

  /// Waits until everything is written or the budget is used, at most `timeout_ns`; true if so.
  bool wait_ready(core::Nanos timeout_ns);

  /// The message of `index`. Never waits: one that is not there yet is made now, and `late` says
  /// so.
  std::string take(int64_t index, bool& late);
  /// The message of `index` will never be needed: its memory is free for others.
  void drop(int64_t index);

 private:
  enum State : uint8_t { kNone, kMaking, kReady, kTaken };
  struct Slot {
    std::atomic<uint8_t> state{kNone};
    std::string message;
  };
  void run();

  Make make_;
  Options options_;
  std::vector<Slot> slots_;              // [count]
  std::atomic<int64_t> ready_bytes_{0};  // written and not yet taken
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ready_ = false, stopping_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace prony::load
