// Stamps: what the mock did, for whoever judges a client by it: one JSON line a request,
//   {"id": X-Request-Id, "t_received_ns": T, "writes": [[t_ns, tokens], ...], "fault": NAME}
// with t_ns taken just before the call that gave the kernel the write's last byte, tokens those
// that the write completed, all CLOCK_MONOTONIC. The file appears whole at finish(). A thread of
// its own writes it, so that the disk never makes a token late. Thread safety: one thread calls.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/file.hpp"

namespace prony::mock {

struct AnswerStamps {
  std::string id;
  core::Nanos t_received_ns = 0;
  std::vector<std::pair<core::Nanos, int64_t>> writes;  // (t_ns, tokens)
  std::string fault;
};

std::string stamps_line(const AnswerStamps& stamps);
/// The answers of a stamps file. Error: kEnvironment if it cannot be read, kInvalidArgument
/// "PATH:LINE: ..." for a line that is none of ours.
Result<std::vector<AnswerStamps>> read_stamps(const std::string& path);

class StampsFile {
 public:
  /// Error: kEnvironment, "cannot write PATH: reason".
  static Result<std::unique_ptr<StampsFile>> create(const std::string& path);
  ~StampsFile();

  void add(AnswerStamps stamps);
  /// Writes what is left and puts the file in place. Call once, last.
  Result<void> finish();

 private:
  explicit StampsFile(core::AtomicFile file);
  void run();
  void stop();

  core::AtomicFile file_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<AnswerStamps> queue_;  // guarded by mutex_
  bool stopping_ = false;            // guarded by mutex_
  std::thread thread_;
};

}  // namespace prony::mock
