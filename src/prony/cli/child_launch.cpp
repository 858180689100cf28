// Starting a child: this program with other arguments, or a command of the user's.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "prony/cli/child_process.hpp"

namespace prony::cli {
namespace {

constexpr core::Nanos kOwnMercy = 2 * core::kNanosPerSecond;  // between SIGTERM and SIGKILL
constexpr core::Nanos kShellMercy = 30 * core::kNanosPerSecond;

}  // namespace

struct ChildProcess::Program {
  const char* path;
  std::vector<std::string> arguments;  // argv
  std::string name;
  std::string log_path;  // empty: memory
  bool stdout_too = false;
  int death_signal = SIGKILL;  // when its parent dies
  core::Nanos mercy_ns = kOwnMercy;
};

namespace {

// In the child, between fork and exec: only system calls.
[[noreturn]] void become(const char* path, char* const* arguments, int output_fd, bool stdout_too,
                         int death_signal, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, death_signal);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  const int null_fd = ::open("/dev/null", O_RDWR);
  ::dup2(null_fd, STDIN_FILENO);
  ::dup2(stdout_too ? output_fd : null_fd, STDOUT_FILENO);
  ::dup2(output_fd, STDERR_FILENO);
  ::execv(path, arguments);
  ::_exit(127);
}

int open_output(const std::string& log_path) {
  if (log_path.empty()) return ::memfd_create("prony-child", MFD_CLOEXEC);
  return ::open(log_path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::launch(const Program& program) {
  const int output_fd = open_output(program.log_path);
  if (output_fd < 0) {
    return environment_error(fmt::format("cannot start {}: {}{}", program.name,
                                         program.log_path.empty() ? "" : program.log_path + ": ",
                                         std::strerror(errno)));
  }
  ::fcntl(output_fd, F_SETFL, O_APPEND);
  auto owned = program.arguments;
  std::vector<char*> pointers;
  for (auto& argument : owned) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    become(program.path, pointers.data(), output_fd, program.stdout_too, program.death_signal,
           parent);
  }
  if (pid < 0) {
    const int error = errno;
    ::close(output_fd);
    return environment_error(
        fmt::format("cannot start {}: {}", program.name, std::strerror(error)));
  }
  ::setpgid(pid, pid);  // as the child does, whoever comes first: signals go to the whole group
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(pid, output_fd, program.name, program.mercy_ns));
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(
    const std::vector<std::string>& arguments) {
  Program program{
      .path = "/proc/self/exe", .arguments = {"prony"}, .name = "prony", .log_path = {}};
  program.arguments.insert(program.arguments.end(), arguments.begin(), arguments.end());
  return launch(program);
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start_shell(const std::string& command,
                                                                const std::string& log_path) {
  return launch({.path = "/bin/sh",
                 .arguments = {"sh", "-c", command},
                 .name = "the command",
                 .log_path = log_path,
                 .stdout_too = true,
                 .death_signal = SIGTERM,  // it may have children of its own to end
                 .mercy_ns = kShellMercy});
}

}  // namespace prony::cli
