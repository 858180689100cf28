// Player: one run of the client against one mock in a process of its own, seen from both sides.
// Thread safety: one thread.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prony/certify/judge.hpp"
#include "prony/core/result.hpp"
#include "prony/load/bench_options.hpp"

namespace prony::certify {

/// A mock that runs elsewhere; the destructor stops it.
class RunningMock {
 public:
  virtual ~RunningMock() = default;
  virtual const std::string& url() const = 0;
  /// Returns when it has ended in order and its stamps are on disk.
  virtual void stop() = 0;
};
/// Starts `prony mock ARGUMENTS`; returns when it listens. Error: kEnvironment.
using StartMock =
    std::function<Result<std::unique_ptr<RunningMock>>(const std::vector<std::string>& arguments)>;

struct Host {
  StartMock start_mock;
  std::string scratch;  // folder for the stamps
  const std::atomic<bool>* interrupt = nullptr;
  std::function<void(std::string_view)> progress;  // which case is on; may be empty
};

/// What a case measured beside the run.
struct Played {
  Session session;
  std::optional<int64_t> resident_before_bytes, resident_most_bytes;  // of this process
};

/// Defaults of a run against the mock: a closed loop of `requests`, all at once, every event kept.
load::BenchOptions quick_run(int64_t requests, int64_t tokens);

/// Error: kEnvironment; kFailed if interrupted.
Result<Played> play(const Host& host, std::vector<std::string> mock_arguments,
                    const load::BenchOptions& options);

}  // namespace prony::certify
