#include "prony/core/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace prony::core {
namespace {

constexpr size_t kBufferBytes = 1 << 16;

Error io_error(const char* what, const std::string& path, int code) {
  return environment_error(fmt::format("cannot {} {}: {}", what, path, std::strerror(code)));
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return io_error("read", path, errno);
  std::string content;
  char chunk[kBufferBytes];
  while (true) {
    const ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n == 0) break;
    if (n < 0) {
      if (errno == EINTR) continue;
      const int code = errno;
      ::close(fd);
      return io_error("read", path, code);
    }
    content.append(chunk, static_cast<size_t>(n));
  }
  ::close(fd);
  return content;
}

Result<void> write_file_atomic(const std::string& path, std::string_view content) {
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  file->append(content);
  return file->commit();
}

Result<void> make_directories(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) return environment_error(fmt::format("cannot create {}: {}", path, code.message()));
  return {};
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return io_error("write", path, errno);
  ::fchmod(fd, 0644);
  return AtomicFile(path, std::move(temporary), fd);
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      buffer_(std::move(other.buffer_)),
      fd_(std::exchange(other.fd_, -1)),
      error_(other.error_) {}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::append(std::string_view text) {
  buffer_.append(text);
  if (buffer_.size() >= kBufferBytes) flush();
}

void AtomicFile::flush() {
  size_t done = 0;
  while (error_ == 0 && done < buffer_.size()) {
    const ssize_t n = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  buffer_.clear();
}

Result<void> AtomicFile::commit() {
  PRONY_CHECK(fd_ >= 0, "commit() called twice");
  flush();
  if (error_ == 0 && ::fsync(fd_) != 0) error_ = errno;
  ::close(std::exchange(fd_, -1));
  if (error_ == 0 && ::rename(temporary_.c_str(), path_.c_str()) != 0) error_ = errno;
  if (error_ != 0) {
    ::unlink(temporary_.c_str());
    return io_error("write", path_, error_);
  }
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);  // best effort: some file systems refuse to sync a folder
    ::close(folder);
  }
  return {};
}

}  // namespace prony::core
