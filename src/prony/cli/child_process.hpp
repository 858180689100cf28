// ChildProcess: this program started again with other arguments (`prony serve` for a bench without
// an endpoint). Its stderr goes to memory, where the line it announces itself with is looked for;
// every wait is bounded, and it dies with its parent whatever happens to that.
// Thread safety: one thread, the one that start()ed it: the kernel ties the child to that thread.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"

namespace prony::cli {

class ChildProcess {
 public:
  /// Runs `prony ARGUMENTS` in a process group of its own, so that Ctrl-C reaches it through us.
  /// Error: kEnvironment.
  static Result<std::unique_ptr<ChildProcess>> start(const std::vector<std::string>& arguments);
  ~ChildProcess();  // terminate()
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// The rest of the first line of its stderr that begins with `prefix`. Error: kEnvironment, with
  /// its last words, if it ends first or `timeout_ns` passes; kFailed if `interrupt` was set.
  Result<std::string> wait_for_line(std::string_view prefix, core::Nanos timeout_ns,
                                    const std::atomic<bool>* interrupt);
  /// Asks it to end, and after two seconds makes it. Returns when it is gone.
  void terminate();
  bool running();

 private:
  ChildProcess(pid_t pid, int output_fd) : pid_(pid), output_fd_(output_fd) {}
  std::string output() const;
  std::string last_words() const;

  pid_t pid_ = -1;  // -1: gone
  int output_fd_ = -1;
};

}  // namespace prony::cli
