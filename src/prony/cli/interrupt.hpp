// Interrupt: Ctrl-C and SIGTERM as a flag, so that a run ends in order and leaves what it has; a
// second one ends the program at once. While it lives the two signals are its own.
// Thread safety: flag() any thread; one Interrupt at a time.
#pragma once
#include <atomic>

namespace prony::cli {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Set by the first signal.
  const std::atomic<bool>& flag() const;
};

}  // namespace prony::cli
