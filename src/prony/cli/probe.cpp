// prony probe: measures what this machine can do at most, shows it, and keeps it as the catalogue
// entry "this". docs/probe.md is its manual.
#include <fmt/format.h>

#include "prony/catalog/hardware_file.hpp"
#include "prony/cli/commands.hpp"
#include "prony/cli/flags.hpp"
#include "prony/cli/probe_output.hpp"
#include "prony/core/file.hpp"
#include "prony/core/system.hpp"
#include "prony/probe/hardware_text.hpp"
#include "prony/telemetry/environment.hpp"
#include "prony/telemetry/host_counters.hpp"

namespace prony::cli {
namespace {

struct ProbeFlags {
  bool quick = false, json = false;
  int64_t threads = 0;
  double sustain_s = -1;
  std::string out;
};

probe::Machine machine_of(const record::Environment& environment) {
  probe::Machine machine;
  machine.cpu = environment.cpu;
  machine.memory_bytes = static_cast<double>(environment.memory_bytes);
  machine.clock_hz = telemetry::read_host_counters().frequency_mhz.value_or(0) * 1e6;
  machine.taken_at = core::utc_text(core::realtime_ns()).text;
  return machine;
}

Result<int> probe_machine(const ProbeFlags& flags) {
  probe::CpuProbeOptions options;
  options.threads = flags.threads > 0 ? static_cast<int>(flags.threads)
                                      : static_cast<int>(core::allowed_cores().size());
  options.quick = flags.quick;
  options.sustained_s = flags.sustain_s >= 0 ? flags.sustain_s : flags.quick ? 0 : 20;
  options.note = [](std::string_view text) { fmt::print(stderr, "probe: {}\n", text); };
  const auto environment = telemetry::capture_environment();
  const auto measured = probe::probe_cpu(options);
  if (!measured) return measured.error();
  const auto machine = machine_of(environment);
  const std::string path = flags.out.empty() ? catalog::this_hardware_path() : flags.out;
  const std::string text = probe::hardware_text(*measured, machine);
  if (auto entry = catalog::parse_hardware_file(text, path); !entry) return entry.error();
  if (const size_t slash = path.rfind('/'); slash != std::string::npos) {
    if (auto made = core::make_directories(path.substr(0, slash)); !made) return made.error();
  }
  if (auto written = core::write_file_atomic(path, text); !written) return written.error();
  if (flags.json) {
    const auto json = core::write_json(probe_json(*measured, machine, environment, path), 2);
    if (!json) return json.error();
    fmt::print("{}\n", *json);
  } else {
    fmt::print("{}", probe_table(*measured, machine, path));
  }
  return kExitOk;
}

}  // namespace

int run_probe(const Arguments& arguments) {
  ProbeFlags options;
  Flags flags("probe", "what this machine can do at most, kept as hardware 'this'");
  flags.group("Probe")
      .toggle("--quick", options.quick, "fewer points: some 15 s instead of a minute")
      .integer("--threads", options.threads, "0: one per allowed core")
      .number("--sustain", options.sustain_s, "seconds of products without a pause (20; quick: 0)")
      .text("--out", options.out, "FILE.yaml of the entry; none: that of hardware 'this'")
      .toggle("--json", options.json, "one JSON document on stdout");
  const auto parsed = flags.parse(arguments);
  if (!parsed) return report_error("probe", parsed.error());
  if (*parsed == Flags::Outcome::kHelp) {
    fmt::print("{}", flags.help());
    return kExitOk;
  }
  if (options.threads < 0 || options.threads > 1024 || options.sustain_s > 3600) {
    return report_error("probe", invalid_argument(fmt::format(
                                     "--threads, --sustain: found {} and {}, expected at most 1024 "
                                     "threads and 3600 s",
                                     options.threads, options.sustain_s)));
  }
  const auto code = probe_machine(options);
  return code.ok() ? *code : report_error("probe", code.error());
}

}  // namespace prony::cli
