// prony: the program. Reads the first argument and hands the rest to that command.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "prony/cli/commands.hpp"
#include "prony/cli/flags.hpp"
#include "prony/version.hpp"

namespace prony::cli {
namespace {

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&);
};

constexpr Command kCommands[] = {
    {"bench", "load an endpoint and measure TTFT, TPOT, ITL, E2E, goodput and errors", run_bench},
    {"catalog", "the data files of models, hardware and engines: list, show, check", run_catalog},
    {"certify", "prove the client on this host against a server of known timing", run_certify},
    {"compare", "how runs differ from a first one, with intervals and a verdict", run_compare},
    {"cost", "what a GPU-hour, a thousand tokens and the energy of one cost", run_cost},
    {"fit", "calibrate closed forms from measurements, with what the data cannot tell", run_fit},
    {"audit", "published claims against physical bounds and their own arithmetic", run_audit},
    {"mock", "an endpoint of exactly known timing, with named faults", run_mock},
    {"plan", "the cheapest deployment that holds an objective, and what can be traded", run_plan},
    {"predict", "latency, throughput, memory and bottleneck of a deployment", run_predict},
    {"probe", "what this machine can do at most, kept as hardware 'this'", run_probe},
    {"serve", "an OpenAI-compatible server over the embedded engine", run_serve},
    {"simulate", "a serving cluster on virtual time: routers, queues, prefix caches", run_simulate},
};

void print_usage(std::FILE* out) {
  fmt::print(out, "usage: prony COMMAND [FLAGS]\n\n");
  for (const auto& command : kCommands) {
    fmt::print(out, "  {:<8} {}\n", command.name, command.summary);
  }
  fmt::print(out, "\nprony COMMAND --help shows the flags; prony --version the version\n");
}

int run(const Arguments& arguments) {
  if (arguments.empty()) {
    print_usage(stderr);
    return kExitUsage;
  }
  const auto& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    print_usage(stdout);
    return kExitOk;
  }
  if (name == "--version") {
    fmt::print("prony {} ({})\n", kVersion, kCommit);
    return kExitOk;
  }
  std::vector<std::string> names;
  for (const auto& command : kCommands) {
    if (name == command.name) return command.run({arguments.begin() + 1, arguments.end()});
    names.emplace_back(command.name);
  }
  const auto guess = nearest(name, names);
  fmt::print(stderr, "prony: unknown command '{}', {}\n", name,
             guess.empty() ? fmt::format("expected one of {}", fmt::join(names, ", "))
                           : fmt::format("did you mean {}?", guess));
  return kExitUsage;
}

}  // namespace

int report_error(const std::string& command, const Error& error) {
  fmt::print(stderr, "prony {}: {}\n", command, error.message);
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      return kExitUsage;
    case ErrorCode::kEnvironment:
      return kExitEnvironment;
    case ErrorCode::kFailed:
      return kExitFailed;
  }
  return kExitFailed;
}

}  // namespace prony::cli

int main(int count, char** values) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed socket or pipe is an error of its write
  try {
    return prony::cli::run({values + 1, values + count});
  } catch (const std::system_error& error) {
    // The reader of our output has gone (`prony audit | head`): nobody is left to tell.
    if (error.code().value() == EPIPE) return prony::cli::kExitFailed;
    std::fprintf(stderr, "prony: %s\n", error.what());
    return prony::cli::kExitEnvironment;
  }
}
