#include "prony/telemetry/host_sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "prony/core/file.hpp"

namespace prony::telemetry {

Result<CpuTimes> parse_cpu_times(std::string_view text) {
  constexpr std::string_view kKey = "cpu ";  // with the blank: "cpu0" is one core
  size_t begin = 0;
  while (!text.substr(begin).starts_with(kKey)) {
    begin = text.find('\n', begin);
    if (begin == std::string_view::npos) {
      return environment_error("/proc/stat: found no line 'cpu ...'");
    }
    ++begin;
  }
  CpuTimes times;
  uint64_t* const fields[] = {&times.user,   &times.nice, &times.system,  &times.idle,
                              &times.iowait, &times.irq,  &times.softirq, &times.steal};
  const char* at = text.data() + begin + kKey.size();
  const char* const end = text.data() + std::min(text.find('\n', begin), text.size());
  int count = 0;
  for (uint64_t* field : fields) {
    while (at < end && *at == ' ') ++at;
    const auto [next, code] = std::from_chars(at, end, *field);
    if (code != std::errc()) break;
    at = next;
    ++count;
  }
  if (count < 4) {
    return environment_error(
        fmt::format("/proc/stat: line 'cpu ...': found {} numbers, expected at least 4", count));
  }
  return times;
}

std::optional<CpuTimes> HostSampler::read() const {
  const auto text = core::read_file(proc_ + "/stat");
  if (!text) return std::nullopt;
  const auto times = parse_cpu_times(*text);
  if (!times) return std::nullopt;
  return *times;
}

void HostSampler::start() {
  start_ = read();
}

std::optional<HostSampler::Shares> HostSampler::shares() const {
  if (!start_) return std::nullopt;
  const auto now = read();
  // iowait and steal may step back a little between reads, says proc(5): such a share is 0.
  if (!now || now->total() <= start_->total()) return std::nullopt;
  const auto total = static_cast<double>(now->total() - start_->total());
  const auto share = [&](uint64_t begin, uint64_t end) {
    return end > begin ? std::min(1.0, static_cast<double>(end - begin) / total) : 0.0;
  };
  return Shares{.steal = share(start_->steal, now->steal),
                .busy = share(start_->busy(), now->busy()),
                .iowait = share(start_->iowait, now->iowait)};
}

std::optional<double> HostSampler::load_average() const {
  const auto text = core::read_file(proc_ + "/loadavg");
  if (!text) return std::nullopt;
  double load = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), load);
  if (code != std::errc() || !std::isfinite(load) || load < 0) return std::nullopt;
  return load;
}

}  // namespace prony::telemetry
