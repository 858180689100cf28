// Replaces operator new of the test program by one that counts. In a source of its own, because a
// compiler that inlines it into others takes the pair of malloc and delete for a mistake.
#include "prony/engine/allocation_count_testing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

#include "prony/core/check.hpp"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void* operator new(size_t size) {
  void* memory = operator new(size, std::nothrow);
  PRONY_CHECK(memory != nullptr, "out of memory");
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}

namespace prony::engine {

int64_t allocation_count() {
  return allocations.load(std::memory_order_relaxed);
}

TEST(AllocationCount, Counts) {
  const int64_t before = allocation_count();
  const auto number = std::make_unique<int>(3);
  EXPECT_EQ(allocation_count() - before, 1);
  EXPECT_EQ(*number, 3);
}

}  // namespace prony::engine
