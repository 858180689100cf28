// ChildProcess: this program started again with other arguments (`prony serve` for a bench without
// an endpoint), or a command of the user's (a server variant of a sweep). What it says goes to
// memory or to a file, where the line it announces itself with is looked for; every wait is
// bounded, and it dies with its parent whatever happens to that.
// Thread safety: one thread, the one that start()ed it: the kernel ties the child to that thread.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"

namespace prony::cli {

class ChildProcess {
 public:
  /// Runs `prony ARGUMENTS` in a process group of its own, so that Ctrl-C reaches it through us.
  /// Error: kEnvironment.
  static Result<std::unique_ptr<ChildProcess>> start(const std::vector<std::string>& arguments);
  /// Runs `/bin/sh -c COMMAND` likewise, stdout and stderr to the file `log_path` (replaced), or to
  /// memory if that is empty. Error: kEnvironment.
  static Result<std::unique_ptr<ChildProcess>> start_shell(const std::string& command,
                                                           const std::string& log_path);
  ~ChildProcess();  // terminate()
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// The rest of the first line of its stderr that begins with `prefix`. Error: kEnvironment, with
  /// its last words, if it ends first or `timeout_ns` passes; kFailed if `interrupt` was set.
  Result<std::string> wait_for_line(std::string_view prefix, core::Nanos timeout_ns,
                                    const std::atomic<bool>* interrupt);
  /// Asks it and all it started to end, and makes them after two seconds (30 for a shell command: a
  /// server may have a GPU to give back). Returns when it is gone.
  void terminate();
  bool running();
  /// The last line it said.
  std::string last_words() const;

 private:
  struct Program;  // what to become: path, arguments, where its output goes
  static Result<std::unique_ptr<ChildProcess>> launch(const Program& program);
  ChildProcess(pid_t pid, int output_fd, std::string name, core::Nanos mercy_ns)
      : pid_(pid), output_fd_(output_fd), name_(std::move(name)), mercy_ns_(mercy_ns) {}
  std::string output(bool end) const;  // its first MiB, or its last

  pid_t pid_ = -1;  // -1: gone
  int output_fd_ = -1;
  std::string name_;          // for messages
  core::Nanos mercy_ns_ = 0;  // between SIGTERM and SIGKILL
};

}  // namespace prony::cli
