// What a process learns of and does to itself: preferred threads, usage, folders of its own.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "prony/core/file.hpp"
#include "prony/core/scheduling.hpp"
#include "prony/core/temporary_folder.hpp"
#include "prony/core/usage.hpp"

namespace prony::core {
namespace {

TEST(Scheduling, APreferredThreadIsWhatItSays) {
  const int before = ::sched_getscheduler(0);
  std::thread([] {
    const auto got = prefer_thread();
    const bool fifo = (::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
    EXPECT_EQ(fifo, got == Scheduling::kRealtime) << scheduling_name(got);
  }).join();
  EXPECT_EQ(::sched_getscheduler(0), before);  // no other thread
}

TEST(Usage, CpuTimeAndMemoryGrowWithUse) {
  const auto cpu = thread_cpu_us();
  const auto resident = resident_bytes();
  ASSERT_TRUE(resident.has_value());
  constexpr size_t kBytes = 64 << 20;
  std::vector<char> memory(kBytes);
  for (size_t i = 0; i < kBytes; i += 64) memory[i] = static_cast<char>(i);
  EXPECT_GT(*resident_bytes(), *resident + static_cast<int64_t>(kBytes / 2)) << memory[64];
  EXPECT_GT(thread_cpu_us(), cpu);
}

TEST(TemporaryFolder, GoesWithItsContents) {
  std::string path;
  {
    auto made = TemporaryFolder::create();
    ASSERT_TRUE(made.ok());
    const TemporaryFolder moved = std::move(made).value();
    path = moved.path();
    ASSERT_TRUE(write_file_atomic(path + "/a", "x").ok());
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace prony::core
