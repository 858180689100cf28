// Memory of tensors: zeroed anonymous pages on 2 MiB boundaries with transparent huge pages asked
// for (weights are streamed once a step, and 4 KiB pages cost up to a third of the read rate), and
// a bump allocator over them. All memory of an engine is planned and taken once, at load.
// Thread safety: Pages and Arena one thread; the memory itself any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "prony/core/result.hpp"

namespace prony::kernels {

/// Every tensor starts on a cache line, so no vector load of 64 bytes crosses one.
inline constexpr int64_t kAlignmentBytes = 64;

class Pages {
 public:
  Pages() = default;
  /// Zero bytes give an empty object. `touch` writes every page now, so that no step pays for the
  /// first use. Error: kEnvironment, naming the size.
  static Result<Pages> create(int64_t size_bytes, bool touch);
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  ~Pages();

  std::byte* data() const noexcept { return data_; }
  int64_t size_bytes() const noexcept { return size_bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t size_bytes_ = 0;
  void* mapping_ = nullptr;  // data_ lies inside, on the first boundary
  size_t mapping_bytes_ = 0;
};

/// Hands out pieces of one Pages from front to back; nothing is given back. A planning arena (the
/// default) has no memory: it gives null pointers and counts, so the same code that takes the
/// pieces also says beforehand how many bytes it will need.
class Arena {
 public:
  Arena() = default;
  explicit Arena(Pages pages) : pages_(std::move(pages)), planning_(false) {}

  /// Zeroed, aligned to kAlignmentBytes. Requires room (checked): the plan counted every take.
  template <class T>
  T* take(int64_t count) {
    return reinterpret_cast<T*>(take_bytes(count * static_cast<int64_t>(sizeof(T))));
  }
  int64_t used_bytes() const noexcept { return used_bytes_; }
  int64_t size_bytes() const noexcept { return pages_.size_bytes(); }

 private:
  std::byte* take_bytes(int64_t size_bytes);
  Pages pages_;
  bool planning_ = true;
  int64_t used_bytes_ = 0;
};

}  // namespace prony::kernels
