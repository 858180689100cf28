// TemporaryFile: a file without a name, for data that outgrows memory and dies with the process. It
// has no entry in any folder (O_TMPFILE, or unlinked at once), so neither a crash nor SIGKILL
// leaves anything behind. Thread safety: append() one thread at a time; read_at() any thread, of
// what an append() that returned has written.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "prony/core/result.hpp"

namespace prony::core {

class TemporaryFile {
 public:
  /// Error: kEnvironment, "cannot create a temporary file in FOLDER: reason".
  static Result<TemporaryFile> create(const std::string& folder);
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&& other) noexcept;
  ~TemporaryFile();

  /// Writes at the end; returns where. A failed append changes nothing that was there.
  /// Error: kEnvironment, "cannot write a temporary file in FOLDER: No space left on device".
  Result<int64_t> append(std::string_view bytes);
  /// Exactly `size` bytes. Error: kEnvironment, also where the file is shorter.
  Result<void> read_at(int64_t offset, char* out, size_t size) const;

  int64_t size() const { return size_; }

 private:
  TemporaryFile(std::string folder, int fd) : folder_(std::move(folder)), fd_(fd) {}
  std::string folder_;
  int fd_ = -1;
  int64_t size_ = 0;
};

}  // namespace prony::core
