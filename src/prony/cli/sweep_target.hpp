// SweepTarget: the server that a block of runs is made against, brought up before the first and
// again if it dies: an endpoint by its URL, a command of the user's that starts one, or `prony
// serve` where neither is given.
// A command's server is found by the port that Prony puts in for "{port}", else at --base-url, else
// by a line "listening on URL" of its output.
// Thread safety: main thread.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "prony/cli/bench_flags.hpp"
#include "prony/cli/child_process.hpp"
#include "prony/load/endpoint.hpp"
#include "prony/load/sweep_axis.hpp"

namespace prony::cli {

class SweepTarget {
 public:
  struct Options {
    load::SweepTarget spec;              // empty command and url: what the flags say
    std::string log_folder;              // of commands; empty: not kept
    core::Nanos command_ready_ns = 0;    // for a command's server to answer
    const std::atomic<bool>* interrupt;  // not null
    std::function<void(std::string_view)> note;
  };
  explicit SweepTarget(Options options) : options_(std::move(options)) {}

  /// Sees to it that the server runs, points `run` at it and asks what it is.
  /// Error: kEnvironment if it does not come up or does not answer, kInvalidArgument for options
  /// that do not fit it; kFailed if interrupted.
  Result<load::Endpoint> open(BenchFlags& run);
  /// Stops what it started; open() starts it again.
  void stop() { child_.reset(); }

 private:
  Result<load::Endpoint> start_command(BenchFlags& run);
  Result<load::Endpoint> wait_until_ready(BenchFlags& run);

  Options options_;
  std::unique_ptr<ChildProcess> child_;
  std::string url_;    // of the child
  BenchFlags served_;  // flags as start_server() left them
  int starts_ = 0;
};

}  // namespace prony::cli
