#include "prony/cli/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace prony::cli {
namespace {

constexpr core::Nanos kPoll = 10 * core::kNanosPerMilli;
constexpr core::Nanos kMercy = 2 * core::kNanosPerSecond;  // between SIGTERM and SIGKILL
constexpr size_t kOutputKept = 1 << 20;

// In the child, between fork and exec: only system calls.
[[noreturn]] void become(char* const* arguments, int output_fd, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  const int null_fd = ::open("/dev/null", O_RDWR);
  ::dup2(null_fd, STDIN_FILENO);
  ::dup2(null_fd, STDOUT_FILENO);
  ::dup2(output_fd, STDERR_FILENO);
  ::execv("/proc/self/exe", arguments);
  ::_exit(127);
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(
    const std::vector<std::string>& arguments) {
  const int output_fd = ::memfd_create("prony-child", MFD_CLOEXEC);
  if (output_fd < 0) {
    return environment_error(fmt::format("cannot start prony: {}", std::strerror(errno)));
  }
  ::fcntl(output_fd, F_SETFL, O_APPEND);
  std::vector<std::string> owned = {"prony"};
  owned.insert(owned.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (auto& argument : owned) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(pointers.data(), output_fd, parent);
  if (pid < 0) {
    const int error = errno;
    ::close(output_fd);
    return environment_error(fmt::format("cannot start prony: {}", std::strerror(error)));
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, output_fd));
}

ChildProcess::~ChildProcess() {
  terminate();
  ::close(output_fd_);
}

std::string ChildProcess::output() const {
  struct stat info {};
  if (::fstat(output_fd_, &info) != 0) return {};
  std::string text(std::min(static_cast<size_t>(info.st_size), kOutputKept), '\0');
  const ssize_t n = ::pread(output_fd_, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

std::string ChildProcess::last_words() const {
  auto text = output();
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);
}

bool ChildProcess::running() {
  if (pid_ < 0) return false;
  if (::waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

Result<std::string> ChildProcess::wait_for_line(std::string_view prefix, core::Nanos timeout_ns,
                                                const std::atomic<bool>* interrupt) {
  const core::Nanos deadline = core::monotonic_ns() + timeout_ns;
  while (true) {
    const bool alive = running();  // before the look at its output, so that nothing is missed
    const auto text = output();
    for (size_t at = 0; at < text.size();) {
      const auto end = text.find('\n', at);
      if (end == std::string::npos) break;
      const auto line = std::string_view(text).substr(at, end - at);
      if (line.starts_with(prefix)) return std::string(line.substr(prefix.size()));
      at = end + 1;
    }
    if (!alive) return environment_error(fmt::format("prony ended: {}", last_words()));
    if (interrupt != nullptr && interrupt->load()) return failed("interrupted by the user");
    const core::Nanos now = core::monotonic_ns();
    if (now >= deadline) {
      return environment_error(fmt::format("prony was not ready within {:g} s: {}",
                                           static_cast<double>(timeout_ns) / 1e9, last_words()));
    }
    core::MonotonicClock().sleep_until(now + kPoll);
  }
}

void ChildProcess::terminate() {
  if (!running()) return;
  ::kill(pid_, SIGTERM);
  const core::Nanos mercy = core::monotonic_ns() + kMercy;
  while (running()) {
    if (core::monotonic_ns() >= mercy) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);  // a killed process ends
      pid_ = -1;
      return;
    }
    core::MonotonicClock().sleep_until(core::monotonic_ns() + kPoll);
  }
}

}  // namespace prony::cli
