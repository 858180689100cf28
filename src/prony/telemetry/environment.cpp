#include "prony/telemetry/environment.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <charconv>
#include <string_view>

#include "prony/core/file.hpp"
#include "prony/core/system.hpp"
#include "prony/telemetry/host_sampler.hpp"
#include "prony/version.hpp"

namespace prony::telemetry {
namespace {

constexpr const char* kUnknown = "unknown";

// The text after "KEY<blanks>:<blanks>" in the first line of that key; empty if there is none.
std::string_view value_of(std::string_view content, std::string_view key) {
  for (size_t begin = 0; begin < content.size();) {
    const auto end = std::min(content.find('\n', begin), content.size());
    auto line = content.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    const auto colon = line.find_first_not_of(" \t");
    if (colon == std::string_view::npos || line[colon] != ':') continue;
    const auto value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string_view::npos ? std::string_view() : line.substr(value);
  }
  return {};
}

std::string file_or_empty(const std::string& path) {
  auto content = core::read_file(path);
  return content ? std::move(*content) : std::string();
}

std::string cpu_of(const std::string& cpuinfo) {
  // x86 names the model; some ARM kernels name the hardware; others only numbers.
  for (const char* key : {"model name", "Hardware", "Processor", "CPU part"}) {
    const auto value = value_of(cpuinfo, key);
    if (!value.empty()) return std::string(value);
  }
  return kUnknown;
}

int64_t memory_bytes_of(const std::string& meminfo) {
  const auto value = value_of(meminfo, "MemTotal");
  int64_t kib = 0;
  std::from_chars(value.data(), value.data() + value.size(), kib);
  return kib > 0 ? kib * 1024 : 0;
}

std::string kernel_name() {
  utsname names{};
  if (::uname(&names) != 0) return kUnknown;
  return fmt::format("{} {} {}", names.sysname, names.release, names.machine);
}

std::string compiler_name() {
#if defined(__clang__)
  return fmt::format("clang++ {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return kUnknown;
#endif
}

}  // namespace

record::Environment capture_environment(const std::string& proc) {
  record::Environment out;
  out.commit = kCommit;
  out.version = kVersion;
  out.cpu = cpu_of(file_or_empty(proc + "/cpuinfo"));
  out.cores = static_cast<int64_t>(core::allowed_cores().size());
  out.memory_bytes = memory_bytes_of(file_or_empty(proc + "/meminfo"));
  out.kernel = kernel_name();
  out.compiler = compiler_name();
  out.load_average = HostSampler(proc).load_average().value_or(0);
  return out;
}

}  // namespace prony::telemetry
