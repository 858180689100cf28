#include "prony/cli/child_process.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace prony::cli {
namespace {

constexpr core::Nanos kPoll = 10 * core::kNanosPerMilli;
constexpr size_t kOutputKept = 1 << 20;

}  // namespace

ChildProcess::~ChildProcess() {
  terminate();
  ::close(output_fd_);
}

std::string ChildProcess::output(bool end) const {
  struct stat info {};
  if (::fstat(output_fd_, &info) != 0) return {};
  const auto size = static_cast<size_t>(info.st_size);
  std::string text(std::min(size, kOutputKept), '\0');
  const auto from = static_cast<off_t>(end ? size - text.size() : 0);
  const ssize_t n = ::pread(output_fd_, text.data(), text.size(), from);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

std::string ChildProcess::last_words() const {
  auto text = output(true);
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);
}

bool ChildProcess::running() {
  if (pid_ < 0) return false;
  if (::waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  ::kill(-pid_, SIGKILL);  // what it started and left behind; the group has its number still
  pid_ = -1;
  return false;
}

Result<std::string> ChildProcess::wait_for_line(std::string_view prefix, core::Nanos timeout_ns,
                                                const std::atomic<bool>* interrupt) {
  const core::Nanos deadline = core::monotonic_ns() + timeout_ns;
  while (true) {
    const bool alive = running();  // before the look at its output, so that nothing is missed
    const auto text = output(false);
    for (size_t at = 0; at < text.size();) {
      const auto end = text.find('\n', at);
      if (end == std::string::npos) break;
      const auto line = std::string_view(text).substr(at, end - at);
      if (line.starts_with(prefix)) return std::string(line.substr(prefix.size()));
      at = end + 1;
    }
    if (!alive) return environment_error(fmt::format("{} ended: {}", name_, last_words()));
    if (interrupt != nullptr && interrupt->load()) return failed("interrupted by the user");
    const core::Nanos now = core::monotonic_ns();
    if (now >= deadline) {
      return environment_error(fmt::format("{} was not ready within {:g} s: {}", name_,
                                           static_cast<double>(timeout_ns) / 1e9, last_words()));
    }
    core::MonotonicClock().sleep_until(now + kPoll);
  }
}

void ChildProcess::terminate() {
  if (!running()) return;
  ::kill(-pid_, SIGTERM);
  const core::Nanos mercy = core::monotonic_ns() + mercy_ns_;
  while (running()) {
    if (core::monotonic_ns() >= mercy) {
      ::kill(-pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);  // a killed process ends
      pid_ = -1;
      return;
    }
    core::MonotonicClock().sleep_until(core::monotonic_ns() + kPoll);
  }
}

}  // namespace prony::cli
