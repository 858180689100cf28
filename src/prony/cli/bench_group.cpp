// What only the first of several processes may decide or show, and how they end together.
#include "prony/cli/bench_group.hpp"

#include <fmt/format.h>

#include <charconv>

#include "prony/cli/commands.hpp"
#include "prony/core/mpi_transport.hpp"
#include "prony/core/system.hpp"

namespace prony::cli {
namespace {

// Ranks may be held up by a model that still loads (--ready-timeout) or by long warm-ups.
constexpr core::Nanos kOthersTimeout = 600 * core::kNanosPerSecond;

}  // namespace

Result<core::Group> open_group() {
  const auto launcher = core::mpi_launcher(core::environment_variable);
  if (!launcher) return core::Group();
  auto transport = core::open_mpi(*launcher);
  if (!transport) return transport.error();
  if (transport.value()->size() == 1) return core::Group();
  return core::Group(std::move(transport).value());
}

Result<void> share_flags(core::Group& group, BenchFlags& flags) {
  if (group.alone()) return {};
  if (!flags.bench.prompt_salt) {
    const auto salt = group.broadcast(std::to_string(core::realtime_ns() / 1000), kOthersTimeout);
    if (!salt) return salt.error();
    const auto& text = salt.value();
    uint64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size()) {
      return environment_error("rank 0 sent what this build does not know");
    }
    flags.bench.prompt_salt = value;
  }
  if (!flags.base_url) {
    return invalid_argument(fmt::format(
        "--base-url: missing, and {} processes cannot start a server each", group.size()));
  }
  if (!group.is_first()) {
    flags.progress = "off";
    flags.out.reset();
    flags.bench.server_metrics = flags.bench.gpu_telemetry = "off";
  }
  return {};
}

int report_group_error(core::Group& group, const Error& error) {
  group.fail(error, kOthersTimeout);
  // Where all know of it, the first alone says it; its code is that of the whole run.
  return group.is_speaker() ? report_error("bench", error) : kExitFailed;
}

}  // namespace prony::cli
