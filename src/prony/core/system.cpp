#include "prony/core/system.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace prony::core {

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::vector<int> allowed_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &mask)) cores.push_back(core);
  }
  return cores;
}

Result<void> pin_thread(int core) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(static_cast<size_t>(core), &mask);
  const int code = ::pthread_setaffinity_np(::pthread_self(), sizeof mask, &mask);
  if (code != 0) {
    return environment_error(fmt::format("cannot pin to core {}: {}", core, std::strerror(code)));
  }
  return {};
}

void name_thread(const std::string& name) {
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

Result<void> ensure_open_files(uint64_t needed) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return environment_error(fmt::format("cannot read RLIMIT_NOFILE: {}", std::strerror(errno)));
  }
  if (limit.rlim_cur >= needed) return {};
  if (limit.rlim_max < needed) {
    // A privileged process may raise its own hard limit.
    rlimit raised{needed, needed};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) return {};
    return environment_error(fmt::format(
        "open files: {} needed, the hard limit is {}; raise it with 'ulimit -Hn {}' or lower "
        "--max-concurrency",
        needed, limit.rlim_max, needed));
  }
  limit.rlim_cur = needed;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return environment_error(fmt::format("cannot raise RLIMIT_NOFILE: {}", std::strerror(errno)));
  }
  return {};
}

std::string program_folder() {
  char path[PATH_MAX];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0) return ".";
  const std::string whole(path, static_cast<size_t>(n));
  const auto slash = whole.rfind('/');
  return slash == std::string::npos ? "." : whole.substr(0, slash);
}

}  // namespace prony::core
