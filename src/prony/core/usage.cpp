#include "prony/core/usage.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <charconv>

#include "prony/core/file.hpp"

namespace prony::core {

int64_t thread_cpu_us() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  const auto us = [](const timeval& t) { return int64_t{t.tv_sec} * 1'000'000 + t.tv_usec; };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

std::optional<int64_t> resident_bytes() {
  const auto text = read_file("/proc/self/statm");
  if (!text) return std::nullopt;
  const std::string& pages = text.value();
  const auto second = pages.find(' ') + 1;
  int64_t resident = 0;
  const auto [end, code] =
      std::from_chars(pages.data() + second, pages.data() + pages.size(), resident);
  if (code != std::errc()) return std::nullopt;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace prony::core
