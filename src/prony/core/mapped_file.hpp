// MappedFile: a whole file mapped for reading. The pages come in as they are read and stay shared
// with everyone who maps the file, so weights larger than a copy could be are no problem.
// Thread safety: immutable after open(); any thread. A file that another process shortens while it
// is mapped ends this one (SIGBUS), as with any mapping.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "prony/core/result.hpp"

namespace prony::core {

class MappedFile {
 public:
  /// Error: kEnvironment, "cannot read PATH: reason"; also for what is no regular file.
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::string_view bytes() const noexcept { return {static_cast<const char*>(data_), size_}; }

 private:
  MappedFile(void* data, size_t size) : data_(data), size_(size) {}
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace prony::core
