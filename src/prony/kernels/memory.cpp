#include "prony/kernels/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "prony/core/check.hpp"

namespace prony::kernels {
namespace {
constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr int64_t kSmallPageBytes = 4096;
}  // namespace

Result<Pages> Pages::create(int64_t size_bytes, bool touch) {
  PRONY_CHECK(size_bytes >= 0);
  Pages pages;
  if (size_bytes == 0) return pages;
  // Small buffers (tests) do not deserve a huge page, nor the slack of its boundary.
  const bool huge = static_cast<size_t>(size_bytes) >= kHugePageBytes;
  const size_t length = static_cast<size_t>(size_bytes) + (huge ? kHugePageBytes : 0);
  void* mapping = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return environment_error(
        fmt::format("cannot reserve {} bytes of memory: {}", size_bytes, std::strerror(errno)));
  }
  pages.mapping_ = mapping;
  pages.mapping_bytes_ = length;
  pages.size_bytes_ = size_bytes;
  const auto address = reinterpret_cast<uintptr_t>(mapping);
  const uintptr_t offset = huge ? (0 - address) % kHugePageBytes : 0;
  pages.data_ = static_cast<std::byte*>(mapping) + offset;
  // A kernel without huge pages refuses the advice; small pages are slower and still right.
  if (huge) (void)madvise(pages.data_, static_cast<size_t>(size_bytes), MADV_HUGEPAGE);
  if (touch) {
    for (int64_t at = 0; at < size_bytes; at += kSmallPageBytes) {
      *const_cast<volatile std::byte*>(pages.data_ + at) = std::byte{0};
    }
  }
  return pages;
}

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  return *this;
}

Pages::~Pages() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

std::byte* Arena::take_bytes(int64_t size_bytes) {
  PRONY_CHECK(size_bytes >= 0);
  const int64_t rounded = (size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  std::byte* piece = nullptr;
  if (!planning_) {
    PRONY_CHECK(used_bytes_ + rounded <= pages_.size_bytes(), "arena is smaller than its plan");
    piece = pages_.data() + used_bytes_;
  }
  used_bytes_ += rounded;
  return piece;
}

}  // namespace prony::kernels
