#include "prony/core/temporary_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace prony::core {

Result<TemporaryFile> TemporaryFile::create(const std::string& folder) {
  int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  // Some file systems (overlays, NFS) know no O_TMPFILE.
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    std::string name = folder + "/.prony-XXXXXX";
    fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd >= 0) ::unlink(name.c_str());
  }
  if (fd < 0) {
    return environment_error(
        fmt::format("cannot create a temporary file in {}: {}", folder, std::strerror(errno)));
  }
  return TemporaryFile(folder, fd);
}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(std::exchange(other.size_, 0)) {}

TemporaryFile& TemporaryFile::operator=(TemporaryFile&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

TemporaryFile::~TemporaryFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<int64_t> TemporaryFile::append(std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pwrite(fd_, bytes.data() + done, bytes.size() - done, size_ + static_cast<int64_t>(done));
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      return environment_error(fmt::format("cannot write a temporary file in {}: {}", folder_,
                                           std::strerror(n == 0 ? ENOSPC : errno)));
    }
  }
  const int64_t at = size_;
  size_ += static_cast<int64_t>(bytes.size());
  return at;
}

Result<void> TemporaryFile::read_at(int64_t offset, char* out, size_t size) const {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(fd_, out + done, size - done, offset + static_cast<int64_t>(done));
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      return environment_error(fmt::format("cannot read a temporary file in {}: {}", folder_,
                                           n == 0 ? "it is too short" : std::strerror(errno)));
    }
  }
  return {};
}

}  // namespace prony::core
