// TemporaryFolder: a folder of its own under $TMPDIR or /tmp, removed with all that is in it by the
// destructor. Thread safety: one thread.
#pragma once
#include <string>
#include <utility>

#include "prony/core/result.hpp"

namespace prony::core {

class TemporaryFolder {
 public:
  /// Error: kEnvironment.
  static Result<TemporaryFolder> create();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: moved from
};

}  // namespace prony::core
