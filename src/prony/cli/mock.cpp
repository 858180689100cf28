// prony mock: an endpoint of exactly known timing, with named faults and stamped writes, until
// SIGINT or SIGTERM.
#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <cstdio>

#include "prony/cli/commands.hpp"
#include "prony/cli/flags.hpp"
#include "prony/cli/spin.hpp"
#include "prony/core/system.hpp"
#include "prony/mock/faults.hpp"
#include "prony/mock/mock_server.hpp"
#include "prony/net/event_loop.hpp"
#include "prony/net/signals.hpp"

namespace prony::cli {
namespace {

/// Each connection is an open file; take what the limits of this host allow.
void raise_open_files() {
  for (const uint64_t wanted : {65536U, 16384U, 4096U}) {
    if (core::ensure_open_files(wanted).ok()) return;
  }
}

core::Nanos from_ms(double ms) {
  return std::llround(ms * 1e6);
}

void list_faults() {
  for (const auto& fault : mock::all_faults()) {
    fmt::print("{:<20} {}\n", fault.name, fault.summary);
  }
}

Result<void> serve(const mock::Options& options, core::Nanos spin_ns) {
  raise_open_files();
  net::EventLoop loop({.spin_ns = spin_ns});
  auto server = mock::MockServer::create(loop, options);
  if (!server) return server.error();
  const net::SignalWatch signals(loop, {SIGINT, SIGTERM}, [&loop](int) { loop.stop(); });
  fmt::print(stderr, "listening on http://{}:{}\n", options.host, server.value()->port());
  loop.run();
  return server.value()->finish();
}

}  // namespace

int run_mock(const Arguments& arguments) {
  mock::Options options;
  int64_t port = 0;
  double ttft_ms = 50, itl_ms = 10;
  std::string spin_us = "auto";
  bool list = false;
  Flags flags("mock", "an endpoint of exactly known timing, with named faults and stamped writes");
  flags.text("--host", options.host, "address to listen on")
      .integer("--port", port, "port to listen on; 0: any free one")
      .text("--model", options.model, "the model it serves")
      .number("--ttft-ms", ttft_ms, "receipt of the request to the first token [ms]")
      .number("--itl-ms", itl_ms, "token to token [ms]; a chunk of k comes every k-th")
      .integer("--tokens", options.tokens, "tokens of every answer; else what the request asks")
      .integer("--tokens-per-chunk", options.tokens_per_chunk, "tokens in one event")
      .list("--fault", options.faults, "misbehave in this way (see --list-faults); repeatable")
      .text("--stamps", options.stamps_path, "write what was sent when to this file (JSON lines)")
      .text("--spin-us", spin_us, "poll this long before each deadline [us]; auto learns it")
      .toggle("--list-faults", list, "print the faults and exit");
  const auto outcome = flags.parse(arguments);
  if (!outcome) return report_error("mock", outcome.error());
  if (outcome.value() == Flags::Outcome::kHelp) {
    fmt::print("{}", flags.help());
    return kExitOk;
  }
  if (list) {
    list_faults();
    return kExitOk;
  }
  if (port < 0 || port > 65535) {
    return report_error(
        "mock", invalid_argument(fmt::format("--port: found {}, expected 0 to 65535", port)));
  }
  const auto spin = parse_spin_us(spin_us);
  if (!spin) return report_error("mock", spin.error());
  options.port = static_cast<uint16_t>(port);
  options.ttft_ns = from_ms(ttft_ms);
  options.itl_ns = from_ms(itl_ms);
  const auto spin_ns =
      spin.value() ? *spin.value() * core::kNanosPerMicro : core::Nanos{net::EventLoop::kLearnSpin};
  const auto served = serve(options, spin_ns);
  return served ? kExitOk : report_error("mock", served.error());
}

}  // namespace prony::cli
