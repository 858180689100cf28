// Files: whole-file reads, and writes that are never seen half-done (temporary beside the target,
// fsync, rename, fsync of the folder). Thread safety: functions any thread; AtomicFile one thread.
#pragma once
#include <string>
#include <string_view>

#include "prony/core/result.hpp"

namespace prony::core {

/// The whole file. Error: kEnvironment, "cannot read PATH: reason".
Result<std::string> read_file(const std::string& path);

/// Replaces or creates `path` as a whole. Error: kEnvironment, "cannot write PATH: reason".
Result<void> write_file_atomic(const std::string& path, std::string_view content);

/// mkdir -p. Error: kEnvironment.
Result<void> make_directories(const std::string& path);

/// A file that appears under its name only at commit(); destroyed before, it leaves nothing.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Appends; buffered. A write error is kept and returned by commit().
  void append(std::string_view text);
  /// Flushes, fsyncs, renames. Call once.
  Result<void> commit();

 private:
  AtomicFile(std::string path, std::string temporary, int fd);
  void flush();
  std::string path_, temporary_, buffer_;
  int fd_ = -1;
  int error_ = 0;  // first errno seen
};

}  // namespace prony::core
